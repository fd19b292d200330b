// Package policy decides whether a caller may use an item in this way. Its
// [Gate] is the only way from a mode to an upstream.
//
// It refuses to know what modes look like and how upstreams are reached. A Gate
// starts nothing and needs no closing.
package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Upstreams are the running servers behind the Gate.
type Upstreams interface {
	// Snapshot returns what all servers offer, without starting any.
	Snapshot(ctx context.Context) *catalog.Snapshot
	// Loaded is Snapshot without waiting for the store.
	Loaded() *catalog.Snapshot
	// Stamp names the content of Snapshot without making it; "" if it cannot.
	Stamp(ctx context.Context) string
	// Settle starts servers of which nothing is known and waits a bounded time.
	Settle(ctx context.Context)
	// Do sends a request to a server.
	Do(ctx context.Context, r Request) (json.RawMessage, *wire.Error)
	// Start is Do without waiting, where that is possible.
	Start(r Request, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool)
	// Subscribe and Unsubscribe route updates of one resource to the session.
	Subscribe(ctx context.Context, r Request, uri string) (json.RawMessage, *wire.Error)
	Unsubscribe(ctx context.Context, r Request, uri string) (json.RawMessage, *wire.Error)
	// SetLevel asks all servers for log messages.
	SetLevel(level string)
	// Notified takes a client's notification to the servers it concerns.
	Notified(method string, params json.RawMessage)
}

// Request is one request on its way to a server.
type Request struct {
	Session *wire.Session
	Server  string
	Method  string
	Params  json.RawMessage
	// Repeatable tells that the request may be made again when the server died
	// while working on it.
	Repeatable bool
}

// Rule is what the configuration says of one server.
type Rule struct {
	Alias         string // what public names start with instead of the name
	Invalid       error  // why the entry cannot be used
	Disabled      bool
	Quarantined   bool
	EnabledTools  []string // nil: all but DisabledTools
	DisabledTools []string
	Unannotated   catalog.Tier
	HideResources bool
	HidePrompts   bool
	Limit         Limit
}

// Rules are all servers' rules and the limits of the whole.
type Rules struct {
	Servers map[string]Rule
	Total   Limit
}

// Gate stands between the modes and the servers.
type Gate struct {
	upstreams Upstreams
	law       atomic.Pointer[law]
}

// law is Rules with the slots that their limits give.
type law struct {
	Rules
	total     *slots
	perServer map[string]*slots
}

// NewGate returns the Gate in front of upstreams.
func NewGate(upstreams Upstreams, rules Rules) *Gate {
	g := &Gate{upstreams: upstreams}
	g.SetRules(rules)
	return g
}

// SetRules replaces the rules; uses under way go on, and count against a limit
// that stays as it was.
func (g *Gate) SetRules(rules Rules) {
	old := g.law.Load()
	if old == nil {
		old = &law{}
	}
	next := &law{Rules: rules, total: old.total.under(rules.Total), perServer: map[string]*slots{}}
	for name, rule := range rules.Servers {
		next.perServer[name] = old.perServer[name].under(rule.Limit)
	}
	g.law.Store(next)
}

// Catalog returns what all servers offer. It holds more than a caller may see:
// ask May for each item that is shown.
func (g *Gate) Catalog(ctx context.Context) *catalog.Snapshot { return g.upstreams.Snapshot(ctx) }

// Loaded is Catalog without waiting: empty until Catalog was called once.
func (g *Gate) Loaded() *catalog.Snapshot { return g.upstreams.Loaded() }

