package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// desk is a retrieve_tools session in front of servers.
type desk struct {
	*Router
	u       *upstreams
	records []activity.Record
	warned  []string
	set     Settings
}

// retrieve opens a desk; rules are those of servers that are not as usual.
func retrieve(t *testing.T, callers Callers, rules map[string]policy.Rule, servers ...*catalog.Server) *desk {
	t.Helper()
	d := &desk{u: &upstreams{}, set: Settings{ToolsLimit: 15}}
	d.u.set(servers...)
	all := policy.Rules{Servers: map[string]policy.Rule{}}
	for _, s := range servers {
		rule, special := rules[s.Name]
		if !special {
			rule.Unannotated = catalog.Destructive
		}
		all.Servers[s.Name] = rule
		d.set.Servers = append(d.set.Servers, s.Name)
	}
	gate := policy.NewGate(d.u, all, policy.Options{Record: func(r activity.Record) { d.records = append(d.records, r) }})
	settings := func() Settings { return d.set }
	search := NewSearch(SearchOptions{Gate: gate, Settings: settings})
	t.Cleanup(func() { search.Close() })
	d.Router = NewRetrieve(Options{
		Mode: retrieveName, Gate: gate, Callers: callers, Settings: settings, Search: search,
		Warn: func(text string) { d.warned = append(d.warned, text) },
	})
	return d
}

