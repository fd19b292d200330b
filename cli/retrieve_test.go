//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// retrieveOrder is the order in which mode retrieve_tools lists its tools.
func retrieveOrder(more ...string) []string {
	return append([]string{"retrieve_tools", "describe_tool", "call_tool_read", "call_tool_write", "call_tool_destructive", "read_cache"}, more...)
}

// TestRetrieveListsAtOnce: what the mode lists is the program's own, so that no
// server is started for it, in the order of the contract and with true annotations.
func TestRetrieveListsAtOnce(t *testing.T) {
	t.Parallel()
	const profiles = `"profiles":[{"name":"one","servers":["s"]}],`
	for name, c := range map[string]struct {
		members string
		want    []string
	}{
		"plain":      {"", retrieveOrder()},
		"profiles":   {profiles, retrieveOrder("set_profile")},
		"management": {`"disable_management":false,`, retrieveOrder("upstream_servers", "quarantine_security")},
		"both":       {`"disable_management":false,` + profiles, retrieveOrder("set_profile", "upstream_servers", "quarantine_security")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := moonStub(t, "s")
			dir := place(t, privateConfig(c.members, s))
			p := retrieving(t, dir)
			all, names := p.list("tools")
			if !slices.Equal(names, c.want) {
				t.Errorf("listed are %q", names)
			}
			hints := func(name string) string {
				a := func(hint string) string { return string(at(all[name], "annotations", hint)) }
				return a("readOnlyHint") + " " + a("destructiveHint") + " " + a("openWorldHint")
			}
			for name, want := range map[string]string{
				"retrieve_tools": "true false false", "describe_tool": "true false false", "read_cache": "true false false", "set_profile": "true false false",
				"call_tool_read": "true false true", "call_tool_write": "false false true", "call_tool_destructive": "false true true",
				"upstream_servers": "false true false", "quarantine_security": "false true false",
			} {
				if all[name] == nil {
					continue
				}
				if got := hints(name); got != want {
					t.Errorf("%s: the annotations are %s", name, got)
				}
				if string(at(all[name], "_meta", "anthropic/alwaysLoad")) != "true" || at(all[name], "_meta", "anthropic/maxResultSizeChars") == nil || at(all[name], "outputSchema") != nil {
					t.Errorf("%s is %s", name, all[name])
				}
				if n := len(stringAt(all[name], "description")); n >= 2000 || n == 0 {
					t.Errorf("%s has a description of %d bytes", name, n)
				}
			}
			if _, err := os.Stat(s.log); err == nil {
				t.Errorf("a server was started: %q", s.events("start"))
			}
			// What is not in the list is in no call either.
			for _, name := range []string{"s__r", "proxy", "code_execution"} {
				if m := p.tool(name, ""); m.code() != -32602 || !strings.Contains(m.errorText(), name) {
					t.Errorf("%s gave %s", name, m.Raw)
				}
			}
			p.awaitFound("moon", "s:r", "s:w", "s:d")
		})
	}
}