// Stamp names what the caller may see of the catalog: equal stamps mean equal
// items. It is cheaper than the catalog, and empty where that is needed to tell.
func (g *Gate) Stamp(ctx context.Context, caller auth.Caller) string {
	stamp := g.upstreams.Stamp(ctx)
	if stamp == "" {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %v", stamp, caller)
	for _, name := range slices.Sorted(maps.Keys(g.law.Load().Servers)) {
		r := g.law.Load().Servers[name]
		// Of the lists, one that is empty is not one that is missing.
		fmt.Fprintf(sum, " %q %t %t %t %#v %#v %v %t %t", name, r.Invalid != nil, r.Disabled, r.Quarantined,
			r.EnabledTools, r.DisabledTools, r.Unannotated, r.HideResources, r.HidePrompts)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Settle gives servers of which nothing is known yet a bounded time to say what
// they offer.
func (g *Gate) Settle(ctx context.Context) { g.upstreams.Settle(ctx) }

// Tier is the tier that the use of an item needs; reading is enough for
// anything that is no tool.
func (g *Gate) Tier(item *catalog.Item) catalog.Tier {
	if item.Kind != catalog.Tool {
		return catalog.Read
	}
	return item.Tier(g.law.Load().Servers[item.Server].Unannotated)
}

// May reports whether the caller can see and use the item.
func (g *Gate) May(caller auth.Caller, item *catalog.Item) bool {
	return g.refusal(caller, item) == nil
}

// refusal says why a caller cannot use an item, nil if it can.
func (g *Gate) refusal(caller auth.Caller, item *catalog.Item) *wire.Error {
	if refusal := g.serverRefusal(item.Server); refusal != nil {
		return refusal
	}
	rule := g.law.Load().Servers[item.Server]
	switch {
	case item.Kind == catalog.Tool && !rule.toolEnabled(item.Name):
		return wire.Errorf(wire.CodeRefused, "tool %s of server %s is disabled by the configuration (enabled_tools, disabled_tools)", item.Name, item.Server)
	case item.Kind == catalog.Prompt && rule.HidePrompts:
		return wire.Errorf(wire.CodeRefused, "prompts of server %s are not exposed (expose_prompts)", item.Server)
	case item.Kind != catalog.Tool && item.Kind != catalog.Prompt && rule.HideResources:
		return wire.Errorf(wire.CodeRefused, "resources of server %s are not exposed (expose_resources)", item.Server)
	case g.Tier(item) > caller.Tier:
		return wire.Errorf(wire.CodeRefused, "tool %s of server %s needs the permission %q", item.Name, item.Server, g.Tier(item))
	}
	return nil
}

// serverRefusal says why a server cannot be used at all, nil if it can.
func (g *Gate) serverRefusal(server string) *wire.Error {
	rule, known := g.law.Load().Servers[server]
	switch {
	case !known:
		return wire.Errorf(wire.CodeRefused, "server %s is not configured", server)
	case rule.Disabled:
		return wire.Errorf(wire.CodeRefused, "server %s is disabled; to use it: mcpproxy enable %s", server, server)
	case rule.Invalid != nil:
		return wire.Errorf(wire.CodeRefused, "server %s cannot be used: %v", server, rule.Invalid)
	case rule.Quarantined:
		return wire.Errorf(wire.CodeRefused, "server %s is quarantined; a person has to review it and set \"quarantined\": false in the configuration file", server)
	}
	return nil
}

func (r Rule) toolEnabled(name string) bool {
	if r.EnabledTools != nil {
		return slices.Contains(r.EnabledTools, name)
	}
	return !slices.Contains(r.DisabledTools, name)
}

// Use is one use of an item by a caller.
type Use struct {
	Caller  auth.Caller
	Session *wire.Session
	Item    *catalog.Item
	Method  string
	Params  json.RawMessage
}

// Do lets a permitted use through to the server. A refusal has CodeRefused and
// says what would permit it; a use above a concurrency limit has CodeBusy.
func (g *Gate) Do(ctx context.Context, u Use) (json.RawMessage, *wire.Error) {
	if refusal := g.refusal(u.Caller, u.Item); refusal != nil {
		return nil, refusal
	}
	release, busy := g.admit(ctx, u.Item.Server)
	if busy != nil {
		return nil, busy
	}
	defer release()
	uri, _ := wire.String(wire.Member(u.Params, "uri"))
	switch u.Method {
	case "resources/subscribe":
		return g.upstreams.Subscribe(ctx, u.request(), uri)
	case "resources/unsubscribe":
		return g.upstreams.Unsubscribe(ctx, u.request(), uri)
	}
	return g.upstreams.Do(ctx, u.request())
}

// Start is Do for a use that can be let through without waiting for anything;
// otherwise it does nothing and reports false, and Do says why or waits. done is
// called once.
func (g *Gate) Start(u Use, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	if g.refusal(u.Caller, u.Item) != nil {
		return nil, false
	}
	release, free := g.admitNow(u.Item.Server)
	if !free {
		return nil, false
	}
	cancel, started = g.upstreams.Start(u.request(), func(result json.RawMessage, failure *wire.Error) {
		release()
		done(result, failure)
	})
	if !started {
		release()
	}
	return cancel, started
}

func (u *Use) request() Request {
	repeatable := u.Item.Kind != catalog.Tool || u.Item.Repeatable()
	return Request{Session: u.Session, Server: u.Item.Server, Method: u.Method, Params: u.Params, Repeatable: repeatable}
}

// Explain says why a server that the catalog holds nothing of cannot be used,
// nil if nothing forbids it. server is its name or its alias.
func (g *Gate) Explain(server string) *wire.Error {
	for name, rule := range g.law.Load().Servers {
		if server != "" && (server == name || server == rule.Alias) {
			return g.serverRefusal(name)
		}
	}
	return nil
}

// SetLevel asks all servers for log messages of that level and above.
func (g *Gate) SetLevel(level string) { g.upstreams.SetLevel(level) }

// Notified takes a notification of the client to the servers it concerns.
func (g *Gate) Notified(method string, params json.RawMessage) { g.upstreams.Notified(method, params) }
