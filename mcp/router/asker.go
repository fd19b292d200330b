package router

import (
	"context"
	"encoding/json"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// Callers say who the client of a session is.
type Callers interface {
	// Caller is who asks now; the error is for the client. What an agent may do
	// can change with every request.
	Caller(ctx context.Context) (auth.Caller, error)
	// Present is Caller where that needs no waiting.
	Present() (caller auth.Caller, ok bool)
}

// asker is the client of one request.
type asker struct {
	*wire.Session
	caller auth.Caller
	id     json.RawMessage // of the request
	meta   json.RawMessage // _meta of a call
	mode   string
	// variant is the tier of the tool that a call goes through, intent what the
	// client says that it is for.
	variant, intent string
}

// asker finds out who asks.
func (r *Router) asker(ctx context.Context, s *wire.Session) (asker, *wire.Error) {
	caller, err := r.options.Callers.Caller(ctx)
	if err != nil {
		return asker{}, wire.Errorf(wire.CodeRefused, "%v", err)
	}
	return asker{Session: s, caller: caller, id: wire.RequestID(ctx), mode: r.options.Mode}, nil
}

// use is the use of an item by the asker.
func (a asker) use(item *catalog.Item, method string, params json.RawMessage) policy.Use {
	return policy.Use{
		Caller: a.caller, Session: a.Session, Item: item, Method: method, Params: params,
		Mode: a.mode, ID: a.id, Variant: a.variant, Intent: a.intent,
	}
}
