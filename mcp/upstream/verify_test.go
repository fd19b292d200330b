package upstream

import (
	"context"
	"testing"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// TestVerified: once the lists of a connection were read, a request is judged again
// only if it was judged by a name alone.
func TestVerified(t *testing.T) {
	c := &conn{}
	r := Request{Kind: catalog.Tool, Verify: func(context.Context) *wire.Error { return nil }}
	unseen := r
	unseen.Unseen = true
	if c.verified(r) || c.verified(unseen) || !c.verified(Request{Kind: catalog.Tool}) {
		t.Error("before the lists were read")
	}
	c.readings.read(catalog.Prompt)
	if c.verified(r) {
		t.Error("after another list was read")
	}
	c.readings.read(catalog.Tool)
	if !c.verified(r) || c.verified(unseen) {
		t.Error("after the list was read")
	}
}
