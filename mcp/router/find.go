package router

import (
	"context"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// wanted is what a client asks for by name.
type wanted struct {
	kind catalog.Kind
	name string
	// lookup finds it among what the servers offer, nil where it is not.
	lookup func(*catalog.Snapshot) *catalog.Item
	// prefix and own are the name taken apart, for a server that has listed nothing
	// yet; "" where it cannot be.
	prefix, own string
	// named tells that prefix may also be the name of a server that has an alias.
	named bool
	// check is a rule of the mode's own for what is there, which comes before what a
	// person has to review; nil is none.
	check func(*catalog.Item) *wire.Error
}

// public is what is called by its public name.
func (r *Router) public(a asker, kind catalog.Kind, name string) wanted {
	max := r.maxName(a.Session)
	w := wanted{kind: kind, name: name, lookup: func(offered *catalog.Snapshot) *catalog.Item { return offered.Names(kind, max).Lookup(name) }}
	w.prefix, w.own, _ = catalog.SplitPublic(name)
	return w
}

// find returns the item of a public name if the asker may use it, as seek does.
func (r *Router) find(ctx context.Context, a asker, kind catalog.Kind, name string) (*catalog.Item, *wire.Error) {
	return r.seek(ctx, a, r.public(a, kind, name))
}

// seek returns what is wanted if the asker may use it, and records where it may
// not. To an asker who is not told why not, what it may not use does not exist,
// and takes as long to be looked for. Of a server whose lists were never read the
// name is taken apart instead, and the server decides.
func (r *Router) seek(ctx context.Context, a asker, w wanted) (*catalog.Item, *wire.Error) {
	gate := r.options.Gate
	offered := gate.Catalog(ctx)
	item := w.lookup(offered)
	usable := item != nil && gate.May(a.caller, item)
	if !usable {
		gate.Settle(ctx)
		offered = gate.Catalog(ctx)
		item = w.lookup(offered)
		usable = item != nil && gate.May(a.caller, item)
	}
	var refusal *wire.Error
	if item != nil && w.check != nil && (usable || gate.Explained(a.caller)) {
		refusal = w.check(item)
	}
	switch {
	case refusal != nil:
		gate.Refused(a.use(item, w.kind.UseMethod(), nil), refusal)
		return nil, refusal
	case usable:
		return item, nil
	case !gate.Explained(a.caller): // what it is not told is not put into words
	case item != nil:
		refusal = gate.Refusal(a.caller, item)
	default:
		if item, refusal = r.unlisted(offered, w); item != nil && refusal == nil {
			return item, nil
		}
	}
	name := clipped(w.name, maxEcho)
	missing := wire.Errorf(wire.CodeInvalidParams, "%s '%s' not found, or access denied", w.kind, name)
	if item == nil {
		item = &catalog.Item{Ref: catalog.Ref{Kind: w.kind, Name: name}}
	}
	if refusal == nil {
		refusal = missing
	}
	gate.Refused(a.use(item, w.kind.UseMethod(), nil), refusal)
	if !gate.Explained(a.caller) {
		return nil, missing
	}
	return nil, refusal
}

// unlisted returns an item of which only the name is known, of a server that has
// listed nothing yet, or why its server has not; nil, nil where no server could
// have it.
func (r *Router) unlisted(offered *catalog.Snapshot, w wanted) (*catalog.Item, *wire.Error) {
	if w.own == "" {
		return nil, nil
	}
	for _, server := range offered.Servers() {
		if !server.Known && (server.Prefix == w.prefix || w.named && server.Name == w.prefix) {
			return &catalog.Item{Ref: catalog.Ref{Server: server.Name, Kind: w.kind, Name: w.own}}, nil
		}
	}
	return nil, r.options.Gate.Explain(w.prefix)
}

// eitherName is the tool that is called server:tool or server__tool, where the
// server may go by its alias, nil for none. Servers out of reach are not looked
// through: that would take longer than for a server that is not there.
func eitherName(offered *catalog.Snapshot, max int, name string, reached func(server string) bool) *catalog.Item {
	if item := offered.Names(catalog.Tool, max).Lookup(name); item != nil {
		return item
	}
	for _, mark := range []string{nameMark, catalog.Separator} {
		prefix, own, ok := strings.Cut(name, mark)
		if !ok {
			continue
		}
		for _, server := range offered.Servers() {
			if server.Name != prefix && server.Prefix != prefix || !reached(server.Name) {
				continue
			}
			if item := toolOf(server, own); item != nil {
				return item
			}
		}
	}
	return nil
}

// toolOf is the tool of a server by its own name, or by the one that the
// configuration gives it.
func toolOf(server *catalog.Server, name string) *catalog.Item {
	var renamed *catalog.Item
	for _, tool := range server.Tools {
		if tool.Name == name {
			return tool
		}
		if o := tool.Override; o != nil && o.Name == name && name != "" {
			renamed = tool
		}
	}
	return renamed
}

// nameMark stands between server and tool in the names that models are given.
const nameMark = ":"

// fullName is the name of a tool as models are given it.
func fullName(item *catalog.Item) string { return item.Server + nameMark + item.Name }
