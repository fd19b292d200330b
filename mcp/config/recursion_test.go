package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// An entry that leads back here is skipped by name, another proxy is legal (P15).
func TestSkipRecursion(t *testing.T) {
	dir := t.TempDir()
	own := script(t, filepath.Join(dir, "bin", "proxy-of-mine"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	c := parse(t, `{"mcpServers": {
		"base-name":  {"command": "mcpproxy"},
		"path":       {"command": "/opt/x/mcpproxy", "args": ["--mode", "direct"]},
		"windows":    {"command": "MCPProxy.exe"},
		"link":       {"command": "`+link+`"},
		"same-file":  {"command": "mcpproxy", "args": ["--config", "~/.mcpproxy/mcp_config.json"]},
		"same-env":   {"command": "mcpproxy", "env": {"MCPPROXY_CONFIG": "/home/u/.mcpproxy/mcp_config.json"}},
		"run":        {"command": "mcpproxy", "args": ["--mode", "direct", "run"]},
		"serve":      {"command": "mcpproxy", "args": ["--log-level", "debug", "-q", "serve", "--http"]},
		"loopback":   {"url": "http://localhost:9090/mcp"},
		"ipv6":       {"url": "http://[::1]:9090/mcp/all"},
		"other-file": {"command": "mcpproxy", "args": ["--config=/other.json"]},
		"other-env":  {"command": "mcpproxy", "env": {"MCPPROXY_CONFIG": "/other.json"}},
		"other-port": {"url": "http://localhost:9091/mcp"},
		"other-host": {"url": "http://example.com:9090/mcp"},
		"reference":  {"url": "${BASE:-http://localhost:9090}/mcp"},
		"notes":      {"command": "mcpproxy", "args": ["demo-server", "/notes"]},
		"notes-late": {"command": "mcpproxy", "args": ["--config", "~/.mcpproxy/mcp_config.json", "demo-server", "run"]},
		"other-name": {"command": "mcpproxy-tool"},
		"off":        {"command": "mcpproxy", "disabled": true},
		"good":       {"command": "npx"}}}`)
	if len(c.Warnings) != 0 {
		t.Fatal(c.Warnings)
	}
	c.SkipRecursion(Own{Executable: own, Listen: "127.0.0.1:9090", Home: "/home/u"})
	var skipped []string
	for _, s := range c.Servers {
		var recursion *RecursionError
		if errors.As(s.Err, &recursion) && recursion.Server == s.Name {
			skipped = append(skipped, s.Name)
		}
	}
	want := []string{"base-name", "path", "windows", "link", "same-file", "same-env", "run", "serve", "loopback", "ipv6"}
	if !reflect.DeepEqual(skipped, want) {
		t.Errorf("got  %q\nwant %q", skipped, want)
	}
	if len(c.Warnings) != len(want) || !strings.Contains(c.Warnings[0], `server "base-name": it starts mcpproxy with this same configuration, which would recurse`) {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if _, err := c.Server("path").Resolve(Env{}); err == nil {
		t.Error("a skipped server can be started")
	}

	c = parse(t, `{"mcpServers": {"a": {"url": "http://localhost:8080/mcp"}}}`)
	c.SkipRecursion(Own{Executable: own, Home: "/home/u"})
	if c.Servers[0].Err != nil {
		t.Error("somebody else's server on the default port is skipped while nothing listens here")
	}
}

// An instance that was reached through a wrapper sees that it runs under its own
// configuration, also with another proxy in between.
func TestNestedUnder(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.json"), filepath.Join(dir, "second.json")
	write(t, first, `{"mcpServers": {"a": {"command": "/bin/sh"}}}`)
	write(t, second, `{"mcpServers": {"a": {"command": "/bin/sh"}}}`)
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	load := func(path string, environ []string) *Config {
		t.Helper()
		c, err := Load(LoadOptions{Path: path, Home: dir, Dir: dir, Environ: environ})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	child := func(c *Config, environ []string) []string {
		t.Helper()
		r, err := c.Servers[0].Resolve(Env{Environ: environ, Home: dir, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return r.Env
	}
	outer := []string{"PATH=/bin"}
	a := load(first, outer)
	if a.NestedUnder(outer) {
		t.Error("the outermost is nested")
	}
	inA := child(a, outer)
	if !a.NestedUnder(inA) || !load(link, inA).NestedUnder(inA) {
		t.Error("the same file is not recognised")
	}
	b := load(second, inA)
	if b.NestedUnder(inA) {
		t.Error("another file is refused")
	}
	inB := child(b, inA)
	if !a.NestedUnder(inB) || !b.NestedUnder(inB) {
		t.Errorf("a ring of two is not recognised: %q", inB)
	}
	if slices.ContainsFunc(inB, func(kv string) bool { return strings.Contains(kv, dir) && strings.HasPrefix(kv, "MCPPROXY_") }) {
		t.Error("the mark gives the path away")
	}
}
