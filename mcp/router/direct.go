package router

import (
	"encoding/json"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// NewDirect returns the router of direct mode, in which every tool of every
// server is listed as server__tool.
func NewDirect(options Options) *Router {
	r := newRouter(options)
	r.served = true
	if options.Search != nil {
		r.builtins = append(r.builtins, options.Search.describeTool(true).only(func() bool { return r.settings().Deferred }))
	}
	if options.Pages != nil {
		r.builtins = append(r.builtins, options.Pages.Builtin().only(func() bool { return r.settings().DirectTruncate }))
	}
	return r
}

// only is a built-in tool that exists while a condition holds.
func (b Builtin) only(holds func() bool) Builtin {
	definition := b.Definition
	b.Definition = func(caller auth.Caller) json.RawMessage {
		if !holds() {
			return nil
		}
		return definition(caller)
	}
	return b
}

// defineTool is the definition of a server's tool under its public name.
func (r *Router) defineTool(item *catalog.Item, public string) json.RawMessage {
	definition := catalog.RenderTool(item, public)
	s := r.settings()
	if s.Deferred {
		definition = deferred(definition, item)
	}
	if s.Deferred || s.DirectTruncate {
		// What is cut does not fit the schema any more.
		definition = wire.DeleteMember(definition, "outputSchema")
	}
	return definition
}

// deferred is a definition with a signature in its description in place of the
// schema of its arguments.
func deferred(definition json.RawMessage, item *catalog.Item) json.RawMessage {
	sig, _ := signature(item)
	text, _ := wire.String(wire.Member(definition, "description"))
	definition = wire.SetMember(definition, wire.Quote(text+"\n"+sig), "description")
	return wire.SetMember(definition, json.RawMessage(`{"type":"object"}`), "inputSchema")
}
