package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

func TestLists(t *testing.T) {
	d := direct(t, &upstreams{}, offer("a", [2]string{"tool", "t"}, [2]string{"prompt", "p"}, [2]string{"resource", "x:1"}, [2]string{"template", "x:{a}"}),
		offer("b", [2]string{"resource", "x:1"}))
	for method, want := range map[string]string{
		"tools/list":               `{"tools":[{"name":"a__t","description":"[a]","inputSchema":{"type":"object"}}]}`,
		"prompts/list":             `{"prompts":[{"name":"a__p"}]}`,
		"resources/list":           `{"resources":[{"name":"x:1"},{"name":"x:1"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"name":"x:{a}"}]}`,
	} {
		if !d.Routes(method) {
			t.Errorf("%s is not routed", method)
		}
		if got, e := d.Handle(t.Context(), session(), method, nil); string(got) != want {
			t.Errorf("%s\ngot  %s %v\nwant %s", method, got, e, want)
		}
	}
	for _, method := range []string{"initialize", "ping", "foo", "sampling/createMessage"} {
		if d.Routes(method) {
			t.Errorf("%s is routed", method)
		}
	}
}

// TestListsHide leaves out what the rules forbid. A call to it is explained to the
// local user, and to all others is one to an unknown tool.
func TestListsHide(t *testing.T) {
	u := &upstreams{}
	u.set(offer("held", [2]string{"tool", "t"}), offer("some", [2]string{"tool", "a"}, [2]string{"tool", "b"}))
	rules := policy.Rules{
		Servers:  map[string]policy.Rule{"held": {Quarantined: true}, "some": {DisabledTools: []string{"b"}}},
		Profiles: map[string]policy.Profile{"p": {Servers: []string{"held", "some"}, Tier: catalog.Destructive}},
	}
	gate := policy.NewGate(u, rules, policy.Options{})
	d := NewDirect(Options{Gate: gate, Callers: auth.Person("")})
	got, _ := d.Handle(t.Context(), session(), "tools/list", nil)
	if want := `{"tools":[{"name":"some__a","description":"[some]","inputSchema":{"type":"object"}}]}`; string(got) != want {
		t.Errorf("listed are %s", got)
	}
	limited := NewDirect(Options{Gate: gate, Callers: auth.Person("p")})
	for name, why := range map[string]string{"held__t": "is quarantined", "some__b": "is disabled", "some__c": ""} {
		params := fmt.Appendf(nil, `{"name":%q}`, name)
		unknown := func(e *wire.Error) bool {
			return e != nil && e.Code == wire.CodeInvalidParams && e.Message == "tool '"+name+"' not found, or access denied"
		}
		if _, e := limited.Handle(t.Context(), session(), "tools/call", params); !unknown(e) {
			t.Errorf("%s of a profile: %v", name, e)
		}
		result, e := d.Handle(t.Context(), session(), "tools/call", params)
		if why == "" && !unknown(e) || why != "" && (e != nil || !strings.Contains(string(result), why)) {
			t.Errorf("%s: %s %v", name, result, e)
		}
	}
}

// TestNamesByClient gives each client names of its length.
func TestNamesByClient(t *testing.T) {
	long := strings.Repeat("x", 120)
	for client, max := range map[string]int{"": 64, "claude-code": 113, "Visual Studio Code": 46} {
		u := &upstreams{}
		d := direct(t, u, offer("s", [2]string{"tool", long}))
		s := session()
		s.SetClient(wire.ClientInfo{Name: client})
		list, _ := d.Handle(t.Context(), s, "tools/list", nil)
		var tools struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(list, &tools); err != nil || len(tools.Tools) != 1 || len(tools.Tools[0].Name) != max {
			t.Fatalf("%s: %s", client, list)
		}
		if _, e := d.Handle(t.Context(), s, "tools/call", fmt.Appendf(nil, `{"name":%q}`, tools.Tools[0].Name)); e != nil {
			t.Errorf("%s: %v", client, e)
		}
		if want := fmt.Sprintf(`{"name":%q,"arguments":{}}`, long); string(u.last().Params) != want {
			t.Errorf("%s: the server got %s", client, u.last().Params)
		}
	}
}

