package policy

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
)

// TestTiers goes through every combination of hints, unannotated_tools and
// permission, as testdata/tiers.txt has them.
func TestTiers(t *testing.T) {
	text, err := os.ReadFile("testdata/tiers.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Fields(strings.ReplaceAll(line, "|", ""))
		if strings.HasPrefix(line, "#") {
			continue
		}
		if rows++; len(cells) != 7 {
			t.Fatalf("%d cells in %q", len(cells), line)
		}
		var hints []string
		for i, name := range []string{"readOnlyHint", "destructiveHint"} {
			if cells[i] != "-" {
				hints = append(hints, `"`+name+`":`+cells[i])
			}
		}
		tool := item("s", catalog.Tool, "t", "{"+strings.Join(hints, ",")+"}")
		rules := Rules{
			Servers:  map[string]Rule{"s": {Unannotated: catalog.ParseTier(cells[2])}},
			Profiles: map[string]Profile{},
		}
		permissions := []string{"read", "write", "destructive"}
		for _, p := range permissions {
			rules.Profiles[p] = Profile{Servers: []string{"s"}, Tier: catalog.ParseTier(p)}
		}
		gate := NewGate(&servers{}, rules, Options{})
		if tier := gate.Tier(tool).String(); tier != cells[3] {
			t.Errorf("%stier %s", line, tier)
		}
		for i, p := range permissions {
			want := cells[4+i] == "yes"
			agent := auth.Caller{Kind: auth.Agent, All: true, Tier: catalog.ParseTier(p)}
			if may := gate.May(agent, tool); may != want {
				t.Errorf("%san agent with permission %s: %v", line, p, may)
			}
			// A profile limits the local user the same way.
			limited := auth.Local()
			limited.Profile = p
			if may := gate.May(limited, tool); may != want {
				t.Errorf("%sa profile with max_tier %s: %v", line, p, may)
			}
		}
	}
	if rows != 27 {
		t.Errorf("%d rows", rows)
	}
}
