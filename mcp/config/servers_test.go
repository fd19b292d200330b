package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A file as other programs write it gives the same servers (K05).
func TestListAndMapForm(t *testing.T) {
	list := parse(t, `{"mcpServers": [
		{"name": "b", "command": "npx", "args": ["-y", "x"], "env": {"PORT": 80}},
		{"name": "a", "url": "https://example.com/mcp", "enabled": false}]}`)
	byName := parse(t, `{"mcpServers": {
		"b": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"PORT": "80"}},
		"a": {"url": "https://example.com/mcp", "disabled": true}}}`)
	if !reflect.DeepEqual(list.Servers, byName.Servers) {
		t.Errorf("list: %+v\nmap: %+v", list.Servers, byName.Servers)
	}
	if len(list.Servers) != 2 || list.Servers[0].Name != "b" || list.Servers[0].Err != nil || list.Servers[1].Enabled {
		t.Errorf("%+v", list.Servers)
	}
	if list.Servers[0].Protocol != "stdio" || list.Servers[1].Protocol != "auto" {
		t.Error("protocols are not filled in")
	}

	for _, bare := range []string{
		`{"a": {"command": "x"}}`,
		`{"tools_limit": 3, "a": {"url": "https://x"}}`,
		`{"servers": {"a": {"command": "x"}}}`,
	} {
		_, err := Parse([]byte(bare), LoadOptions{Home: "/h"})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "mcpServers") {
			t.Errorf("%s: %v", bare, err)
		}
	}
}

// One wrong entry harms only itself (K14 and the like).
func TestInvalidServers(t *testing.T) {
	for name, test := range map[string]struct{ entry, want string }{
		"no name":         {`{"command": "x"}`, "mcpServers[1]: needs a name"},
		"empty name":      {`{"name": "", "command": "x"}`, "mcpServers[1]: needs a name"},
		"empty":           {`{}`, "mcpServers[1]: needs a name"},
		"duplicate":       {`{"name": "good", "command": "y"}`, `mcpServers.good: there is another server named "good" before`},
		"alias taken":     {`{"name": "b", "command": "y", "alias": "good"}`, `taken by server "good"`},
		"bad alias":       {`{"name": "b", "command": "y", "alias": "a__b"}`, `the alias must be`},
		"space":           {`{"name": "a b", "command": "x"}`, "mcpServers.a b: the name must be 1 to 64"},
		"two underscores": {`{"name": "a__b", "command": "x"}`, "without __"},
		"leading":         {`{"name": "_a", "command": "x"}`, "the name must"},
		"trailing":        {`{"name": "a_", "command": "x"}`, "the name must"},
		"long":            {`{"name": "` + strings.Repeat("a", 65) + `", "command": "x"}`, "the name must"},
		"number":          {`{"name": 7, "command": "x"}`, "mcpServers[1].name: 7: must be a string"},
		"string":          {`"npx -y x"`, "mcpServers[1]: must be an object, not a string"},
		"null":            {`null`, "must be an object, not null"},
		"nothing to do":   {`{"name": "b"}`, "mcpServers.b: needs command or url"},
		"both":            {`{"name": "b", "command": "x", "url": "https://x"}`, "has command and url"},
		"both tool lists": {`{"name": "b", "command": "x", "enabled_tools": [], "disabled_tools": ["t"]}`, "only one can be"},
		"protocol":        {`{"name": "b", "command": "x", "protocol": "http"}`, "protocol http needs url"},
		"protocol stdio":  {`{"name": "b", "url": "https://x", "protocol": "stdio"}`, "protocol stdio needs command"},
		"protocol odd":    {`{"name": "b", "url": "https://x", "protocol": "websocket"}`, "must be one of stdio"},
		"url":             {`{"name": "b", "url": "example.com/mcp"}`, "url must be an address"},
		"args":            {`{"name": "b", "command": "x", "args": "-y z"}`, "mcpServers.b.args: must be a list of strings, not a string"},
		"arg":             {`{"name": "b", "command": "x", "args": ["a", {}]}`, "mcpServers.b.args[1]: must be a string, not an object"},
		"env":             {`{"name": "b", "command": "x", "env": {"A": null}}`, "mcpServers.b.env.A: must be a string, not null"},
		"interval":        {`{"name": "b", "command": "x", "health_check_interval": "2s"}`, "mcpServers.b.health_check_interval"},
		"quarantined":     {`{"name": "b", "command": "x", "quarantined": "yes"}`, "must be true or false"},
		"override":        {`{"name": "b", "command": "x", "tool_overrides": {"t": {"annotations": 1}}}`, "tool_overrides.t.annotations: must be an object"},
		"reference":       {`{"name": "b", "command": "x", "args": ["${UNSET}"]}`, `server "b": args[0]: ${UNSET} is not set`},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, `{"mcpServers": [{"name": "good", "command": "x"}, `+test.entry+`, {"name": "last", "command": "x"}]}`)
			if len(c.Servers) != 3 || c.Servers[0].Err != nil || c.Servers[2].Err != nil || c.Servers[2].Name != "last" {
				t.Fatalf("the others are harmed: %+v", c.Servers)
			}
			err := c.Servers[1].Err
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if c.Server("good") != &c.Servers[0] {
				t.Error("the first entry of a name does not count")
			}
		})
	}
	c := parse(t, `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "": {"command": "z"}}}`)
	if c.Servers[0].Err != nil || c.Servers[1].Err == nil || c.Servers[2].Err == nil {
		t.Errorf("map form: %+v", c.Servers)
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A-1_b": true, "9": true, "a-": true, strings.Repeat("a", 64): true,
		"": false, "-a": false, "_a": false, "a_": false, "a__b": false, "a.b": false, "ä": false, "a\n": false,
	} {
		if ValidName(name) != want {
			t.Errorf("ValidName(%q) = %v", name, !want)
		}
	}
}

