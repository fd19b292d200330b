package router

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"mcpproxy/mcp/catalog"
)

// manyTools is how many tools the strictest known clients take; what they do
// with more is drop them without a word.
const manyTools = 128

// rendered is a list reply and what it was made of.
type rendered struct {
	from *catalog.Snapshot
	view string // policy.Gate.View
	form string
	body json.RawMessage
}

// list answers a list request and remembers what the client was shown.
func (r *Router) list(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	if r.fromServers(kind) {
		r.options.Gate.Settle(ctx)
	}
	before := r.shown.changes.Load()
	body := r.stored(ctx, a, kind)
	r.shown.remember(kind, body)
	if r.shown.changes.Load() != before {
		// That change may have been compared with what the client knew before.
		r.shown.look()
	}
	return body
}

// fromServers reports whether a list holds what the servers offer.
func (r *Router) fromServers(kind catalog.Kind) bool { return kind != catalog.Tool || r.served }

// form names what decides a list besides the catalog and what the caller may see
// of it.
func (r *Router) form(a asker, kind catalog.Kind, own []json.RawMessage) string {
	s := r.settings()
	form := fmt.Sprintf("%s/%d/%s/%d", r.options.Mode, catalog.RenderVersion, kind, r.maxName(a.Session))
	if kind != catalog.Tool {
		return form
	}
	sum := sha256.New()
	for _, definition := range own {
		sum.Write(definition)
	}
	return fmt.Sprintf("%s/%t/%t/%x", form, s.Deferred, s.DirectTruncate, sum.Sum(nil)[:8])
}

// stored takes the reply from an earlier start where nothing has changed since;
// the catalog itself is then not needed yet.
func (r *Router) stored(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	if r.options.Lists == nil || !r.fromServers(kind) {
		return r.render(ctx, a, kind)
	}
	stamp := r.options.Gate.Stamp(ctx, a.caller)
	if stamp == "" {
		return r.render(ctx, a, kind)
	}
	var own []json.RawMessage
	if kind == catalog.Tool {
		own = r.builtins.definitions(a.caller)
	}
	key := r.form(a, kind, own) + "/" + stamp
	if body := r.options.Lists.Get(ctx, key); body != nil {
		return body
	}
	body := r.render(ctx, a, kind)
	if r.options.Gate.Stamp(ctx, a.caller) == stamp {
		r.options.Lists.Put(key, body) // unless a server said something new meanwhile
	}
	return body
}

// render makes the reply to a list request; it is made once per snapshot and
// view of it.
func (r *Router) render(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	var own []json.RawMessage
	if kind == catalog.Tool {
		own = r.builtins.definitions(a.caller)
	}
	if !r.fromServers(kind) {
		return listBody(kind, own)
	}
	snapshot := r.options.Gate.Catalog(ctx)
	form, view := r.form(a, kind, own), r.options.Gate.View(a.caller)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.rendered[kind]; old.from == snapshot && old.view == view && old.form == form {
		return old.body
	}
	names := snapshot.Names(kind, r.maxName(a.Session))
	for _, item := range names.Ordered() {
		if r.options.Gate.May(a.caller, item) {
			own = append(own, r.listed(item, names))
		}
	}
	body := listBody(kind, own)
	r.rendered[kind] = rendered{snapshot, view, form, body}
	if count := len(own); kind == catalog.Tool && count > manyTools && !r.crowded {
		r.crowded = true
		r.options.Warn(fmt.Sprintf("%d tools are listed, and some clients drop those above %d without a word; "+
			"fewer servers, or another --mode, would show fewer", count, manyTools))
	}
	return body
}

// listBody is the reply to a list request.
func listBody(kind catalog.Kind, definitions []json.RawMessage) json.RawMessage {
	size := 32
	for _, d := range definitions {
		size += len(d) + 1
	}
	body := append(append(append(make(json.RawMessage, 0, size), `{"`...), kind.ListMember()...), `":[`...)
	for i, d := range definitions {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, d...)
	}
	return append(body, `]}`...)
}

// listed is the definition of an item of a server as the client is shown it.
func (r *Router) listed(item *catalog.Item, names *catalog.Names) json.RawMessage {
	switch item.Kind {
	case catalog.Tool:
		return r.defineTool(item, names.Public(item))
	case catalog.Prompt:
		return catalog.RenderPrompt(item, names.Public(item))
	}
	return item.Raw
}