// TestRetrieveListIsConstant is L03: clients that list once have the right list for
// ever. It changes only where its description names servers; what comes late is
// found and called in the same session, and what is gone is not.
func TestRetrieveListIsConstant(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{"named": "", "anonymous": `"advertise_upstream_servers":false,`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, late := newTurncoat(t, "s"), moonStub(t, "late")
			s.trusted()
			dir := place(t, privateConfig(members, s.upstreamStub))
			p := retrieving(t, dir)
			before := p.call("tools/list", "").Result
			if named := strings.Contains(string(before), "Servers: s"); named != (members == "") {
				t.Errorf("the list is %s", before)
			}
			p.awaitFound("look", "s:look")
			p.list("prompts")
			// A prompt changes with the tools, since the lists of all kinds are compared
			// together: when that is told, nothing more is on its way.
			s.write(t, offering{"tools": cutTool + `,{"name":"fly","description":"Flies to the sun."}`, "prompts": askPrompt + `,{"name":"more"}`})
			for _, kind := range []string{"tools", "prompts"} {
				if m := p.through("write", "s:notify", fmt.Sprintf(`{"method":"notifications/%s/list_changed"}`, kind)); refusalOf(m) != "" {
					t.Fatalf("notify gave %s", m.Raw)
				}
			}
			p.await("notifications/prompts/list_changed")
			p.awaitFound("fly to the sun", "s:fly")
			if m := p.through("destructive", "s:fly", "{}"); m.text() != "answer of fly · 世界" {
				t.Errorf("a tool that came late gave %s", m.Raw)
			}
			if found := foundIn(p.search("look")); slices.Contains(found, "s:look") {
				t.Errorf("a tool that is gone is found: %q", found)
			}
			if m := p.through("read", "s:look", "{}"); !m.isError() || !strings.Contains(m.text(), "not found, or access denied") {
				t.Errorf("a tool that is gone gave %s", m.Raw)
			}
			sameBytes(t, p.call("tools/list", "").Result, before)
			if told := p.taken("notifications/tools/list_changed"); len(told) > 0 {
				t.Errorf("the client is told %d times of tools that it does not see", len(told))
			}
			p.list("prompts")
			save(t, dir, privateConfig(members, s.upstreamStub, late))
			p.awaitFound("moon", "late:r")
			if m := p.through("read", "late:r", "{}"); refusalOf(m) != "" {
				t.Errorf("a server that came late gave %s", m.Raw)
			}
			p.await("notifications/prompts/list_changed")
			after := p.call("tools/list", "").Result
			if members != "" {
				sameBytes(t, after, before)
				if told := p.taken("notifications/tools/list_changed"); len(told) > 0 {
					t.Errorf("the client is told %d times of tools that it does not see", len(told))
				}
				return
			}
			if !strings.Contains(string(after), "Servers: s, late") {
				t.Errorf("the list is %s", after)
			}
			p.await("notifications/tools/list_changed")
		})
	}
}

// TestRetrieveBesideDeadServers: servers that cannot be started cost the others
// nothing. They are named with what was found, and a call of one of their tools
// tells of the server.
func TestRetrieveBesideDeadServers(t *testing.T) {
	t.Parallel()
	s, dead := moonStub(t, "s"), newStub(t, "dead", `"exit_at_start":3`)
	config := privateConfig("", s, dead)
	config = strings.Replace(config, `"mcpServers":[`, `"mcpServers":[{"name":"lost","command":"no-such-command-at-all"},`, 1)
	p := retrieving(t, place(t, config))
	p.awaitFound("moon", "s:r")
	notice := stringAt(p.search("moon"), "notice")
	if !strings.Contains(notice, "lost") || !strings.Contains(notice, "dead") {
		t.Errorf("the notice is %q", notice)
	}
	if m := p.through("read", "s:r", "{}"); refusalOf(m) != "" {
		t.Errorf("s:r gave %s", m.Raw)
	}
	for name, part := range map[string]string{"dead:look": "server dead", "lost:look": "server lost"} {
		if m := p.through("destructive", name, "{}"); !m.isError() || !strings.Contains(m.text(), part) {
			t.Errorf("%s gave %s", name, m.Raw)
		}
	}
	if notice := stringAt(p.search("moon", `"servers":["s","nobody"]`), "notice"); !strings.Contains(notice, "nobody") {
		t.Errorf("the notice is %q", notice)
	}
}