// call calls a built-in tool and returns the text of its result.
func (d *desk) call(t *testing.T, tool, args string) (text string, failed bool) {
	t.Helper()
	result, e := d.Handle(t.Context(), session(), "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, args))
	if e != nil {
		t.Fatalf("%s %s: %v", tool, args, e)
	}
	return firstText(result), string(wire.Member(result, "isError")) == "true"
}

// found is the answer of retrieve_tools.
type found struct {
	Tools []struct {
		Name, ID, Server, Description, Sig, Desc string
		CallWith                                 string `json:"call_with"`
		InputSchema, OutputSchema, Annotations   json.RawMessage
		Score                                    float64
	}
	Query        string
	Total        int
	Usage        string `json:"usage_instructions"`
	Hint, Notice string
	Risk         *sessionRisk       `json:"session_risk"`
	Filters      *filterDiagnostics `json:"filter_diagnostics"`
	Disabled     []unusableTool
	Remediation  string
	Explanation  *explanation
	Stats        *[]Usage `json:"usage_summary"`
	Debug        *searchDebug
}

func (f found) names() (names []string) {
	for _, tool := range f.Tools {
		names = append(names, tool.Name+tool.ID)
	}
	return names
}

func (d *desk) find(t *testing.T, args string) (f found) {
	t.Helper()
	text, failed := d.call(t, retrieveName, args)
	if failed {
		t.Fatalf("retrieve_tools %s: %s", args, text)
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return f
}

// tools makes a server; a tool is a name and the rest of its definition.
func tools(server string, list ...[2]string) *catalog.Server {
	s := &catalog.Server{Name: server, Prefix: server, Known: true}
	for _, tool := range list {
		raw := fmt.Appendf(nil, `{"name":%q%s}`, tool[0], tool[1])
		s.Tools = append(s.Tools, catalog.New(catalog.Ref{Server: server, Kind: catalog.Tool, Name: tool[0]}, raw, nil))
	}
	return s
}

// TestRetrieveFinds puts the questions of real faults (Q01 to Q13) to the tool.
func TestRetrieveFinds(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil,
		tools("work", [2]string{"work_start_task_attachment_upload", `,"description":"begin"`}, [2]string{"list_tasks", `,"description":"all of them"`}),
		tools("table", [2]string{"appTableRecord_search", ``}, [2]string{"addPerson", ``}),
		tools("math", [2]string{"add", ``}, [2]string{"address_book_lookup", ``}, [2]string{"address_book_update", ``}),
		tools("github", [2]string{"create_issue", `,"description":"Open an issue"`}, [2]string{"list_issues", ``}))
	for query, want := range map[string]string{
		"work_upload_attachment": "work:work_start_task_attachment_upload",
		"table record":           "table:appTableRecord_search",
		"addPerson":              "table:addPerson",
		"add person":             "table:addPerson",
		"add":                    "math:add",
		"github__create_issue":   "github:create_issue",
		"github:create_issue":    "github:create_issue",
		"CREATE_ISSUE":           "github:create_issue",
	} {
		if got := d.find(t, fmt.Sprintf(`{"query":%q}`, query)).names(); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, query := range []string{`"unbalanced`, `+`, `a:b:c`, `/[/`, `\`, `*`, "\u0000 is no word", strings.Repeat("x ", 5000), strings.Repeat("日本", 5000), "\ufffd"} {
		args, _ := json.Marshal(map[string]string{"query": query})
		f := d.find(t, string(args))
		if f.Tools == nil || utf8.RuneCountInString(f.Query) > 501 {
			t.Errorf("%.40q: %+v", query, f)
		}
	}
	for args, want := range map[string]string{
		`{"query":""}`: "blank", `{"query":" \t "}`: "blank", `{}`: `"query" is missing`, `null`: `"query" is missing`,
		`{"query":3}`: `"query" must be a string`, `{"query":"a","limit":"5"}`: "whole number", `{"query":"a","limit":1.5}`: "whole number",
		`{"query":"a","types":["tol"]}`: `did you mean \"tool\"`, `{"query":"a","detail":"short"}`: "full, compact",
		`{"query":"a","servers":[1]}`: "list of strings", `{"query":"a","debug":"yes"}`: "true or false", `{"query":"a","server":"x"}`: `did you mean \"servers\"`,
	} {
		text, failed := d.call(t, retrieveName, args)
		if quoted, _ := json.Marshal(text); !failed || !strings.Contains(text, want) && !strings.Contains(string(quoted), want) {
			t.Errorf("%s: %s", args, text)
		}
	}
	for limit, want := range map[string]int{"0": 1, "-1": 1, "1": 1, "2": 2, "1e9": 2, "999999999999999999999": 2, "1e999": 2, "null": 2} {
		if got := d.find(t, fmt.Sprintf(`{"query":"book","limit":%s}`, limit)); len(got.Tools) != want || got.Total != 2 {
			t.Errorf("limit %s gives %v of %d", limit, got.names(), got.Total)
		}
	}
}

// TestRetrieveEntries compares what an entry says with what the server said (Q12).
func TestRetrieveEntries(t *testing.T) {
	const schema = `{"type":"object","properties":{"b":{"type":"string","default":1.0},"a":{"$ref":"#/x"}},"x-odd":[1, 2],"required":["b"]}`
	server := tools("s",
		[2]string{"read", `,"description":"Reads a thing. More.","annotations":{"readOnlyHint":true,"x":1},"outputSchema":{"type":"object"},"inputSchema":` + schema},
		[2]string{"change", `,"description":"Changes a thing","annotations":{"destructiveHint":false}`},
		[2]string{"wipe", `,"description":"Wipes a thing","inputSchema":{"type":"object"}`})
	server.Tools = append(server.Tools, catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "renamed"},
		json.RawMessage(`{"name":"renamed","description":"thing"}`), &catalog.Override{Name: "nicer", Description: "Nicer thing", Annotations: json.RawMessage(`{"readOnlyHint":true}`)}))
	d := retrieve(t, auth.Person(""), nil, server)
	byName := map[string]int{}
	f := d.find(t, `{"query":"thing"}`)
	for i, tool := range f.Tools {
		byName[tool.Name] = i
	}
	if len(byName) != 4 || f.Total != 4 || f.Usage == "" {
		t.Fatalf("%+v", f)
	}
	read := f.Tools[byName["s:read"]]
	var compact strings.Builder
	_ = json.NewEncoder(&compact).Encode(json.RawMessage(schema))
	if string(read.InputSchema) != strings.TrimSpace(compact.String()) || read.Server != "s" || string(read.OutputSchema) != `{"type":"object"}` || string(read.Annotations) != `{"readOnlyHint":true,"x":1}` {
		t.Errorf("%+v", read)
	}
	for name, with := range map[string]string{"s:read": "call_tool_read", "s:change": "call_tool_write", "s:wipe": "call_tool_destructive", "s:renamed": "call_tool_read"} {
		if got := f.Tools[byName[name]].CallWith; got != with {
			t.Errorf("%s: call_with %s", name, got)
		}
	}
	if got := f.Tools[byName["s:renamed"]]; got.Description != "Nicer thing" || string(got.Annotations) != `{"readOnlyHint":true}` {
		t.Errorf("%+v", got)
	}
	c := d.find(t, `{"query":"thing","detail":"compact"}`)
	if !slices.Equal(c.names(), f.names()) || !strings.Contains(c.Hint, "describe_tool") || strings.Contains(f.Hint, "compact") {
		t.Errorf("compact %v %q, full %v", c.names(), c.Hint, f.names())
	}
	for _, tool := range c.Tools {
		if tool.InputSchema != nil || tool.ID == "" {
			t.Errorf("%+v", tool)
		}
		if tool.ID == "s:change" && tool.CallWith != "write" || tool.ID == "s:wipe" && tool.CallWith != "" {
			t.Errorf("%+v", tool)
		}
		if tool.ID == "s:read" && (tool.Desc != "Reads a thing." || tool.Sig != "(b*:string=1.0,a:any~)" || tool.CallWith != "read") {
			t.Errorf("%+v", tool)
		}
	}
	scores := func(f found) (list []float64) {
		for _, tool := range f.Tools {
			list = append(list, tool.Score)
		}
		return list
	}
	if got := scores(f); !slices.IsSortedFunc(got, func(a, b float64) int { return int(100 * (b - a)) }) || !slices.Equal(got, scores(c)) {
		t.Errorf("scores %v %v", got, scores(c))
	}
	for _, name := range []string{"s:nicer", "s__nicer", "s:renamed"} {
		if text, failed := d.call(t, "call_tool_read", fmt.Sprintf(`{"name":%q}`, name)); failed || d.u.last().Server != "s" || !strings.Contains(string(d.u.last().Params), `"renamed"`) {
			t.Errorf("%s: %s, asked for %s", name, text, d.u.last().Params)
		}
	}
}

