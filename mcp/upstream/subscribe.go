package upstream

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpproxy/mcp/wire"
)

// Subscribe sends updates of a resource to the session; the server is asked for
// them once, by the first session.
func (s *Set) Subscribe(ctx context.Context, r Request, uri string) (json.RawMessage, *wire.Error) {
	server := s.server(r.Server)
	if server == nil {
		return nil, notConfigured(r.Server)
	}
	end, err := server.turn(ctx, uri)
	if err != nil {
		return nil, server.failure(err, "cannot be asked for updates of "+uri)
	}
	defer end()
	if !server.subscribe(uri, r.Session) {
		return json.RawMessage("{}"), nil
	}
	result, failure := s.Do(ctx, r)
	if failure != nil {
		server.unsubscribe(uri, r.Session)
	}
	return result, failure
}

// Unsubscribe is the inverse of Subscribe; the server hears of the last one.
func (s *Set) Unsubscribe(ctx context.Context, r Request, uri string) (json.RawMessage, *wire.Error) {
	server := s.server(r.Server)
	if server == nil || !server.unsubscribe(uri, r.Session) {
		return json.RawMessage("{}"), nil
	}
	end, err := server.turn(ctx, uri)
	if err != nil {
		return nil, server.failure(err, "cannot be told of "+uri)
	}
	defer end()
	if server.subscribed(uri) {
		return json.RawMessage("{}"), nil // by another session meanwhile
	}
	return s.Do(ctx, r)
}

// Leave forgets a session that has ended: what it subscribed to is given up.
func (s *Set) Leave(session *wire.Session) {
	for _, server := range s.servers() {
		server.mu.Lock()
		uris := slices.Collect(maps.Keys(server.subscribers))
		server.mu.Unlock()
		for _, uri := range uris {
			if server.unsubscribe(uri, session) {
				s.spawn(func(ctx context.Context) { server.giveBack(ctx, uri) })
			}
		}
	}
}

// giveBack ends a subscription of a server that runs, unless a session wants it
// again.
func (s *server) giveBack(ctx context.Context, uri string) {
	end, err := s.turn(ctx, uri)
	if err != nil {
		return // the server is being stopped
	}
	defer end()
	s.mu.Lock()
	c, wanted := s.conn, len(s.subscribers[uri]) > 0
	s.mu.Unlock()
	if wanted || c == nil || !c.alive() {
		return
	}
	// A server that does not answer is none that sends updates.
	_, _ = c.request(ctx, nil, "resources/unsubscribe", uriParams(uri), s.spec().InitTimeout)
}

// resubscribe asks a fresh connection for what sessions have subscribed to.
func (s *server) resubscribe(ctx context.Context, c *conn) {
	s.mu.Lock()
	uris := slices.Collect(maps.Keys(s.subscribers))
	s.mu.Unlock()
	for _, uri := range uris {
		end, err := s.turn(ctx, uri)
		if err != nil {
			return
		}
		if s.subscribed(uri) {
			if _, err := c.request(ctx, nil, "resources/subscribe", uriParams(uri), s.spec().InitTimeout); err != nil {
				s.warn("subscribe to %s again: %v", uri, err)
			}
		}
		end()
	}
}

// turn waits until nobody else tells the server about its updates of a resource.
// What it heard last is then what the subscribers want: also of a server that
// works on two requests at once.
func (s *server) turn(ctx context.Context, uri string) (end func(), err error) {
	for {
		s.mu.Lock()
		busy := s.turns[uri]
		if busy == nil {
			mine := make(chan struct{})
			s.turns[uri] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.turns, uri)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// subscribe reports whether there was no subscriber before.
func (s *server) subscribe(uri string, session *wire.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(s.subscribers[uri]) == 0
	if first {
		s.subscribers[uri] = map[*wire.Session]bool{}
	}
	s.subscribers[uri][session] = true
	return first
}

// unsubscribe reports whether the session was the last subscriber.
func (s *server) unsubscribe(uri string, session *wire.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.subscribers[uri][session] {
		return false
	}
	delete(s.subscribers[uri], session)
	if len(s.subscribers[uri]) > 0 {
		return false
	}
	delete(s.subscribers, uri)
	return true
}

// subscribed reports whether any session is.
func (s *server) subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subscribers[uri]) > 0
}

// resourceUpdated implements observer: subscribers of the resource, or of one
// that contains it, are told.
func (s *server) resourceUpdated(params json.RawMessage) {
	uri, _ := wire.String(wire.Member(params, "uri"))
	told := map[*wire.Session]bool{}
	s.mu.Lock()
	for subscribed, sessions := range s.subscribers {
		if uri == subscribed || strings.HasPrefix(uri, strings.TrimSuffix(subscribed, "/")+"/") {
			for session := range sessions {
				told[session] = true
			}
		}
	}
	s.mu.Unlock()
	for session := range told {
		session.Notify("notifications/resources/updated", params)
	}
}

func uriParams(uri string) json.RawMessage {
	return append(append(json.RawMessage(`{"uri":`), wire.Quote(uri)...), '}')
}