// TestRetrieveTwice is Q11: while one instance has everything open and a call under
// way, another with the same data says hello and searches, and both answer the same,
// scores included.
func TestRetrieveTwice(t *testing.T) {
	t.Parallel()
	for name, configure := range sharings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newStub(t, "a", ""), moonStub(t, "b")
			dir := place(t, configure("", a, b))
			first := retrieving(t, dir)
			first.awaitFound("returns the environment", "a:env")
			first.awaitFound("moon", "b:r")
			hanging := first.start("tools/call", `{"name":"call_tool_read","arguments":{"name":"a:hang"}}`)
			a.awaitMessage("tools/call")
			second := retrieving(t, dir)
			for _, query := range []string{"environment", "a:env", "b__r", "process id", "moon", "notification that something was updated", "xyzzy", "bytes", "returns"} {
				for _, members := range []string{`"limit":100`, `"detail":"compact","limit":3`, `"types":["tool","resource","prompt"]`, `"exclude_destructive":true,"servers":["b"]`} {
					one, two := first.search(query, members), second.search(query, members)
					if string(one) != string(two) {
						t.Errorf("%s %s: one answers\n%s, the other\n%s", query, members, one, two)
					}
				}
			}
			first.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, hanging))
		})
	}
}

// TestRetrieveEntries is Q12 and Q06: what is found can be used as it is, whatever
// the query looks like.
func TestRetrieveEntries(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"number","default":1.50}},"x-more":[1,2]}`
	s := newStub(t, "s", fmt.Sprintf(`"tools":[{"name":"work_start_task","description":"Begins.","inputSchema":%s,"annotations":{"readOnlyHint":true,"x":1}}]`, schema))
	p := retrieving(t, place(t, privateConfig("", s)))
	p.awaitFound("work", "s:work_start_task")
	for _, query := range []string{"work_start_task", "s:work_start_task", "s__work_start_task", "start task", "workStartTask"} {
		entry := at(p.search(query), "tools", "0")
		if stringAt(entry, "name") != "s:work_start_task" || string(at(entry, "inputSchema")) != schema || stringAt(entry, "call_with") != "call_tool_read" || string(at(entry, "annotations")) != `{"readOnlyHint":true,"x":1}` {
			t.Errorf("%s found %s", query, entry)
		}
	}
	for _, query := range []string{`\"unbalanced`, "+", "a:b:c", "/[/", `\\`, "*", "-", "(", "name:x", "work~2", strings.Repeat("x y ", 2500), "\u202e\u0001", "世界"} {
		quoted, err := json.Marshal(query)
		if err != nil {
			t.Fatal(err)
		}
		m := p.tool("retrieve_tools", fmt.Sprintf(`{"query":%s}`, quoted))
		if refusalOf(m) != "" || at(json.RawMessage(m.text()), "tools") == nil || string(at(json.RawMessage(m.text()), "tools")) == "null" {
			t.Errorf("%q gave %s", query, shorten(m.Raw))
		}
	}
	for _, args := range []string{`{}`, `{"query":""}`, `{"query":"   "}`, `{"query":null}`, `{"query":5}`} {
		if m := p.tool("retrieve_tools", args); !m.isError() || !strings.Contains(m.text(), "query") {
			t.Errorf("%s gave %s", args, m.Raw)
		}
	}
}

// TestRetrieveArguments is C01 and C02: in whatever form the arguments come, the
// server gets an object.
func TestRetrieveArguments(t *testing.T) {
	t.Parallel()
	s := moonStub(t, "s")
	p := retrieving(t, place(t, privateConfig("", s)))
	for _, form := range []struct{ members, want string }{
		{`"args":{"a":9007199254740993}`, `{"a":9007199254740993}`},
		{`"args_json":"{\"a\":5}"`, `{"a":5}`},
		{`"args":"{\"a\":5}"`, `{"a":5}`},
		{`"args":{"a":5},"args_json":"{ \"a\" : 5.0 }"`, `{"a":5}`},
		{`"args":{}`, `{}`}, {`"args":null`, `{}`}, {`"args_json":null`, `{}`}, {`"intent_reason":"why not","intent_data_sensitivity":"public"`, `{}`},
	} {
		before := 0
		if _, err := os.Stat(s.log); err == nil {
			before = len(s.received("tools/call"))
		}
		m := p.tool("call_tool_read", `{"name":"s:r",`+form.members+`}`)
		calls := s.received("tools/call")
		if refusalOf(m) != "" || len(calls) != before+1 || string(at(calls[before].Params, "arguments")) != form.want {
			t.Errorf("%s gave %s, and the server got %v", form.members, m.Raw, calls[before:])
		}
	}
}

