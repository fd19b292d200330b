package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
)

// Entry is one server as an instance hands it to the hub; nothing in it refers
// to the surroundings of the instance. It holds secrets.
type Entry struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	// Announced are the capabilities that the server is told of, a raw object.
	Announced json.RawMessage `json:"announced"`

	Command string   `json:"command"` // absolute
	Args    []string `json:"args"`
	Env     []string `json:"env"` // complete, NAME=VALUE
	Dir     string   `json:"dir"`
	Secrets []string `json:"secrets"` // to be masked

	Times
}

// Sessions are the sessions of hosted servers, which are told what is news to
// them. Its methods must not block.
type Sessions interface {
	// ListsChanged is told which lists of a server are no longer what they were.
	ListsChanged(id string, kinds []catalog.Kind)
	// HelloChanged is told what a server that was started again answered to
	// initialize, where it had answered something else before.
	HelloChanged(id string, result json.RawMessage)
}

// Times are the settings of a server that the hub goes by, in nanoseconds; see
// config.Settings. How long a call may take is the instance's business.
type Times struct {
	InitTimeout           time.Duration `json:"init_timeout"`
	HealthCheckInterval   time.Duration `json:"health_check_interval"`
	ToolDiscoveryInterval time.Duration `json:"tool_discovery_interval"`
}

func timesOf(s *config.Server) Times {
	return Times{s.InitTimeout, s.HealthCheckInterval, s.ToolDiscoveryInterval}
}

// entry is the server as the hub gets to know it.
func (s *server) entry(r config.Resolved) Entry {
	return Entry{
		Name: s.name, Fingerprint: s.fingerprint, Announced: s.announced(),
		Command: r.Command, Args: r.Args, Env: r.Env, Dir: r.Dir, Secrets: r.Secrets,
		Times: timesOf(s.spec()),
	}
}

func (e *Entry) resolved() config.Resolved {
	return config.Resolved{Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir, Secrets: e.Secrets}
}

// spec is the entry as a configuration has it, as far as a Set goes by it.
func (e *Entry) spec() config.Server {
	s := config.Server{Name: e.Name}
	s.InitTimeout, s.HealthCheckInterval, s.ToolDiscoveryInterval = e.InitTimeout, e.HealthCheckInterval, e.ToolDiscoveryInterval
	return s
}

// Host adds a server under an id, for any number of sessions, unless it is there
// already; nothing is started.
func (s *Set) Host(id string, e Entry) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.server(id) != nil {
		return
	}
	old := s.roster.Load()
	next := newRoster()
	for _, server := range old.list {
		next.add(server)
	}
	n := newServer(s, e.spec())
	n.id, n.hosted, n.fingerprint = id, &e, e.Fingerprint
	n.log.mask(e.Secrets)
	s.restoreFresh(s.ctx, []*server{n}) // so that an empty list is doubted
	next.add(n)
	s.roster.Store(next)
}

// Adjust takes over the times of a hosted server while it runs.
func (s *Set) Adjust(id string, times Times) {
	if server := s.server(id); server != nil {
		server.adjust((&Entry{Name: server.name, Times: times}).spec())
	}
}

// Drop stops and forgets a hosted server; it returns when its process is gone.
func (s *Set) Drop(ctx context.Context, id string) {
	s.applying.Lock()
	old := s.roster.Load()
	next := newRoster()
	for _, server := range old.list {
		if server.id != id {
			next.add(server)
		}
	}
	gone := old.byID[id]
	if gone != nil {
		s.leave(gone)
	}
	s.roster.Store(next)
	s.applying.Unlock()
	if gone == nil {
		return
	}
	gone.retire()
	select {
	case <-gone.gone:
	case <-ctx.Done():
	}
}

// announce has the sessions of a hosted server told of its answer to initialize
// if that has changed. Its lists are told of later, and only one attempt to
// connect does this at a time.
func (s *server) announce(h *hello) {
	s.mu.Lock()
	changed := s.hosted != nil && s.hello != nil && !bytes.Equal(s.hello.result, h.result)
	s.mu.Unlock()
	if changed && s.set.options.Sessions != nil {
		s.set.options.Sessions.HelloChanged(s.id, h.result)
	}
}

// Hello is what a hosted server answered to initialize.
type Hello struct {
	Result json.RawMessage
	PID    int
}

// Connect starts a hosted server if it does not run.
func (s *Set) Connect(ctx context.Context, id string) (Hello, error) {
	server := s.server(id)
	if server == nil {
		return Hello{}, errRetired
	}
	if _, err := server.connected(ctx); err != nil {
		return Hello{}, err
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	return Hello{Result: server.hello.result, PID: server.pid()}, nil
}

// Permanent reports whether an error of Connect stays until somebody changes
// something.
func Permanent(err error) bool { return permanent(err) }

// Listed returns the raw elements of a list as a hosted server last gave it; it
// waits for the first reading.
func (s *Set) Listed(ctx context.Context, id string, kind catalog.Kind) ([]json.RawMessage, error) {
	server := s.server(id)
	if server == nil {
		return nil, errRetired
	}
	for {
		c, err := server.connected(ctx)
		if err != nil {
			return nil, err
		}
		server.mu.Lock()
		elements, read := server.elements[kind]
		failed, news := server.unread[kind], server.news
		server.mu.Unlock()
		switch {
		case read:
			return elements, nil
		case failed != nil:
			return nil, fmt.Errorf("server %s: %s could not be read: %s", server.name, kind.ListMethod(), server.log.clean(failed.Error()))
		}
		select {
		case <-news:
		case <-c.link.Done():
			return nil, fmt.Errorf("server %s ended before it answered %s", server.name, kind.ListMethod())
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// SetLevelOf asks a hosted server for log messages of that level and above.
func (s *Set) SetLevelOf(id, level string) {
	if server := s.server(id); server != nil {
		server.wantLevel(level)
	}
}

// NotifiedBy takes a notification of a session to its hosted server; it never
// blocks.
func (s *Set) NotifiedBy(id, method string, params json.RawMessage) {
	if server := s.server(id); server != nil {
		server.notified(method, params)
	}
}

// Users records for how many sessions a hosted server runs.
func (s *Set) Users(id string, n int) {
	server := s.server(id)
	if server == nil {
		return
	}
	server.mu.Lock()
	server.users = n
	running := server.pid() != 0
	server.mu.Unlock()
	if running {
		server.record()
	}
}

// Processes returns the pid of each server that runs as a child, by id.
func (s *Set) Processes() map[string]int {
	pids := map[string]int{}
	for _, server := range s.servers() {
		server.mu.Lock()
		if pid := server.pid(); pid != 0 {
			pids[server.id] = pid
		}
		server.mu.Unlock()
	}
	return pids
}
