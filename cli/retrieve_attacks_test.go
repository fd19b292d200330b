//go:build unix

package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Profiles of the servers of moonServers. No name of a profile holds that of a
// server. Delta is in all of them: of one server alone every URI would be read,
// also one that it does not list.
const moonProfiles = `"profiles":[{"name":"one","servers":["alpha","delta"]},{"name":"two","servers":["alpha","bravo","delta"]},
	{"name":"careful","servers":["alpha","delta"],"max_tier":"read"},{"name":"every","servers":["alpha","bravo","charlie","delta"]}],`

// moonServers are four servers and a folder with profiles of them, of which all
// is known.
func moonServers(t *testing.T, members string) (dir string, servers []*upstreamStub) {
	t.Helper()
	for _, name := range []string{"alpha", "bravo", "charlie", "delta"} {
		servers = append(servers, moonStub(t, name))
	}
	dir = place(t, privateConfig(moonProfiles+members, servers...))
	p := retrieving(t, dir)
	p.awaitFound("moon", "alpha:r", "bravo:r", "charlie:r", "delta:r")
	p.close()
	return dir, servers
}

// expectReach checks that a client of mode retrieve_tools reaches some of the
// servers, delta among them, and nothing of the others.
func expectReach(t *testing.T, p *proxy, all []*upstreamStub, names ...string) {
	t.Helper()
	var others []*upstreamStub
	names = append(slices.Clone(names), "delta")
	for _, s := range all {
		if !slices.Contains(names, s.name) {
			others = append(others, s)
			continue
		}
		if m := p.through("read", s.name+":r", "{}"); refusalOf(m) != "" {
			t.Errorf("%s:r gave %s", s.name, m.Raw)
		}
		if m := p.call("resources/read", fmt.Sprintf(`{"uri":"%s:1"}`, s.name)); refusalOf(m) != "" {
			t.Errorf("%s:1 gave %s", s.name, m.Raw)
		}
		if m := p.call("prompts/get", fmt.Sprintf(`{"name":"%s__p"}`, s.name)); refusalOf(m) != "" {
			t.Errorf("%s__p gave %s", s.name, m.Raw)
		}
	}
	seen := moonShows(p)
	for _, s := range others {
		if strings.Contains(seen, s.name) {
			t.Errorf("%s is seen: %s", s.name, seen)
		}
	}
	expectNoPath(t, p, moonPaths, "", others...)
	for _, members := range []string{`"servers":["%s"]`, `"explain_tool":"%s:r"`, `"explain_tool":"%s__r","servers":["alpha","%[1]s"]`} {
		missing := strings.ReplaceAll(string(p.search("moon", fmt.Sprintf(members, "nobody"))), "nobody", "NAME")
		for _, s := range others {
			if got := strings.ReplaceAll(string(p.search("moon", fmt.Sprintf(members, s.name))), s.name, "NAME"); got != missing {
				t.Errorf("a search of %s gave\n%s, and of a server that does not exist\n%s", s.name, got, missing)
			}
		}
	}
	if debug := at(p.search("moon", `"debug":true`), "debug"); len(others) > 0 && (at(debug, "indexed") != nil || at(debug, "generation") != nil) {
		t.Errorf("how many others there are is told: %s", debug)
	}
}