// TestCorpusThroughVariant has every odd answer come through call_tool_destructive,
// byte for byte as it comes in mode direct.
func TestCorpusThroughVariant(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t, "results.txtar")
	var tools, calls []string
	for i, c := range cases {
		kind := "result"
		if strings.HasSuffix(c.name, ".error") {
			kind = "error"
		}
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		calls = append(calls, fmt.Sprintf(`"t%d":{%q:%s}`, i, kind, c.sent))
	}
	s := newStub(t, "s", fmt.Sprintf(`"tools":[%s],"calls":{%s}`, strings.Join(tools, ","), strings.Join(calls, ",")))
	p := retrieving(t, place(t, privateConfig(`"tool_response_limit":0,`, s)))
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := c.sent
			if c.want != nil {
				want = c.want
			}
			m := p.through("destructive", fmt.Sprintf("s:t%d", i), "{}")
			got := m.Result
			if strings.HasSuffix(c.name, ".error") {
				got = m.Error
			}
			sameBytes(t, got, want)
		})
	}
}

// TestRetrieveInstructions: what a client is told at the start has at most 1,500
// bytes, says how tools are reached, and tells of its servers, profile and tiers.
func TestRetrieveInstructions(t *testing.T) {
	t.Parallel()
	const profiles = `"profiles":[{"name":"one","servers":["alpha"],"max_tier":"write"}],`
	var many []*upstreamStub
	for i := range 45 {
		many = append(many, &upstreamStub{t: t, name: fmt.Sprintf("server-%02d-%s", i, strings.Repeat("x", 40))})
	}
	alpha, bravo := newStub(t, "alpha", ""), newStub(t, "bravo", "")
	held, off := newStub(t, "held", "").with(`"quarantined":true`), newStub(t, "off", "").with(`"enabled":false`)
	few := []*upstreamStub{bravo, alpha, held, off}
	const how, servers = "Find tools with retrieve_tools", "Servers: alpha, bravo"
	for name, c := range map[string]struct {
		config    string
		args      []string
		with, not []string
	}{
		"plain":        {privateConfig(profiles, few...), nil, []string{how, servers, "Switched off: upstream_servers"}, []string{"held", "Profile", "Only tools"}},
		"anonymous":    {privateConfig(`"advertise_upstream_servers":false,`, few...), nil, []string{how}, []string{"alpha", "Servers:"}},
		"profile":      {privateConfig(profiles, few...), []string{"--profile", "one"}, []string{how, "Profile: one", "Servers: alpha\n", "Only tools that read or write"}, []string{"bravo", "held"}},
		"agent":        {privateConfig(profiles, few...), []string{"--token-file"}, []string{how, "Servers: bravo\n", "Only tools that read can"}, []string{"alpha", "Profile"}},
		"managed":      {privateConfig(`"disable_management":false,`, few...), nil, []string{how, servers}, []string{"Switched off"}},
		"operator":     {privateConfig(`"instructions":"Ask before you delete.",`, few...), nil, []string{how, "Ask before you delete.", servers}, nil},
		"long":         {privateConfig(`"instructions":"`+strings.Repeat("Ünd so ", 900)+`",`, few...), nil, []string{how, "Ünd so ", servers}, nil},
		"many servers": {privateConfig(`"instructions":"Ask before you delete.",`, many...), nil, []string{how, "Servers: server-00-"}, nil},
		"direct":       {privateConfig("", few...), []string{"--mode", "direct"}, []string{"server__name", servers}, []string{"retrieve_tools", "Switched off"}},
		"direct, long": {privateConfig(`"instructions":"`+strings.Repeat("Ünd so ", 900)+`",`, few...), []string{"--mode", "direct"}, []string{"server__name", servers}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := place(t, c.config)
			args := append([]string{"--mode", "retrieve_tools"}, c.args...)
			if args[len(args)-1] == "--token-file" {
				_, file := issue(t, dir, "agent", "--servers", "bravo,off")
				args = append(args, file)
			}
			p := startProxyIn(t, dir, "", args...)
			text := stringAt(p.initialize("").Result, "instructions")
			if len(text) > 1500 || !utf8.ValidString(text) {
				t.Errorf("%d bytes: %s", len(text), text)
			}
			for _, part := range c.with {
				if !strings.Contains(text+"\n", part) {
					t.Errorf("%q is not in %s", part, text)
				}
			}
			for _, part := range c.not {
				if strings.Contains(text, part) {
					t.Errorf("%q is in %s", part, text)
				}
			}
			all, _ := p.list("tools")
			if n := len(stringAt(all["retrieve_tools"], "description")); n >= 2000 {
				t.Errorf("retrieve_tools has a description of %d bytes", n)
			}
		})
	}
}

