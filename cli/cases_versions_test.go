package cli_test

import (
	"slices"
	"strings"
	"testing"
)

// versions are the protocol revisions that either side may speak.
func versions() []string { return []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} }

func supported(version string) bool { return slices.Contains(versions(), version) }

// TestVersionPairs puts clients of each version in front of servers of each
// version. The client gets its own version, the server keeps its own, and what
// is newer than one of them passes all the same.
func TestVersionPairs(t *testing.T) {
	t.Parallel()
	const result = `{"content":[{"type":"text","text":"x"},{"type":"resource_link","uri":"x:1","name":"n"}],"structuredContent":{"a":1.0}}`
	for _, client := range versions() {
		for _, server := range versions() {
			t.Run(client+" "+server, func(t *testing.T) {
				s := newStub(t, "s", `"protocol":"`+server+`","strict":true,"list_builtins":["fast"],"resources":[{"uri":"x:1","name":"n"}],"prompts":[{"name":"p"}],
					"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}],"calls":{"t":{"result":`+result+`}}`)
				p := startProxy(t, configOf(s))
				if got := stringAt(p.initializeAs("test", client, "").Result, "protocolVersion"); got != client {
					t.Errorf("initialize was answered with %s", got)
				}
				all, names := p.list("tools")
				if !slices.Equal(names, []string{"s__fast", "s__t"}) || !strings.Contains(string(all["s__t"]), `"title":"T"`) || at(all["s__t"], "outputSchema") == nil {
					t.Errorf("listed are %q: %s", names, all["s__t"])
				}
				if m := p.tool("s__t", ""); string(m.Result) != result {
					t.Errorf("call: %s", m.Raw)
				}
				if m := p.tool("s__fast", ""); m.text() != "fast" {
					t.Errorf("call: %s", m.Raw)
				}
				if m := p.call("resources/read", `{"uri":"x:1"}`); m.Error != nil {
					t.Errorf("read: %s", m.Raw)
				}
				if m := p.call("prompts/get", `{"name":"s__p"}`); m.Error != nil {
					t.Errorf("get: %s", m.Raw)
				}
				if m := p.call("ping", ""); string(m.Result) != "{}" {
					t.Errorf("ping: %s", m.Raw)
				}
			})
		}
	}
}
