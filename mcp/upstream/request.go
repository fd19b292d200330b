package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Request is one request to a server on behalf of a session.
type Request struct {
	Session *wire.Session
	Server  string
	Method  string
	Params  json.RawMessage
	// Repeatable tells that the request may be made again when the server died
	// while working on it.
	Repeatable bool
	// Kind is what is used. Verify judges the use once more, when the server was
	// connected to for it and has said what it offers now; nil for no need. Unseen
	// has it asked in any case: the use was judged by a name alone.
	Kind   catalog.Kind
	Verify func(context.Context) *wire.Error
	Unseen bool
}

// timeoutError is the cause of a call that took too long.
type timeoutError struct{ budget time.Duration }

// Error names the budget.
func (e *timeoutError) Error() string {
	return fmt.Sprintf("no answer within %s (call_tool_timeout)", e.budget)
}

// Do sends a request to a server, which is started if it does not run, and
// returns its answer verbatim. An error of the server is returned verbatim too;
// errors of ours have CodeUnavailable or CodeTimeout and name the server.
func (s *Set) Do(ctx context.Context, r Request) (json.RawMessage, *wire.Error) {
	server := s.server(r.Server)
	if server == nil {
		return nil, notConfigured(r.Server)
	}
	if budget := server.spec().CallToolTimeout; budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, budget, &timeoutError{budget})
		defer cancel()
	}
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			// It may have been configured anew meanwhile.
			if server = s.server(r.Server); server == nil {
				return nil, notConfigured(r.Server)
			}
		}
		c, err := server.connected(ctx)
		if err != nil {
			return nil, server.failure(err, "cannot be reached")
		}
		if refusal := c.verify(ctx, r); refusal != nil {
			return nil, refusal
		}
		result, err := c.request(ctx, r.Session, r.Method, r.Params, server.spec().CallIdleTimeout)
		if err == nil {
			return result, nil
		}
		if theirs := new(wire.Error); errors.As(err, &theirs) {
			return nil, theirs
		}
		// The session may have expired, or the process ended, since it was last
		// used; then the request was not taken and is safe to send once more.
		died := errors.Is(err, errDied)
		again := attempt == 0 && ctx.Err() == nil &&
			(errors.Is(err, errSessionExpired) || died && r.Repeatable || !died && !c.alive())
		if !again {
			return nil, server.callFailure(c, r.Method, err)
		}
		if errors.Is(err, errSessionExpired) {
			server.drop(ctx, c)
		}
	}
}

func notConfigured(server string) *wire.Error {
	return wire.Errorf(wire.CodeUnavailable, "server %s is not configured or not enabled", server)
}

// drop gives up a connection whose session the server has forgotten.
func (s *server) drop(ctx context.Context, c *conn) {
	s.mu.Lock()
	if s.conn == c {
		s.conn = nil
	}
	s.mu.Unlock()
	_ = c.close(ctx)
}

func (s *server) callFailure(c *conn, method string, err error) *wire.Error {
	var late *timeoutError
	var atHub *diedError
	switch {
	case errors.As(err, &late):
		return wire.Errorf(wire.CodeTimeout, "server %s: %s: %v", s.name, method, late)
	case errors.Is(err, errIdle):
		return wire.Errorf(wire.CodeTimeout, "server %s: %s: no sign of life for %s (call_idle_timeout)", s.name, method, s.spec().CallIdleTimeout)
	case errors.As(err, &atHub):
		return wire.Errorf(wire.CodeUnavailable, "%s", atHub.message)
	case errors.Is(err, errDied) && !c.alive():
		failure := s.failure(c.link.Err(), "ended during "+method)
		if s.hosted != nil {
			failure.Data = json.RawMessage(diedData)
		}
		return failure
	}
	return s.failure(err, "failed during "+method)
}

// failure is what a caller is told: server, state, reason and next step.
func (s *server) failure(err error, what string) *wire.Error {
	var late *timeoutError
	if errors.As(err, &late) {
		return wire.Errorf(wire.CodeTimeout, "server %s: %v", s.name, late)
	}
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	return wire.Errorf(wire.CodeUnavailable, "server %s %s (state %s): %s; see: mcpproxy logs %s",
		s.name, what, state, s.log.clean(fmt.Sprint(err)), s.name)
}

// SetLevel asks all servers, now and when they connect, for log messages of the
// level that the client wants.
func (s *Set) SetLevel(level string) {
	s.mu.Lock()
	s.wanted = level
	s.mu.Unlock()
	for _, server := range s.servers() {
		server.wantLevel(level)
	}
}

func (s *Set) level() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// wantLevel asks the server, now and when it connects, for log messages.
func (s *server) wantLevel(level string) {
	s.mu.Lock()
	s.level = level
	c := s.conn
	s.mu.Unlock()
	if c != nil && c.alive() {
		s.set.spawn(func(ctx context.Context) { s.setLevel(ctx, c, level) })
	}
}

// Notified takes a notification of the client to the servers it concerns; it
// never blocks.
func (s *Set) Notified(method string, params json.RawMessage) {
	for _, server := range s.servers() {
		server.notified(method, params)
	}
}

func (s *server) notified(method string, params json.RawMessage) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil || !c.alive() {
		return
	}
	switch method {
	case "notifications/progress":
		if theirs := c.clientProgress(params); theirs != nil {
			s.set.tell(c, method, theirs)
		}
	case "notifications/roots/list_changed":
		if !wire.IsNull(wire.Member(s.announced(), "roots")) {
			s.set.tell(c, method, params)
		}
	}
}

// tell passes a notification on, to a child in the order of the calls and before
// any answer that comes later.
func (s *Set) tell(c *conn, method string, params json.RawMessage) {
	// A server that is gone asks again, if it needs to, when it is back.
	if quick(c.link) {
		_ = c.notify(s.ctx, method, params)
		return
	}
	s.spawn(func(ctx context.Context) { _ = c.notify(ctx, method, params) })
}

// Status is what is known of one server.
type Status struct {
	Name  string
	State State
	Err   error
	// Reason is the text of Err without secrets, "" where there is none.
	Reason string
}

// Status returns one entry per server, in order.
func (s *Set) Status() []Status {
	all := make([]Status, 0, len(s.servers()))
	for _, server := range s.servers() {
		server.mu.Lock()
		status := Status{Name: server.name, State: server.state, Err: server.err}
		server.mu.Unlock()
		if status.Err != nil {
			status.Reason = server.log.clean(status.Err.Error())
		}
		all = append(all, status)
	}
	return all
}

// Introduce connects the named servers (all if none is named), reads their
// lists and returns their status; it is for commands that are about servers.
func (s *Set) Introduce(ctx context.Context, names ...string) []Status {
	var all sync.WaitGroup
	for _, server := range s.servers() {
		if len(names) > 0 && !slices.Contains(names, server.name) {
			continue
		}
		all.Go(func() {
			if _, err := server.connected(ctx); err != nil {
				return // the status tells
			}
			select {
			case <-server.settled:
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
	status := s.Status()
	return slices.DeleteFunc(status, func(st Status) bool {
		return len(names) > 0 && !slices.Contains(names, st.Name)
	})
}

// Restart stops a server and connects it again.
func (s *Set) Restart(ctx context.Context, name string) error {
	server := s.server(name)
	if server == nil {
		return notConfigured(name)
	}
	server.stop(ctx)
	server.mu.Lock()
	server.failures = 0
	server.mu.Unlock()
	_, err := server.connected(ctx)
	return err
}

// Names returns the names of all servers of the Set, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.roster.Load().byID)) }