func TestServerKeys(t *testing.T) {
	c := parse(t, `{
		"expose_prompts": false, "call_tool_timeout": "1m", "max_concurrent_requests": 9, "queue_size": 2,
		"server_concurrency_defaults": {"max_concurrent_requests": 4, "queue_timeout": "5s"},
		"mcpServers": [
		{"name": "a", "command": "x", "cwd": "~/w", "env": {"N": 1, "B": true}, "quarantined": true, "shared": false, "tags": ["t"],
		 "enabled_tools": ["one"], "alias": "al", "auto_approve_tool_changes": true, "reconnect_on_use": false,
		 "inherit_env": "all", "unannotated_tools": "read", "expose_prompts": true, "expose_resources": false,
		 "init_timeout": "5s", "call_idle_timeout": "20s", "tool_discovery_interval": "0s", "queue_size": 7,
		 "isolation": {"enabled": true, "image": "node:22", "network_mode": "none", "extra_args": ["--cap-drop=ALL"], "color": 1},
		 "tool_overrides": {"t": {"name": "u", "description": "d", "annotations": { "readOnlyHint": true /* sure */, }}}},
		{"name": "b", "url": "https://x/y", "protocol": "streamable-http", "headers": {"X": "y"},
		 "oauth": {"client_id": "i", "client_secret": "s", "scopes": ["r"], "extra_params": {"resource": "z"}}, "wrong": 1}
	]}`)
	a, b := c.Server("a"), c.Server("b")
	want := Server{
		Name: "a", Command: "x", WorkingDir: "~/w", Env: map[string]string{"N": "1", "B": "true"}, Protocol: "stdio",
		Enabled: true, Quarantined: true, Shared: "false", Tags: []string{"t"}, EnabledTools: []string{"one"}, Alias: "al",
		AutoApproveToolChanges: true,
		Isolation:              &Isolation{Enabled: true, Image: "node:22", NetworkMode: "none", ExtraArgs: []string{"--cap-drop=ALL"}},
		ToolOverrides:          map[string]ToolOverride{"t": {"u", "d", []byte(`{"readOnlyHint":true}`)}},
		Settings: Settings{
			Limits:              Limits{MaxConcurrentRequests: 4, QueueSize: 7, QueueTimeout: 5 * time.Second},
			HealthCheckInterval: 30 * time.Second, InitTimeout: 5 * time.Second, CallToolTimeout: time.Minute,
			CallIdleTimeout: 20 * time.Second, InheritEnv: "all", UnannotatedTools: "read", ExposePrompts: true,
		},
		file: c.Path,
	}
	if !reflect.DeepEqual(*a, want) {
		t.Errorf("got  %+v\nwant %+v", *a, want)
	}
	if b.Protocol != "http" || b.OAuth.ExtraParams["resource"] != "z" || b.ExposePrompts || b.QueueSize != 2 || !b.ReconnectOnUse || b.Shared != "auto" {
		t.Errorf("%+v", b)
	}
	if len(c.Warnings) != 2 || !strings.Contains(c.Warnings[0], `"mcpServers.a.isolation.color"`) || !strings.Contains(c.Warnings[1], `"mcpServers.b.wrong"`) {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	c := parse(t, `{"mcpServers": [{"name": "a", "command": "x", "args": ["${input:token}", "$HOME", "${}", "cost $5"]}],
		"stray": {"command": "x"}, "tools_limit": 1, "tools_limit": 2, "profiles": [{"name": "p", "servers": ["nobody"]}]}`)
	if c.ToolsLimit != 2 {
		t.Error("the last of two keys does not count")
	}
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{
		`unknown key "stray" (servers stand under "mcpServers")`,
		`key "tools_limit" stands twice, the last one counts`,
		`server "a": args[0]: ${input:token} is not a reference`,
		`profile "p" names server "nobody"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in\n%s", want, all)
		}
	}
	if len(c.Warnings) != 4 {
		t.Errorf("warnings:\n%s", all)
	}
}
