package policy

import (
	"context"
	"encoding/json"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// asking are servers that offer something and ask again before they do what is
// asked of them, as after a connection.
type asking struct {
	servers
	offered *catalog.Snapshot
	last    Request
}

func (s *asking) Snapshot(context.Context) *catalog.Snapshot { return s.offered }

func (s *asking) Do(ctx context.Context, r Request) (json.RawMessage, *wire.Error) {
	s.last = r
	if r.Verify != nil {
		if refusal := r.Verify(ctx); refusal != nil {
			return nil, refusal
		}
	}
	return s.servers.Do(ctx, r)
}

func (s *asking) Unsubscribe(ctx context.Context, r Request, uri string) (json.RawMessage, *wire.Error) {
	s.last = r
	return s.servers.Unsubscribe(ctx, r, uri)
}

// TestUseIsJudgedAgain: the rule that a mode gives with a use is asked about the
// tool as its server offers it now, and a use of a name alone is judged again in any
// case. To give up a subscription nothing is asked.
func TestUseIsJudgedAgain(t *testing.T) {
	server := &catalog.Server{Name: "s", Prefix: "s", Known: true}
	server.SetItems(catalog.Tool, []*catalog.Item{item("s", catalog.Tool, "t", `{"destructiveHint":true}`)})
	up := &asking{offered: catalog.NewSnapshot([]*catalog.Server{server})}
	g := NewGate(up, Rules{Servers: map[string]Rule{"s": {}}}, Options{})
	check := func(it *catalog.Item) *wire.Error {
		if g.Tier(it) > catalog.Read {
			return wire.Errorf(wire.CodeRefused, "too high")
		}
		return nil
	}
	before := item("s", catalog.Tool, "t", `{"readOnlyHint":true}`)
	named := &catalog.Item{Ref: before.Ref}
	for name, c := range map[string]struct {
		item    *catalog.Item
		check   func(*catalog.Item) *wire.Error
		refused bool
	}{
		"known before":   {before, check, true},
		"by name alone":  {named, check, true},
		"without a rule": {before, nil, false},
	} {
		_, failure := g.Do(t.Context(), Use{Caller: auth.Local(), Item: c.item, Method: "tools/call", Check: c.check})
		if refused := failure != nil; refused != c.refused {
			t.Errorf("%s: %v", name, failure)
		}
		if unseen := c.item.Raw == nil; up.last.Unseen != unseen {
			t.Errorf("%s: the request is unseen: %v", name, up.last.Unseen)
		}
	}
	g.Release(t.Context(), Use{Caller: reader(), Item: named, Method: "resources/unsubscribe", Check: check})
	if up.last.Verify != nil {
		t.Error("to give up a subscription a permission is asked for")
	}
}
