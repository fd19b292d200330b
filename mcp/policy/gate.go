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
	"time"

	"mcpproxy/mcp/activity"
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
	// Kind is what is used. Verify judges the use once more, when the server was
	// connected to for it and has said what it offers now; nil for no need. Unseen
	// has it asked in any case: the use was judged by a name alone.
	Kind   catalog.Kind
	Verify func(context.Context) *wire.Error
	Unseen bool
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

// Rules are all servers' rules, the profiles and the limits of the whole.
type Rules struct {
	Servers  map[string]Rule
	Profiles map[string]Profile
	Total    Limit
}

// Options are what a Gate works with besides the servers and their rules. The
// zero value is usable.
type Options struct {
	// Approvals know which items a person has to approve first; nil where none
	// has to be.
	Approvals *Approvals
	// Judged is told what was found new when a catalog was judged, and why it
	// could not be, in which case what is new stays held. It may be nil.
	Judged func(events []Event, err error)
	// Sanitise changes the result of a tool before the client sees it; nil leaves
	// all results as they are.
	Sanitise func(tool catalog.Ref, result json.RawMessage) json.RawMessage
	// Record is given every tool call and refusal when it has ended; it must not
	// block. It may be nil.
	Record func(activity.Record)
	// Now is the clock of the records; nil means time.Now.
	Now func() time.Time
}

// Gate stands between the modes and the servers.
type Gate struct {
	upstreams Upstreams
	options   Options
	law       atomic.Pointer[law]
	judged    atomic.Pointer[catalog.Snapshot] // the last that the approvals know
	schemas   schemas
}

// law is Rules with the slots that their limits give.
type law struct {
	Rules
	serial    int64 // differs from that of every other law of this Gate
	total     *slots
	perServer map[string]*slots
}

// NewGate returns the Gate in front of upstreams.
func NewGate(upstreams Upstreams, rules Rules, options Options) *Gate {
	if options.Now == nil {
		options.Now = time.Now
	}
	g := &Gate{upstreams: upstreams, options: options}
	g.judged.Store(catalog.NewSnapshot(nil))
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
	next := &law{Rules: rules, serial: old.serial + 1, total: old.total.under(rules.Total), perServer: map[string]*slots{}}
	for name, rule := range rules.Servers {
		next.perServer[name] = old.perServer[name].under(rule.Limit)
	}
	g.law.Store(next)
}

// judgeMost bounds how long a locked store keeps what is new from being judged:
// it is held, and judged the next time.
const judgeMost = 3 * time.Second

// Catalog returns what all servers offer. It holds more than a caller may see:
// ask May for each item that is shown.
func (g *Gate) Catalog(ctx context.Context) *catalog.Snapshot {
	snapshot := g.upstreams.Snapshot(ctx)
	if a := g.options.Approvals; a != nil {
		limited, cancel := context.WithTimeout(ctx, judgeMost)
		events, err := a.Judge(limited, snapshot)
		cancel()
		if g.options.Judged != nil && (len(events) > 0 || err != nil && ctx.Err() == nil) {
			g.options.Judged(events, err)
		}
	}
	g.judged.Store(snapshot)
	return snapshot
}

// Loaded is what Catalog returned last, without waiting: empty before.
func (g *Gate) Loaded() *catalog.Snapshot { return g.judged.Load() }

// View names what decides, besides the catalog, what the caller may see: it
// differs after every change of that. It is for this process only.
func (g *Gate) View(caller auth.Caller) string {
	return fmt.Sprintf("%d %p %s", g.law.Load().serial, g.options.Approvals.present(), caller.Key())
}

// Stamp names what the caller may see of the catalog: equal stamps mean equal
// items. It is cheaper than the catalog, and empty where that is needed to tell.
func (g *Gate) Stamp(ctx context.Context, caller auth.Caller) string {
	stamp := g.upstreams.Stamp(ctx)
	if stamp == "" {
		return ""
	}
	approved := ""
	if a := g.options.Approvals; a != nil && a.Usable() {
		if approved = a.Stamp(ctx); approved == "" {
			return ""
		}
	}
	law := g.law.Load()
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", stamp, approved, caller.Key())
	if profile, ok := law.Profiles[caller.Profile]; ok {
		fmt.Fprintf(sum, " %q %v", profile.Servers, profile.Tier)
	}
	for _, name := range slices.Sorted(maps.Keys(law.Servers)) {
		r := law.Servers[name]
		// Of the lists, one that is empty is not one that is missing.
		fmt.Fprintf(sum, " %q %t %t %t %#v %#v %v %t %t", name, r.Invalid != nil, r.Disabled, r.Quarantined,
			r.EnabledTools, r.DisabledTools, r.Unannotated, r.HideResources, r.HidePrompts)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Settle gives servers of which nothing is known yet a bounded time to say what
// they offer.
func (g *Gate) Settle(ctx context.Context) { g.upstreams.Settle(ctx) }

// SetLevel asks all servers for log messages of that level and above.
func (g *Gate) SetLevel(level string) { g.upstreams.SetLevel(level) }

// Notified takes a notification of the client to the servers it concerns.
func (g *Gate) Notified(method string, params json.RawMessage) { g.upstreams.Notified(method, params) }
