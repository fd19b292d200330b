package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Use is one use of an item by a caller.
type Use struct {
	Caller  auth.Caller
	Session *wire.Session
	Item    *catalog.Item
	Method  string
	Params  json.RawMessage
	// Validate has the arguments of a tool checked against its schema first. One
	// that cannot be used lets everything pass.
	Validate bool
	// Check is a rule of the mode's own, which the item has passed. It is asked again
	// when the server has been connected to and offers something else; nil is none.
	Check func(*catalog.Item) *wire.Error
	// Mode is the mode by which it came, ID the client's request id, Variant the
	// tier of the tool that it came through and Intent what the client says that it
	// is for; all are only recorded.
	Mode            string
	ID              json.RawMessage
	Variant, Intent string
}

// Do lets a permitted use through to the server. A refusal has CodeRefused and
// says what would permit it; a use above a concurrency limit has CodeBusy.
func (g *Gate) Do(ctx context.Context, u Use) (json.RawMessage, *wire.Error) {
	began := g.options.Now()
	result, failure := g.do(ctx, u)
	g.record(&u, began, result, failure)
	return g.sanitised(&u, result), failure
}

// sanitised is a result as the client is to see it.
func (g *Gate) sanitised(u *Use, result json.RawMessage) json.RawMessage {
	if g.options.Sanitise == nil || result == nil || u.Item.Kind != catalog.Tool {
		return result
	}
	return g.options.Sanitise(u.Item.Ref, result)
}

func (g *Gate) do(ctx context.Context, u Use) (json.RawMessage, *wire.Error) {
	if refusal := g.Refusal(u.Caller, u.Item); refusal != nil {
		return nil, refusal
	}
	if invalid := g.invalidArguments(&u); invalid != nil {
		return nil, invalid
	}
	release, busy := g.admit(ctx, u.Item.Server)
	if busy != nil {
		return nil, busy
	}
	defer release()
	uri, _ := wire.String(wire.Member(u.Params, "uri"))
	switch u.Method {
	case "resources/subscribe":
		return g.upstreams.Subscribe(ctx, g.request(&u), uri)
	case "resources/unsubscribe":
		return g.upstreams.Unsubscribe(ctx, g.request(&u), uri)
	}
	return g.upstreams.Do(ctx, g.request(&u))
}

// Release ends a subscription whether or not the caller may use the resource:
// giving up needs no permission. The session hears no more of it also where the
// server does not answer.
func (g *Gate) Release(ctx context.Context, u Use) {
	r := g.request(&u)
	r.Verify = nil
	_, _ = g.upstreams.Unsubscribe(ctx, r, u.Item.Name)
}

// Start is Do for a use that can be let through without waiting for anything;
// otherwise it does nothing and reports false, and Do says why or waits. done is
// called once.
func (g *Gate) Start(u Use, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	if g.Refusal(u.Caller, u.Item) != nil || u.Validate {
		return nil, false
	}
	release, free := g.admitNow(u.Item.Server)
	if !free {
		return nil, false
	}
	began := g.options.Now()
	cancel, started = g.upstreams.Start(g.request(&u), func(result json.RawMessage, failure *wire.Error) {
		release()
		done(g.sanitised(&u, result), failure)
		g.record(&u, began, result, failure)
	})
	if !started {
		release()
	}
	return cancel, started
}

// invalidArguments says in what way the arguments do not fit the tool's schema,
// and shows the schema.
func (g *Gate) invalidArguments(u *Use) *wire.Error {
	if !u.Validate || u.Item.Kind != catalog.Tool {
		return nil
	}
	schema, args := wire.Member(u.Item.Raw, "inputSchema"), wire.Member(u.Params, "arguments")
	if args == nil {
		args = json.RawMessage("{}")
	}
	violations := g.schemas.violations(schema, args)
	if len(violations) == 0 {
		return nil
	}
	return wire.Errorf(wire.CodeInvalidParams, "the arguments do not fit tool %s of server %s: %s; its input schema is %s",
		u.Item.Name, u.Item.Server, strings.Join(violations, "; "), schema)
}

// request is what goes to the server.
func (g *Gate) request(u *Use) Request {
	r := Request{
		Session: u.Session, Server: u.Item.Server, Method: u.Method, Params: u.Params, Kind: u.Item.Kind,
		Repeatable: u.Item.Kind != catalog.Tool || u.Item.Repeatable(),
	}
	if g.options.Approvals != nil || u.Check != nil {
		r.Unseen = u.Item.Raw == nil
		r.Verify = func(ctx context.Context) *wire.Error { return g.verify(ctx, u) }
	}
	return r
}

// verify is Refusal, and the rule of the mode, by what the server offers now.
func (g *Gate) verify(ctx context.Context, u *Use) *wire.Error {
	present := u.Item
	if server := g.Catalog(ctx).Server(u.Item.Server); server != nil && server.Known {
		items := server.Items(u.Item.Kind)
		i := slices.IndexFunc(items, func(it *catalog.Item) bool { return it.Name == u.Item.Name })
		switch {
		case i >= 0:
			present = items[i]
		case u.Item.Raw != nil && !slices.Contains(server.Unread, u.Item.Kind):
			return refused("%s %s is no longer offered by server %s", u.Item.Kind, u.Item.Name, u.Item.Server)
		}
	}
	if refusal := g.Refusal(u.Caller, present); refusal != nil || u.Check == nil {
		return refusal
	}
	return u.Check(present)
}