// TestRetrieveHot: how searches answer is changed in the file while the session
// lasts, and the client is told where its list says something else then.
func TestRetrieveHot(t *testing.T) {
	t.Parallel()
	s := moonStub(t, "s")
	dir := place(t, privateConfig("", s))
	p := retrieving(t, dir)
	p.awaitFound("moon", "s:r", "s:w", "s:d", "s:long")
	p.list("tools")
	if entry := at(p.search("moon"), "tools", "0"); at(entry, "inputSchema") == nil || at(entry, "id") != nil {
		t.Errorf("found is %s", entry)
	}
	save(t, dir, privateConfig(`"tool_response_mode":"compact","tools_limit":2,`, s))
	p.await("notifications/tools/list_changed")
	answer := p.search("moon")
	if entry := at(answer, "tools", "0"); at(entry, "inputSchema") != nil || at(entry, "id") == nil || len(foundIn(answer)) != 2 || string(at(answer, "total")) != "4" || !strings.Contains(stringAt(answer, "hint"), "describe_tool") {
		t.Errorf("found is %s", answer)
	}
	all, _ := p.list("tools")
	if properties := at(all["retrieve_tools"], "inputSchema", "properties"); string(at(properties, "limit", "default")) != "2" || stringAt(properties, "detail", "default") != "compact" {
		t.Errorf("the list says %s", properties)
	}
	whole := p.search("moon", `"detail":"full","limit":100`)
	save(t, dir, privateConfig(`"tool_response_limit":500,`, s))
	p.await("notifications/tools/list_changed")
	cut := p.search("moon", `"detail":"full","limit":100`)
	if utf8.RuneCount(cut) > 500 || utf8.RuneCount(whole) <= 500 || !slices.Equal(foundIn(cut)[:1], foundIn(whole)[:1]) || string(at(cut, "total")) != "4" {
		t.Errorf("%d characters: %s", utf8.RuneCount(cut), cut)
	}
	if m := p.through("read", "s:long", "{}"); utf8.RuneCountInString(m.text()) > 500 || !readCall.MatchString(m.text()) {
		t.Errorf("a long result is %s", shorten(m.Raw))
	}
	save(t, dir, privateConfig(`"tool_response_limit":0,"tools_limit":3,`, s))
	p.await("notifications/tools/list_changed")
	if m := p.through("read", "s:long", "{}"); len(m.text()) != 30000 {
		t.Errorf("without a limit a result has %d bytes", len(m.text()))
	}
	p.list("tools")
	save(t, dir, privateConfig(`"disable_management":false,"profiles":[{"name":"one","servers":["s"]}],`, s))
	p.await("notifications/tools/list_changed")
	if _, names := p.list("tools"); !slices.Equal(names, retrieveOrder("set_profile", "upstream_servers", "quarantine_security")) {
		t.Errorf("listed are %q", names)
	}
	save(t, dir, privateConfig("", s))
	p.await("notifications/tools/list_changed")
	if m := p.tool("upstream_servers", `{"operation":"list"}`); m.code() != -32602 {
		t.Errorf("upstream_servers is there: %s", m.Raw)
	}
}