// TestRetrieveExtras asks for all that an answer can hold besides the tools.
func TestRetrieveExtras(t *testing.T) {
	server := tools("s", [2]string{"read_thing", `,"annotations":{"readOnlyHint":true,"openWorldHint":false}`}, [2]string{"wipe_thing", ``}, [2]string{"off_thing", ``})
	d := retrieve(t, auth.Person(""), map[string]policy.Rule{"s": {Unannotated: catalog.Destructive, DisabledTools: []string{"off_thing"}}, "held": {Quarantined: true}},
		server, tools("held", [2]string{"held_thing", ``}), &catalog.Server{Name: "late", Prefix: "late"})
	f := d.find(t, `{"query":"thing","include_disabled":true,"include_session_risk_warning":true,"include_stats":true,"debug":true,"explain_tool":"s__wipe_thing","servers":["s","late","nono"]}`)
	if got := f.names(); !slices.Equal(got, []string{"s:read_thing", "s:wipe_thing"}) {
		t.Errorf("found %v", got)
	}
	if len(f.Disabled) != 1 || f.Disabled[0].Name != "s:off_thing" || !strings.Contains(f.Disabled[0].Reason, "disabled") || !strings.Contains(f.Remediation, "mcpproxy quarantine show held") {
		t.Errorf("disabled %+v, remediation %q", f.Disabled, f.Remediation)
	}
	if f.Risk == nil || f.Risk.Level != "high" || f.Risk.Read != 1 || f.Risk.Destructive != 1 || f.Risk.OpenWorld != 1 {
		t.Errorf("risk %+v", f.Risk)
	}
	if f.Stats == nil || len(*f.Stats) != 0 || f.Debug == nil || f.Debug.Indexed == 0 {
		t.Errorf("stats %v, debug %+v", f.Stats, f.Debug)
	}
	if f.Explanation == nil || f.Explanation.Tool != "s:wipe_thing" || f.Explanation.Rank != 2 || len(f.Explanation.Words) == 0 {
		t.Errorf("explanation %+v", f.Explanation)
	}
	if !strings.Contains(f.Notice, "late") || !strings.Contains(f.Notice, "nono") {
		t.Errorf("notice %q", f.Notice)
	}
	f = d.find(t, `{"query":"thing","read_only_only":true,"exclude_open_world":true}`)
	if !slices.Equal(f.names(), []string{"s:read_thing"}) || f.Filters == nil || f.Filters.Unfiltered != 2 || f.Filters.Excluded["read_only_only"] != 1 || f.Filters.Excluded["exclude_open_world"] != 1 || len(f.Filters.Excluded) != 2 {
		t.Errorf("found %v, diagnostics %+v", f.names(), f.Filters)
	}
	if f = d.find(t, `{"query":"zzzz"}`); f.Tools == nil || len(f.Tools) != 0 || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	for _, name := range []string{"held:held_thing", "nono:x"} {
		if f = d.find(t, fmt.Sprintf(`{"query":"thing","explain_tool":%q}`, name)); f.Explanation == nil || f.Explanation.Note != "not found, or access denied" {
			t.Errorf("%s: %+v", name, f.Explanation)
		}
	}
	// An agent is told nothing of what it may not use.
	agent := auth.Caller{Kind: auth.Agent, Token: "a", Servers: []string{"s"}, Tier: catalog.Read}
	d.options.Callers = auth.Holder(func(context.Context) (auth.Caller, error) { return agent, nil }, "")
	text, _ := d.call(t, retrieveName, `{"query":"thing","include_disabled":true,"explain_tool":"s:wipe_thing","include_session_risk_warning":true,"servers":["held"]}`)
	for _, secret := range []string{"wipe", "off_thing", "held_thing", "late", "quarantine"} {
		if strings.Contains(strings.ReplaceAll(text, `"tool":"s:wipe_thing"`, ""), secret) {
			t.Errorf("an agent is told of %s: %s", secret, text)
		}
	}
}