// TestAttackSetProfileWidens: whoever is limited when the session begins tries to
// get out of that by set_profile: every profile, none, and names of none. What is
// in reach is then never more than it was.
func TestAttackSetProfileWidens(t *testing.T) {
	t.Parallel()
	few, pinned := []string{"--servers", "alpha,bravo,delta"}, []string{"--servers", "*", "--permissions", "read,write,destructive", "--profile-pin", "one"}
	within := map[string][]string{"one": {"alpha"}, "careful": {"alpha"}, "two": {"alpha", "bravo"}, "every": {"alpha", "bravo"}, "": {"alpha", "bravo"}}
	for who, limit := range map[string]struct {
		token []string // options of the agent's token, nil for none
		args  []string
		reach map[string][]string // by the chosen profile; nil: it cannot be chosen
		first []string
	}{
		"an instance with --profile":          {nil, []string{"--profile", "two"}, nil, []string{"alpha", "bravo"}},
		"an agent with few servers":           {few, nil, within, []string{"alpha", "bravo"}},
		"an agent with a pin":                 {pinned, nil, nil, []string{"alpha"}},
		"an agent with few, and with profile": {few, []string{"--profile", "one"}, nil, []string{"alpha"}},
	} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			dir, servers := moonServers(t, "")
			args := limit.args
			if limit.token != nil {
				_, file := issue(t, dir, "agent", limit.token...)
				args = append([]string{"--token-file", file}, args...)
			}
			p := retrieving(t, dir, args...)
			expectReach(t, p, servers, limit.first...)
			for _, profile := range []string{"every", "two", "one", "careful", "", "nothing", "*", "one,every", "EVERY", " every"} {
				m := p.tool("set_profile", fmt.Sprintf(`{"profile":%q}`, profile))
				now := limit.first
				chosen := limit.reach != nil && limit.reach[profile] != nil
				if chosen {
					now = limit.reach[profile]
				} else if limit.reach != nil {
					now = nil // what was chosen before
				}
				// The one that is in force already may be chosen anyhow.
				inForce := limit.reach == nil && (profile == "one" || profile == "two")
				if failed := refusalOf(m) != ""; failed == chosen && !inForce {
					t.Errorf("set_profile %q gave %s", profile, m.Raw)
				}
				if now != nil {
					expectReach(t, p, servers, now...)
				}
			}
			if m := p.tool("set_profile", `{"profile":"one","servers":["charlie"],"pin":""}`); refusalOf(m) == "" {
				t.Errorf("more arguments gave %s", m.Raw)
			}
			expectNoPath(t, p, moonPaths, moonShows(p), servers[2])
		})
	}
}

// TestAttackSetProfileIsInForce: a profile that the client of an unlimited
// session has chosen is in force at once on every path, for servers, tiers, pages
// and subscriptions, and without one there is again what there was before.
func TestAttackSetProfileIsInForce(t *testing.T) {
	t.Parallel()
	dir, servers := moonServers(t, `"disable_management":false,`)
	p := retrieving(t, dir)
	near, far := pageOf(t, p, "alpha:long"), pageOf(t, p, "charlie:long")
	if m := p.call("resources/subscribe", `{"uri":"charlie:1"}`); m.Error != nil {
		t.Fatalf("subscribe: %s", m.Raw)
	}
	if m := p.tool("set_profile", `{"profile":"careful"}`); refusalOf(m) != "" || !strings.Contains(m.text(), `"servers":["alpha","delta"]`) || !strings.Contains(m.text(), `"max_tier":"read"`) {
		t.Fatalf("set_profile gave %s", m.Raw)
	}
	servers[2].awaitMessage("resources/unsubscribe")
	expectReach(t, p, servers, "alpha")
	for _, tool := range []string{"w", "d"} {
		for _, tier := range []string{"write", "destructive"} {
			got, want := bodyWithout(p.through(tier, "alpha:"+tool, "{}"), ":"+tool), bodyWithout(p.through(tier, "alpha:qqqqq", "{}"), ":qqqqq")
			if !strings.Contains(got, "not found, or access denied") || !strings.Contains(want, "not found, or access denied") {
				t.Errorf("%s through %s gave\n%s, and a tool that does not exist\n%s", tool, tier, got, want)
			}
		}
	}
	if n := len(servers[0].received("tools/call")); n != 2 { // long, and r
		t.Errorf("alpha was reached: %q", servers[0].used())
	}
	for _, key := range []string{near, far} {
		if m := p.readCache(key, 0); !m.isError() || m.text() != "cache key not found" {
			t.Errorf("a page from before the profile gave %s", m.Raw)
		}
	}
	mine := pageOf(t, p, "alpha:long")
	if m := p.readCache(mine, 0); m.isError() {
		t.Errorf("a page of the profile gave %s", m.Raw)
	}
	if m := p.tool("upstream_servers", `{"operation":"list"}`); strings.Contains(m.text(), "charlie") || !strings.Contains(m.text(), "alpha") {
		t.Errorf("under a profile list gave %s", m.Raw)
	}
	if m := p.tool("quarantine_security", `{"operation":"list_quarantined"}`); m.code() == 0 {
		t.Errorf("under a profile quarantine_security gave %s", m.Raw)
	}
	if m := p.tool("set_profile", `{"profile":""}`); refusalOf(m) != "" {
		t.Fatalf("set_profile gave %s", m.Raw)
	}
	expectReach(t, p, servers, "alpha", "bravo", "charlie")
	for _, key := range []string{near, far, mine} {
		if m := p.readCache(key, 0); m.isError() {
			t.Errorf("without a profile a page gave %s", m.Raw)
		}
	}
}