// TestUnknownNames is the table of names that the catalog does not have.
func TestUnknownNames(t *testing.T) {
	fresh := offer("fresh")
	fresh.Known, fresh.Prefix = false, "f"
	u := &upstreams{}
	u.set(offer("known", [2]string{"tool", "t"}), fresh)
	d := NewDirect(Options{Callers: auth.Person(""), Gate: policy.NewGate(u, policy.Rules{
		Servers: map[string]policy.Rule{"known": {}, "fresh": {Unannotated: catalog.Read}, "held": {Quarantined: true}, "off": {Disabled: true}},
	}, policy.Options{})})
	for _, c := range []struct{ name, server, own, says string }{
		{"known__t", "known", "t", ""},
		{"f__any", "fresh", "any", ""}, // the server decides
		{"f__a__b", "fresh", "a__b", ""},
		{"known__u", "", "", "tool 'known__u' not found"},
		{"fresh__any", "", "", "tool 'fresh__any' not found"}, // that is not its prefix
		{"nobody__t", "", "", "tool 'nobody__t' not found"},
		{"plain", "", "", "tool 'plain' not found"},
		{"f__", "", "", "tool 'f__' not found"},
		{"__t", "", "", "tool '__t' not found"},
		{"held__t", "", "", "server held is quarantined"},
		{"off__t", "", "", "mcpproxy enable off"},
	} {
		u.got = nil
		result, e := d.Handle(t.Context(), session(), "tools/call", fmt.Appendf(nil, `{"name":%q}`, c.name))
		said := string(result)
		if e != nil {
			said = e.Message
		}
		switch {
		case c.says != "" && (!strings.Contains(said, c.says) || len(u.got) > 0):
			t.Errorf("%s: %s", c.name, said)
		case c.says == "" && (u.last().Server != c.server || string(wire.Member(u.last().Params, "name")) != fmt.Sprintf("%q", c.own)):
			t.Errorf("%s: %s got %s, %s", c.name, u.last().Server, u.last().Params, said)
		}
	}
}

