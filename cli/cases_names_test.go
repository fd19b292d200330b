package cli_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tools is the scenario member that lists tools of these names.
func tools(names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, "does "+name))
	}
	return `"tools":[` + strings.Join(items, ",") + `]`
}

// calledNames are the tool names that a server was called by.
func (s *upstreamStub) calledNames() []string {
	var names []string
	for _, m := range s.received("tools/call") {
		names = append(names, stringAt(m.Params, "name"))
	}
	return names
}

// N01: one name over the limit costs a client of a model API every tool, so
// long names are shortened, and to the same name each time.
func TestN01LongNamesAreShortened(t *testing.T) {
	t.Parallel()
	const tool = "export-every-customer-record-into-a-dated-cold-archive"
	s := newStub(t, "warehouse-analytics-production", tools(tool, "short"))
	for _, c := range []struct {
		client string
		max    int
	}{{"test", 64}, {"claude-code", 113}, {"codex-mcp-client", 49}, {"Visual Studio Code", 46}, {"cursor-vscode", 51}, {"gemini-cli-mcp-client", 50}, {"opencode", 55}} {
		t.Run(c.client, func(t *testing.T) {
			p := startProxy(t, configOf(s))
			p.initializeAs(c.client, "2025-11-25", "")
			_, names := p.list("tools")
			for _, name := range names {
				if len(name) > c.max {
					t.Errorf("%s has %d bytes, more than %d", name, len(name), c.max)
				}
			}
			for _, name := range names {
				if m := p.tool(name, ""); m.Error != nil || m.isError() {
					t.Errorf("%s: %s", name, m.Raw)
				}
			}
			called := s.calledNames()
			if want := []string{tool, "short"}; !slices.Equal(called[len(called)-2:], want) {
				t.Errorf("the server was called by the names %q", called)
			}
			p.close()
			again := startProxyIn(t, p.dir, "")
			again.initializeAs(c.client, "2025-11-25", "")
			if _, same := again.list("tools"); !slices.Equal(same, names) {
				t.Errorf("after a restart %q, before %q", same, names)
			}
		})
	}
	t.Run("configured", func(t *testing.T) {
		p := startProxy(t, configWith(`"max_tool_name_length":40,`, s))
		p.initializeAs("claude-code", "2025-11-25", "")
		_, names := p.list("tools")
		for _, name := range names {
			if len(name) > 40 {
				t.Errorf("%s has %d bytes, more than 40", name, len(name))
			}
		}
	})
}

// N02: names that MCP allows, and model APIs do not, become legal, and the
// server still gets its own.
func TestN02OddNamesBecomeLegal(t *testing.T) {
	t.Parallel()
	odd := []string{"calendar.respondToEvent", "a:b", "a/b", "a b", "a.b", "sp ace", "日本", "_", "-", "1st", "a__b", "A", strings.Repeat("x", 128)}
	s := newStub(t, "google-workspace", tools(odd...))
	p := startProxy(t, configOf(s))
	p.initialize("")
	_, names := p.list("tools")
	if len(names) != len(odd) {
		t.Errorf("%d of %d are listed", len(names), len(odd))
	}
	legal := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	for _, name := range names {
		if !legal.MatchString(name) {
			t.Errorf("%q is no legal name", name)
		}
		p.tool(name, "")
	}
	if called := s.calledNames(); !slices.Equal(called, odd) {
		t.Errorf("the server was called by the names %q", called)
	}
}

// N02, N04: a server whose name cannot be part of a tool's name is refused and
// named, and the others work.
func TestN04NamesOfServersWithTheSeparator(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a__b", "google workspace", "_x", "x_", "", "ü", strings.Repeat("x", 65)} {
		t.Run(bad, func(t *testing.T) {
			a, b := newStub(t, "a", tools("b__c")), newStub(t, bad, tools("c"))
			p := startProxy(t, configOf(a, b))
			p.initialize("")
			if _, names := p.list("tools"); !slices.Equal(names, []string{"a__b__c"}) {
				t.Errorf("listed are %q", names)
			}
			p.tool("a__b__c", "")
			if called := a.calledNames(); !slices.Equal(called, []string{"b__c"}) {
				t.Errorf("a was called by the names %q", called)
			}
			if n := len(b.events("start")); n > 0 {
				t.Errorf("the refused server was started %d times", n)
			}
			p.close()
			if !strings.Contains(p.stderrText(), bad) || p.stderrText() == "" {
				t.Errorf("nothing is said of it: %q", p.stderrText())
			}
		})
	}
}

