package hub

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/mcp/upstream"
)

// TestNaming gives entries one id exactly when they may share a process.
func TestNaming(t *testing.T) {
	base := func() upstream.Entry {
		return upstream.Entry{
			Name: "s", Fingerprint: "f", Command: "/bin/s", Dir: "/home", Announced: json.RawMessage(`{"a":{},"b":1}`),
			Args: []string{"ab", "c"}, Env: []string{"K=hidden", "L=2"}, Secrets: []string{"hidden"}, Times: upstream.Times{InitTimeout: 1},
		}
	}
	names := newNaming()
	id := names.id(base())
	if !strings.HasPrefix(id, "s-") || strings.Contains(id, "hidden") {
		t.Errorf("the id is %s", id)
	}
	for what, change := range map[string]func(*upstream.Entry){
		"nothing":                   func(*upstream.Entry) {},
		"a time":                    func(e *upstream.Entry) { e.InitTimeout = 2 },
		"the spelling of abilities": func(e *upstream.Entry) { e.Announced = json.RawMessage(` {"b": 1, "a": { }}`) },
	} {
		e := base()
		change(&e)
		if names.id(e) != id {
			t.Errorf("%s changed the id", what)
		}
	}
	seen := map[string]string{id: "nothing", newNaming().id(base()): "another hub"}
	for what, change := range map[string]func(*upstream.Entry){
		"name":             func(e *upstream.Entry) { e.Name = "t" },
		"fingerprint":      func(e *upstream.Entry) { e.Fingerprint = "g" },
		"command":          func(e *upstream.Entry) { e.Command = "/bin/t" },
		"folder":           func(e *upstream.Entry) { e.Dir = "/" },
		"abilities":        func(e *upstream.Entry) { e.Announced = json.RawMessage(`{"a":{}}`) },
		"no abilities":     func(e *upstream.Entry) { e.Announced = nil },
		"argument":         func(e *upstream.Entry) { e.Args[1] = "d" },
		"argument border":  func(e *upstream.Entry) { e.Args = []string{"a", "bc"} },
		"argument into it": func(e *upstream.Entry) { e.Args, e.Env = []string{"ab"}, append([]string{"c"}, e.Env...) },
		"environment":      func(e *upstream.Entry) { e.Env[0] = "K=hiddeN" },
		"more environment": func(e *upstream.Entry) { e.Env = append(e.Env, "M=") },
		"secrets":          func(e *upstream.Entry) { e.Secrets = nil },
	} {
		e := base()
		change(&e)
		got := names.id(e)
		if other, there := seen[got]; there {
			t.Errorf("%s and %s have one id", what, other)
		}
		seen[got] = what
	}
	if len(seen) != 14 {
		t.Errorf("%d ids", len(seen))
	}
}
