package config

import (
	"reflect"
	"testing"
)

func TestFingerprint(t *testing.T) {
	one := func(entry string, environ ...string) string {
		t.Helper()
		c := parse(t, `{"mcpServers": {"a": `+entry+`}}`, environ...)
		if c.Servers[0].Err != nil {
			t.Fatal(entry, c.Servers[0].Err)
		}
		return c.Servers[0].Fingerprint()
	}
	base := one(`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}}`)
	if len(base) != 32 {
		t.Errorf("fingerprint %q", base)
	}
	for _, same := range []string{
		`{"env": {"B": "2", "A": "1"}, "args": ["a", "b"], "command": "x"} // other order`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": 1, "B": "2"}, "protocol": "stdio"}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "quarantined": true, "shared": false, "tags": ["t"], "alias": "b",
		  "enabled_tools": ["t"], "tool_overrides": {"t": {"name": "u"}}, "health_check_interval": "1m", "init_timeout": "1s", "inherit_env": "all",
		  "enabled": true, "unannotated_tools": "read", "auto_approve_tool_changes": true, "reconnect_on_use": false, "max_concurrent_requests": 1}`,
	} {
		if one(same+"\n") != base {
			t.Errorf("differs: %s", same)
		}
	}
	seen := map[string]string{base: "base"}
	for _, other := range []string{
		`{"command": "y", "args": ["a", "b"], "env": {"A": "1", "B": "2"}}`,
		`{"command": "x", "args": ["b", "a"], "env": {"A": "1", "B": "2"}}`,
		`{"command": "x", "args": ["a b"], "env": {"A": "1", "B": "2"}}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "3"}}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "working_dir": "/"}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "isolation": {"enabled": true}}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "isolation": {"enabled": true, "image": "i"}}`,
		`{"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "${X}"}}`,
		`{"url": "https://x"}`,
		`{"url": "https://x", "protocol": "sse"}`,
		`{"url": "https://x", "headers": {"A": "1"}}`,
		`{"url": "https://x", "oauth": {"client_id": "1"}}`,
	} {
		f := one(other, "X=2")
		if seen[f] != "" {
			t.Errorf("%s is the same as %s", other, seen[f])
		}
		seen[f] = other
	}
	if one(`{"command": "x", "env": {"B": "${X}"}}`, "X=1") != one(`{"command": "x", "env": {"B": "${X}"}}`, "X=2") {
		t.Error("the fingerprint depends on the value of a reference")
	}
}

func TestDiff(t *testing.T) {
	old := parse(t, `{"listen": "127.0.0.1:1", "mcpServers": {
		"gone": {"command": "x"}, "args": {"command": "x", "args": ["1"]}, "same": {"command": "x"}, "off": {"command": "x"},
		"broken": {"command": "x"}, "tags": {"command": "x"}, "mended": {"commando": "x"}}}`)
	new := parse(t, `{"listen": "127.0.0.1:2", "routing_mode": "direct", "api_key": "k", "search_embedding": {"model": "m"}, "mcpServers": {
		"tags": {"command": "x", "tags": ["t"]}, "args": {"command": "x", "args": ["2"]}, "same": {"command": "x"}, "off": {"command": "x", "enabled": false},
		"broken": {"command": "x", "args": 1}, "mended": {"command": "x"}, "fresh": {"command": "x"}, "fresh": {"command": "y"}}}`)
	want := Changes{
		Added: []string{"mended", "fresh"}, Removed: []string{"gone", "off", "broken"}, Reconnect: []string{"args"}, Updated: []string{"tags"},
		Restart: []string{"listen", "api_key", "routing_mode", "search_embedding"},
	}
	if got := Diff(old, new); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// A global interval changes what servers do, but no connection.
	new = parse(t, `{"health_check_interval": "1m", "mcpServers": {"a": {"command": "x"}}}`)
	if got := Diff(parse(t, `{"mcpServers": [{"name": "a", "command": "x"}]}`), new); !reflect.DeepEqual(got, Changes{Updated: []string{"a"}}) {
		t.Errorf("a changed default: %+v", got)
	}
	if got := Diff(new, new); !reflect.DeepEqual(got, Changes{}) {
		t.Errorf("no change: %+v", got)
	}
}
