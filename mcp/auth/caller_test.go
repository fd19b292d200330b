package auth

import (
	"fmt"
	"testing"

	"mcpproxy/mcp/catalog"
)

func TestInScope(t *testing.T) {
	for name, c := range map[string]struct {
		caller Caller
		want   bool
	}{
		"nobody":         {Caller{}, false},
		"admin":          {Local(), true},
		"all":            {Caller{Kind: Agent, All: true}, true},
		"named":          {Caller{Kind: Agent, Servers: []string{"a", "s"}}, true},
		"other":          {Caller{Kind: Agent, Servers: []string{"a", "S"}}, false},
		"star as a name": {Caller{Kind: Agent, Servers: []string{"*"}}, false},
	} {
		if got := c.caller.InScope("s"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !Local().InScope("") || Local().Tier != catalog.Destructive {
		t.Error("the local user is limited")
	}
}

// TestKeyNamesAll changes everything about a caller, one thing at a time.
func TestKeyNamesAll(t *testing.T) {
	callers := []Caller{
		{},
		{Kind: Agent},
		{Kind: Anonymous},
		{Kind: Agent, Token: "a"},
		{Kind: Agent, Servers: []string{"a"}},
		{Kind: Agent, Servers: []string{"a", "b"}},
		{Kind: Agent, Servers: []string{"a b"}},
		{Kind: Agent, Servers: []string{`a" "b`}},
		{Kind: Agent, Servers: []string{"*"}},
		{Kind: Agent, All: true},
		{Kind: Agent, Tier: catalog.Write},
		{Kind: Agent, Tier: catalog.Destructive},
		{Kind: Agent, Pin: "p"},
		{Kind: Agent, Profile: "p"},
	}
	seen := map[string]Caller{}
	for _, c := range callers {
		if other, taken := seen[c.Key()]; taken {
			t.Errorf("%#v and %#v have the key %s", c, other, c.Key())
		}
		seen[c.Key()] = c
		if got := fmt.Sprintf("%v", c); got != c.Key() {
			t.Errorf("printed as %s", got)
		}
	}
}