// TestAttackSmuggledNames: an agent tries to reach a server that is not in its
// scope, or a tier above its own, by what it puts into the arguments of the tools
// that call: two notations in one, a second name, a name or _meta inside the
// arguments, text that would end them.
func TestAttackSmuggledNames(t *testing.T) {
	t.Parallel()
	const hint = `"annotations":{"readOnlyHint":true}`
	mine := newStub(t, "alpha", fmt.Sprintf(`"tools":[{"name":"r",%s},{"name":"d","annotations":{"destructiveHint":true}},{"name":"bravo:r",%s},{"name":"bravo__r",%s},
		{"name":"read_cache",%s},{"name":"retrieve_tools",%s},{"name":"call_tool_destructive",%s},{"name":"upstream_servers",%s}]`, hint, hint, hint, hint, hint, hint, hint))
	other := newStub(t, "bravo", fmt.Sprintf(`"tools":[{"name":"r",%s},{"name":"alpha:r",%s},{"name":"d"}]`, hint, hint))
	dir := place(t, privateConfig("", mine, other))
	_, file := issue(t, dir, "agent", "--servers", "alpha")
	first := retrieving(t, dir)
	first.awaitFound("r", "alpha:r", "bravo:r")
	first.close()
	p := retrieving(t, dir, "--token-file", file)
	refused := map[string]string{}
	for _, name := range []string{"bravo:r", "bravo__r", "bravo:alpha:r", "bravo:alpha__r", "bravo__alpha:r", "bravo__alpha__r", "alpha:alpha:r", "alpha__alpha__r", "alpha:bravo:d",
		"alpha:r:bravo:r", "alpha:r ", " alpha:r", "ALPHA:r", "alpha:", ":r", "alpha::r", "alpha:__r", "r", "alpha", "call_tool_destructive", "read_cache", "upstream_servers", ":read_cache", "alpha:d", "alpha__d"} {
		refused["name "+name] = fmt.Sprintf(`{"name":%q}`, name)
	}
	for what, args := range map[string]string{
		"two names":                  `{"name":"alpha:r","name":"alpha:d"}`,
		"two names, the other first": `{"name":"bravo:r","name":"alpha:r"}`,
		"another case":               `{"name":"alpha:r","Name":"bravo:r"}`,
		"server beside it":           `{"name":"r","server":"bravo"}`,
		"tool beside it":             `{"name":"alpha:r","tool":"bravo:r"}`,
		"arguments beside it":        `{"name":"alpha:r","arguments":{"name":"d"}}`,
		"_meta beside it":            `{"name":"alpha:r","_meta":{"caller":"admin"}}`,
		"a token beside it":          `{"name":"alpha:r","token":"x"}`,
		"text that ends args":        `{"name":"alpha:r","args_json":"{},\"name\":\"d\""}`,
		"text that ends args twice":  `{"name":"alpha:r","args":"{}},\"method\":\"tools/call\",\"params\":{\"name\":\"d\"}"}`,
		"both forms":                 `{"name":"alpha:r","args":{"a":1},"args_json":"{\"a\":2}"}`,
		"args twice":                 `{"name":"alpha:r","args":{},"args":{"a":1}}`,
		"a list for args":            `{"name":"alpha:r","args":[{"name":"d"}]}`,
		"a list for the name":        `{"name":["alpha:r","bravo:r"]}`,
		"an intent of its own":       `{"name":"alpha:r","intent_data_sensitivity":"destructive"}`,
		"NUL":                        `{"name":"alpha:r\u0000bravo:r"}`,
	} {
		refused[what] = args
	}
	for what, args := range refused {
		for _, variant := range []string{"call_tool_read", "call_tool_destructive"} {
			if m := p.tool(variant, args); refusalOf(m) == "" {
				t.Errorf("%s: %s gave %s", what, variant, m.Raw)
			}
		}
	}
	if used := mine.used(); len(used) > 0 {
		t.Errorf("the server got %q", used)
	}
	// These are what they seem: tools of its own server, and arguments.
	for name, own := range map[string]string{"alpha:bravo:r": "bravo:r", "alpha__bravo:r": "bravo:r", "alpha:bravo__r": "bravo__r", "alpha__bravo__r": "bravo__r",
		"alpha:read_cache": "read_cache", "alpha__upstream_servers": "upstream_servers", "alpha:call_tool_destructive": "call_tool_destructive"} {
		before := len(mine.received("tools/call"))
		m := p.through("read", name, `{}`)
		if calls := mine.received("tools/call"); refusalOf(m) != "" || len(calls) != before+1 || stringAt(calls[before].Params, "name") != own {
			t.Errorf("%s gave %s", name, m.Raw)
		}
	}
	for _, form := range []string{`"args":%s`, `"args_json":%q`} {
		const inside = `{"name":"d","_meta":{"progressToken":"p","caller":"admin"},"arguments":{"name":"bravo:d"},"server":"bravo","method":"x"}`
		m := p.tool("call_tool_read", fmt.Sprintf(`{"name":"alpha:r",`+form+`}`, inside))
		calls := mine.received("tools/call")
		got := calls[len(calls)-1].Params
		if refusalOf(m) != "" || stringAt(got, "name") != "r" || string(at(got, "arguments")) != inside || at(got, "_meta") != nil || len(keysOf(t, got)) != 2 {
			t.Errorf("the server got %s", got)
		}
	}
	if used := other.used(); len(used) > 0 {
		t.Errorf("the other server got %q", used)
	}
	// A built-in name is the program's own, whatever a server calls its tools.
	before := len(mine.received("tools/call"))
	if m := p.tool("read_cache", `{"key":"x"}`); m.text() != "cache key not found" {
		t.Errorf("read_cache gave %s", m.Raw)
	}
	for _, name := range []string{"upstream_servers", "alpha__r", "alpha:r"} {
		if m := p.tool(name, `{"operation":"list"}`); m.code() != -32602 {
			t.Errorf("%s called by its name gave %s", name, m.Raw)
		}
	}
	if n := len(mine.received("tools/call")); n != before {
		t.Errorf("the server got %d calls", n-before)
	}
	// In both notations a name leads to one tool also for whoever reaches both.
	admin := retrieving(t, dir)
	for name, want := range map[string][2]string{"alpha:bravo:r": {"alpha", "bravo:r"}, "bravo:alpha:r": {"bravo", "alpha:r"}, "bravo__r": {"bravo", "r"}, "alpha:r": {"alpha", "r"}} {
		s := map[string]*upstreamStub{"alpha": mine, "bravo": other}[want[0]]
		before := len(s.received("tools/call"))
		m := admin.through("destructive", name, `{}`)
		if calls := s.received("tools/call"); refusalOf(m) != "" || len(calls) != before+1 || stringAt(calls[before].Params, "name") != want[1] {
			t.Errorf("%s gave %s", name, m.Raw)
		}
	}
}
