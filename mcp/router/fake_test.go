package router

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// upstreams are the servers behind a router in a test: a fixed catalog, and
// answers by method.
type upstreams struct {
	answers map[string]json.RawMessage // by method; else {}
	failure *wire.Error                // instead of any answer
	stamp   string
	settled func() // called by Settle

	mu       sync.Mutex
	snapshot *catalog.Snapshot
	got      []policy.Request
	level    string
	notified []string
}

func (u *upstreams) set(servers ...*catalog.Server) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.snapshot = catalog.NewSnapshot(servers)
}

func (u *upstreams) Snapshot(context.Context) *catalog.Snapshot {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.snapshot
}

func (u *upstreams) Loaded() *catalog.Snapshot { return u.Snapshot(context.Background()) }

func (u *upstreams) Stamp(context.Context) string { return u.stamp }

func (u *upstreams) Settle(context.Context) {
	if u.settled != nil {
		u.settled()
	}
}

func (u *upstreams) Do(_ context.Context, r policy.Request) (json.RawMessage, *wire.Error) {
	u.mu.Lock()
	u.got = append(u.got, r)
	u.mu.Unlock()
	if u.failure != nil {
		return nil, u.failure
	}
	if a := u.answers[r.Method]; a != nil {
		return a, nil
	}
	return json.RawMessage(`{}`), nil
}

// Start leaves all to Do.
func (u *upstreams) Start(policy.Request, func(json.RawMessage, *wire.Error)) (func(error), bool) {
	return nil, false
}

func (u *upstreams) Subscribe(ctx context.Context, r policy.Request, _ string) (json.RawMessage, *wire.Error) {
	return u.Do(ctx, r)
}

func (u *upstreams) Unsubscribe(ctx context.Context, r policy.Request, _ string) (json.RawMessage, *wire.Error) {
	return u.Do(ctx, r)
}

func (u *upstreams) SetLevel(level string) { u.level = level }

func (u *upstreams) Notified(method string, _ json.RawMessage) {
	u.notified = append(u.notified, method)
}

// count is the number of requests that reached a server.
func (u *upstreams) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.got)
}

// last is the last request that reached a server.
func (u *upstreams) last() policy.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.got) == 0 {
		return policy.Request{}
	}
	return u.got[len(u.got)-1]
}

// client is the peer of a session that notes what it is told.
type client struct {
	mu   sync.Mutex
	told []string
}

func (c *client) Notify(method string, _ json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, method)
}

func (c *client) Call(context.Context, string, json.RawMessage) (json.RawMessage, *wire.Error) {
	return nil, wire.Errorf(wire.CodeMethodNotFound, "a client in a test answers nothing")
}

func (c *client) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.told...)
}

// offer makes a server; an item is "tool:name", "resource:uri", "template:uri
// template" or "prompt:name".
func offer(name string, items ...[2]string) *catalog.Server {
	s := &catalog.Server{Name: name, Prefix: name, Known: true, HasResources: true, Completions: true}
	for _, it := range items {
		kind := catalog.Kind(it[0])
		raw := fmt.Appendf(nil, `{"name":%q}`, it[1])
		s.SetItems(kind, append(s.Items(kind), catalog.New(catalog.Ref{Server: name, Kind: kind, Name: it[1]}, raw, nil)))
	}
	return s
}

// direct is a router in front of servers, with rules for all of them.
func direct(t *testing.T, u *upstreams, servers ...*catalog.Server) *Router {
	t.Helper()
	u.set(servers...)
	rules := policy.Rules{Servers: map[string]policy.Rule{}}
	for _, s := range servers {
		rules.Servers[s.Name] = policy.Rule{Unannotated: catalog.Destructive}
	}
	return NewDirect(Options{Gate: policy.NewGate(u, rules, policy.Options{}), Callers: auth.Person(""), Warn: func(text string) { t.Logf("warning: %s", text) }})
}

func session() *wire.Session { return wire.NewSession("test", &client{}) }
