package router

import (
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"mcpproxy/mcp/auth"
	"mcpproxy/testdata/catalogue"
)

// maxSurface is what the tools of mode retrieve_tools may cost a model, in tokens
// of cl100k_base, with the management tools off.
const maxSurface = 1200

// TestSurface counts the result of tools/list; testdata/tokens measures the rest
// from outside.
func TestSurface(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	d := retrieve(t, auth.Person(""), nil, catalogue.Load(t)...)
	result, e := d.Handle(t.Context(), session(), "tools/list", nil)
	if e != nil {
		t.Fatal(e)
	}
	n, err := codec.Count(string(result))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tokens", n)
	if n > maxSurface {
		t.Errorf("%d tokens, want %d at most", n, maxSurface)
	}
}
