package policy

import (
	"context"
	"slices"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
)

// listing is servers that offer something.
type listing struct {
	servers
	snapshot *catalog.Snapshot
}

func (l *listing) Snapshot(context.Context) *catalog.Snapshot { return l.snapshot }

// TestLater: what is listed is judged as it is now, what is not by what it was.
func TestLater(t *testing.T) {
	listed := catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "listed"}, []byte(`{"name":"listed","annotations":{"readOnlyHint":true}}`), nil)
	u := &listing{snapshot: catalog.NewSnapshot([]*catalog.Server{{Name: "s", Known: true, Tools: []*catalog.Item{listed}}})}
	gate := NewGate(u, Rules{
		Servers:  map[string]Rule{"s": {Unannotated: catalog.Write}, "held": {Quarantined: true}},
		Profiles: map[string]Profile{"p": {Servers: []string{"s", "held"}}},
	}, Options{})
	if got := gate.Later(t.Context(), listed.Ref, catalog.Destructive); got != listed {
		t.Errorf("%+v", got)
	}
	agent := auth.Caller{Kind: auth.Agent, Servers: []string{"held", "s"}}
	for _, server := range []string{"s", "held", "gone"} {
		for tier := catalog.Read; tier <= catalog.Destructive; tier++ {
			item := gate.Later(t.Context(), catalog.Ref{Server: server, Kind: catalog.Tool, Name: "x"}, tier)
			if gate.Tier(item) != tier {
				t.Errorf("a %s tool is now %s", tier, gate.Tier(item))
			}
			for most := catalog.Read; most <= catalog.Destructive; most++ {
				agent.Tier = most
				if got, want := gate.May(agent, item), server == "s" && tier <= most; got != want {
					t.Errorf("%s: %s of a %s tool: %v", server, most, tier, got)
				}
			}
		}
	}
	if got := gate.ProfileServers("p"); !slices.Equal(got, []string{"held", "s"}) || gate.ProfileServers("none") != nil {
		t.Error(got)
	}
}