// TestRetrieveFits keeps answers within the limit, and loses nothing as long as
// names fit.
func TestRetrieveFits(t *testing.T) {
	var list [][2]string
	for i := range 60 {
		list = append(list, [2]string{fmt.Sprintf("thing_%02d", i), fmt.Sprintf(`,"description":%q,"inputSchema":{"type":"object","properties":{"p%d":{"type":"string","description":%q}}}`,
			strings.Repeat("thing ü ", 20), i, strings.Repeat("words ", 40))})
	}
	d := retrieve(t, auth.Person(""), nil, tools("s", list...))
	whole := d.find(t, `{"query":"thing","limit":100}`)
	if len(whole.Tools) != 60 {
		t.Fatalf("%d tools", len(whole.Tools))
	}
	last := 0
	for _, limit := range []int{300, 400, 600, 999, 1000, 2000, 4000, 6000, 8000, 12000, 20000, 30000, 40000, 100000} {
		d.set.ResponseLimit = limit
		if limit == tersely {
			last = 0 // from here on more is said besides
		}
		text, _ := d.call(t, retrieveName, `{"query":"thing","limit":100}`)
		if n := utf8.RuneCountInString(text); n > limit {
			t.Errorf("limit %d: %d characters", limit, n)
		}
		f := d.find(t, `{"query":"thing","limit":100}`)
		var order []string
		full, shorter := 0, false
		for _, tool := range f.Tools {
			order = append(order, tool.Name+tool.ID)
			switch {
			case tool.Name == "":
				shorter = true
			case shorter:
				t.Errorf("limit %d: a full entry after a short one", limit)
			default:
				full++
			}
		}
		if !slices.Equal(order, whole.names()[:len(order)]) || len(order) < last || len(order) == 0 {
			t.Errorf("limit %d: %v", limit, order)
		}
		last = len(order)
		if (full < 60) != (f.Hint != "") || len(order) < 60 && !strings.Contains(f.Hint, fmt.Sprintf("%d more left out", 60-len(order))) {
			t.Errorf("limit %d: %d full of %d, hint %q", limit, full, len(order), f.Hint)
		}
		if limit >= 20000 && len(order) < 60 {
			t.Errorf("limit %d: only %d", limit, len(order))
		}
	}
}

// TestScoresTellNothing: what a caller may not use has no part in its scores, be it
// that words are rare or mended by it.
func TestScoresTellNothing(t *testing.T) {
	servers := []*catalog.Server{
		tools("s", [2]string{"a1_lamp", ``}, [2]string{"b1_lamp", ``}),
		tools("hid", [2]string{"zeppelin", `,"description":"a lamp of a ship"`}),
	}
	agent := auth.Caller{Kind: auth.Agent, Token: "a", Servers: []string{"s"}, Tier: catalog.Destructive}
	d := retrieve(t, auth.Holder(func(context.Context) (auth.Caller, error) { return agent, nil }, ""), nil, servers...)
	for _, pair := range [][2]string{{"a1 lamp zeppelin", "a1 lamp qwertzui"}, {"a1 hid", "a1 xid"}, {"lamp zeppelon", "lamp qwertzui"}} {
		var scores [2][]string
		for i, query := range pair {
			for _, tool := range d.find(t, fmt.Sprintf(`{"query":%q}`, query)).Tools {
				scores[i] = append(scores[i], fmt.Sprint(tool.Name, tool.Score))
			}
		}
		if len(scores[0]) == 0 || !slices.Equal(scores[0], scores[1]) {
			t.Errorf("%q: %q", pair, scores)
		}
	}
	agent.Servers = []string{"hid", "s"}
	if got := d.find(t, `{"query":"zeppelin"}`); !slices.Equal(got.names(), []string{"hid:zeppelin"}) {
		t.Errorf("with the right to more: %v", got.names())
	}
}