// TestFailures tells which failures are results, for the model to read, and
// which stay errors.
func TestFailures(t *testing.T) {
	theirs := wire.ParseError(json.RawMessage(`{"code":-32001,"message":"theirs","x":1.0}`))
	for _, c := range []struct {
		failure *wire.Error
		result  string
	}{
		{wire.Errorf(wire.CodeUnavailable, "gone <away>"), `{"content":[{"type":"text","text":"gone <away>"}],"isError":true}`},
		{wire.Errorf(wire.CodeTimeout, "late"), `{"content":[{"type":"text","text":"late"}],"isError":true}`},
		{wire.Errorf(wire.CodeBusy, "busy"), `{"content":[{"type":"text","text":"busy"}],"isError":true}`},
		{wire.Errorf(wire.CodeRefused, "no"), `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		{wire.Errorf(wire.CodeInternal, "odd"), ``},
		{theirs, ``},
	} {
		d := direct(t, &upstreams{failure: c.failure}, offer("s", [2]string{"tool", "t"}, [2]string{"prompt", "p"}, [2]string{"resource", "x:1"}))
		result, e := d.Handle(t.Context(), session(), "tools/call", json.RawMessage(`{"name":"s__t"}`))
		if string(result) != c.result || c.result == "" && e != c.failure {
			t.Errorf("%v: %s %v", c.failure, result, e)
		}
		for method, params := range map[string]string{"prompts/get": `{"name":"s__p"}`, "resources/read": `{"uri":"x:1"}`} {
			if result, e := d.Handle(t.Context(), session(), method, json.RawMessage(params)); e != c.failure || result != nil {
				t.Errorf("%s %v: %s %v", method, c.failure, result, e)
			}
		}
	}
}

func TestWithText(t *testing.T) {
	for result, want := range map[string]string{
		`{}`:                  ``,
		`{"content":[]}`:      ``,
		`null`:                ``,
		`"structuredContent"`: ``,
		`{"content":[5],"structuredContent":{"a":1}}`:              ``,
		`{"content":{},"structuredContent":{"a":1}}`:               ``,
		`{"content":"","structuredContent":{"a":1}}`:               ``,
		`{"content":[],"structuredContent":null}`:                  ``,
		`{"content":[ ],"structuredContent":{"a":"\"<"}}`:          `{"content":[{"type":"text","text":"{\"a\":\"\\\"<\"}"}],"structuredContent":{"a":"\"<"}}`,
		`{"structuredContent":{"a":1.0},"isError":true}`:           `{"structuredContent":{"a":1.0},"isError":true,"content":[{"type":"text","text":"{\"a\":1.0}"}]}`,
		`{"content":null,"structuredContent":[]}`:                  `{"content":[{"type":"text","text":"[]"}],"structuredContent":[]}`,
		`{"content":[1],"content":[],"structuredContent":{"a":1}}`: ``,
		`{"content":[],"content":[1],"structuredContent":{"a":1}}`: ``,
	} {
		if want == "" {
			want = result
		}
		if got := string(withText(json.RawMessage(result))); got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	}
}

func TestLevelAndNotifications(t *testing.T) {
	u := &upstreams{}
	d := direct(t, u)
	s := session()
	for _, params := range []string{`{"level":"loud"}`, `{}`, ``} {
		if _, e := d.Handle(t.Context(), s, "logging/setLevel", json.RawMessage(params)); e == nil || e.Code != wire.CodeInvalidParams {
			t.Errorf("%s: %v", params, e)
		}
	}
	if _, e := d.Handle(t.Context(), s, "logging/setLevel", json.RawMessage(`{"level":"notice"}`)); e != nil || s.LogLevel() != "notice" || u.level != "notice" {
		t.Errorf("level %q of the session, %q of the servers: %v", s.LogLevel(), u.level, e)
	}
	d.Notified(s, "notifications/roots/list_changed", nil)
	if !slices.Equal(u.notified, []string{"notifications/roots/list_changed"}) {
		t.Errorf("the servers were told %q", u.notified)
	}
}

func TestManyToolsAreWarnedOfOnce(t *testing.T) {
	var items [][2]string
	for i := range 140 {
		items = append(items, [2]string{"tool", fmt.Sprint("t", i)})
	}
	var warnings []string
	u := &upstreams{}
	u.set(offer("s", items...))
	d := NewDirect(Options{Gate: policy.NewGate(u, policy.Rules{Servers: map[string]policy.Rule{"s": {}}}, policy.Options{}), Callers: auth.Person(""), Warn: func(text string) { warnings = append(warnings, text) }})
	for range 2 {
		d.Handle(t.Context(), session(), "tools/list", nil)
		u.set(offer("s", items...))
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "140 tools") || !strings.Contains(warnings[0], "--mode") {
		t.Errorf("said %q", warnings)
	}
}

// kept are Lists in memory; put is called after a list was rendered and before
// the client gets it.
type kept struct {
	mu    sync.Mutex
	lists map[string]json.RawMessage
	put   func()
}

func (k *kept) Get(_ context.Context, key string) json.RawMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists[key]
}

func (k *kept) Put(key string, body json.RawMessage) {
	k.mu.Lock()
	k.lists[key] = body
	k.mu.Unlock()
	if k.put != nil {
		k.put()
	}
}

// TestListsAreKept takes a reply from an earlier start while the stamp is the
// same, and renders it when it is not.
func TestListsAreKept(t *testing.T) {
	k := &kept{lists: map[string]json.RawMessage{}}
	list := func(stamp, client string, server *catalog.Server) string {
		u := &upstreams{stamp: stamp}
		d := direct(t, u, server)
		d.options.Lists = k
		s := session()
		s.SetClient(wire.ClientInfo{Name: client})
		body, _ := d.Handle(t.Context(), s, "tools/list", nil)
		return string(body)
	}
	first := list("1", "", offer("s", [2]string{"tool", "t"}))
	if same := list("1", "", offer("s", [2]string{"tool", "u"})); same != first {
		t.Errorf("with the same stamp: %s", same)
	}
	for name, other := range map[string]string{
		"another stamp":  list("2", "", offer("s", [2]string{"tool", "u"})),
		"another client": list("1", "codex", offer("s", [2]string{"tool", "u"})),
		"no stamp":       list("", "", offer("s", [2]string{"tool", "u"})),
	} {
		if !strings.Contains(other, "s__u") {
			t.Errorf("%s: %s", name, other)
		}
	}
}

// announcing runs a router in a bubble and returns its client and what ends it.
func announcing(t *testing.T, d *Router) (*wire.Session, *client) {
	t.Helper()
	c := &client{}
	s := wire.NewSession("test", c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Run(ctx, s); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return s, c
}

// TestAnnouncements tells a client of lists that it has seen and that differ,
// at most every 250 ms.
func TestAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstreams{}
		d := direct(t, u, offer("s", [2]string{"tool", "t"}))
		s, c := announcing(t, d)
		step := func(want ...string) {
			t.Helper()
			time.Sleep(changeGap)
			synctest.Wait()
			if got := c.all(); !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		u.set(offer("s", [2]string{"tool", "u"}))
		d.Changed()
		step() // it has listed nothing
		d.Handle(t.Context(), s, "tools/list", nil)
		d.Handle(t.Context(), s, "resources/list", nil)
		d.Handle(t.Context(), s, "resources/templates/list", nil)
		u.set(offer("s", [2]string{"tool", "u"}, [2]string{"prompt", "p"}))
		d.Changed()
		step() // what it listed is the same
		u.set(offer("s", [2]string{"tool", "v"}, [2]string{"resource", "x:1"}, [2]string{"template", "x:{a}"}))
		d.Changed()
		step("notifications/tools/list_changed", "notifications/resources/list_changed")
		for i := range 100 {
			u.set(offer("s", [2]string{"tool", fmt.Sprint("t", i)}, [2]string{"resource", "x:1"}, [2]string{"template", "x:{a}"}))
			d.Changed()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(c.all()); n < 5 || n > 7 {
			t.Errorf("told %d times, of 100 changes in a second", n)
		}
	})
}

// TestAnnouncementsMissNothing changes the catalog between the making of a list
// and its answer: the client has to hear of it.
func TestAnnouncementsMissNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstreams{stamp: "1"}
		d := direct(t, u, offer("s"))
		s, c := announcing(t, d)
		d.options.Lists = &kept{lists: map[string]json.RawMessage{}, put: func() {
			u.set(offer("s", [2]string{"tool", "late"}))
			d.Changed()
			synctest.Wait() // for the announcement
		}}
		if body, _ := d.Handle(t.Context(), s, "tools/list", nil); string(body) != `{"tools":[]}` {
			t.Errorf("listed are %s", body)
		}
		time.Sleep(2 * changeGap)
		synctest.Wait()
		if got := c.all(); len(got) != 1 {
			t.Errorf("told %q", got)
		}
	})
}

func TestInstructions(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("server-%02d", i))
	}
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		briefing Briefing
		want     []string
	}{
		"nothing":       {Briefing{}, []string{"server__name", "\nOnly tools that read can be called."}},
		"servers":       {Briefing{Servers: []string{"b", "a"}}, []string{"Servers: a, b"}},
		"many":          {Briefing{Servers: many}, []string{"server-29, +10 more"}},
		"operator":      {Briefing{Operator: "Ask before you write.", Servers: []string{"a"}}, []string{"\nAsk before you write.\nServers: a"}},
		"long operator": {Briefing{Operator: strings.Repeat("wörter ", 500), Servers: many}, []string{"wörter", "server-29"}},
		"long names":    {Briefing{Operator: "be kind", Servers: slices.Repeat([]string{long}, 40), Profile: long}, []string{"be kind"}},
		"limited":       {Briefing{Servers: []string{"a"}, Profile: "p", Tier: catalog.Write}, []string{"\nProfile: p\nServers: a\nOnly tools that read or write"}},
	} {
		got := Instructions(c.briefing)
		if len(got) > maxInstructions {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %s", name, want, got)
			}
		}
		if !json.Valid(wire.Quote(got)) || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%s: broken text %q", name, got)
		}
	}
}