// N06: hyphens and underscores in the names of servers and tools do not lead
// astray.
func TestN06HyphensAndUnderscores(t *testing.T) {
	t.Parallel()
	for server, tool := range map[string]string{"docs-x": "get-catalog-entity", "aws_docs": "search_all", "a-b_c": "__d__", "x": "_y"} {
		s := newStub(t, server, tools(tool))
		p := startProxy(t, configOf(s))
		p.initialize("")
		p.tool(server+"__"+tool, "")
		if called := s.calledNames(); !slices.Equal(called, []string{tool}) {
			t.Errorf("%s was called by the names %q", server, called)
		}
	}
}

// N08: of two tools of one name the first counts, with one warning.
func TestN08DuplicateTools(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"t","description":"one","inputSchema":{"type":"object"}},{"name":"t","description":"two","inputSchema":{"type":"object"}}]`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	all, names := p.list("tools")
	if !slices.Equal(names, []string{"s__t"}) || stringAt(all["s__t"], "description") != "[s] one" {
		t.Errorf("listed is %s", all)
	}
	p.close()
	warning := regexp.MustCompile(`server s\b.*\(t\).*same name`)
	if n := len(warning.FindAllString(p.stderrText(), -1)); n != 1 {
		t.Errorf("%d warnings: %q", n, p.stderrText())
	}
	if out := p.command("list", "--json"); string(at(out, "servers", "0", "tools")) != "1" {
		t.Errorf("counted are %s", out)
	}
}

// N10: a name without any ASCII gets a legal one that stays, and the server
// gets its own.
func TestN10NamesOutsideASCII(t *testing.T) {
	t.Parallel()
	s := newStub(t, "cn", tools("查询天气", "天气", "weather"))
	var before []string
	for range 2 {
		p := startProxy(t, configOf(s))
		p.initialize("")
		_, names := p.list("tools")
		legal := regexp.MustCompile(`^cn__[a-zA-Z0-9_-]{1,60}$`)
		for _, name := range names {
			if !legal.MatchString(name) {
				t.Errorf("%q is no legal name", name)
			}
		}
		if before != nil && !slices.Equal(before, names) {
			t.Errorf("listed are %q, before %q", names, before)
		}
		before = names
		p.tool(names[0], "")
	}
	if called := s.calledNames(); !slices.Equal(called, []string{"查询天气", "查询天气"}) {
		t.Errorf("the server was called by the names %q", called)
	}
}

// N11: the server gets the tool's own name, not the public one.
func TestN11OwnNameUpstream(t *testing.T) {
	t.Parallel()
	s := newStub(t, "fetch", tools("fetch"))
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.tool("fetch__fetch", "")
	if called := s.calledNames(); !slices.Equal(called, []string{"fetch"}) {
		t.Errorf("the server was called by the names %q", called)
	}
}

// N12: behind two proxies a name has two prefixes, each of which one of them
// takes off.
func TestN12ProxyBehindProxy(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 12)
	s := newStub(t, "s", tools("t", long))
	inner := startProxy(t, configOf(s)) // for its folder and its file
	inner.close()
	outer := startProxy(t, fmt.Sprintf(
		`{"share_upstreams":false,"mcpServers":[{"name":"inner","command":"mcpproxy","args":["--mode","direct","--config",%q,"--data-dir",%q]}]}`,
		inner.dir+"/mcp_config.json", inner.dir+"/data"))
	outer.initialize("")
	_, names := outer.list("tools")
	if len(names) != 2 || names[0] != "inner__s__t" || len(names[1]) > 64 {
		t.Fatalf("listed are %q", names)
	}
	for _, name := range names {
		if m := outer.tool(name, ""); m.Error != nil || m.isError() {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	if called := s.calledNames(); !slices.Equal(called, []string{"t", long}) {
		t.Errorf("the server was called by the names %q", called)
	}
}
