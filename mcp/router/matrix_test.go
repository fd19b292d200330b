package router

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

var update = flag.Bool("update", false, "write testdata/matrix.txt anew, to be read before it is believed")

// given is a Callers that always says the same.
type given auth.Caller

func (g given) Caller(context.Context) (auth.Caller, error) { return auth.Caller(g), nil }
func (g given) Present() (auth.Caller, bool)                { return auth.Caller(g), true }

// callers are those of the matrix, in the order of the table.
func callers() (names []string, byName map[string]Callers) {
	byName = map[string]Callers{}
	add := func(name string, c Callers) { names, byName[name] = append(names, name), c }
	agent := func(tier catalog.Tier, pin string, servers ...string) Callers {
		caller := auth.Caller{Kind: auth.Agent, Token: "a", Tier: tier, Servers: servers, All: len(servers) == 1 && servers[0] == "*", Pin: pin}
		return auth.Holder(func(context.Context) (auth.Caller, error) { return caller, nil }, "")
	}
	add("admin", auth.Person(""))
	add("admin-profile", auth.Person("ours"))
	add("admin-profile-read", auth.Person("ours-read"))
	add("admin-profile-other", auth.Person("other"))
	add("admin-profile-gone", auth.Person("gone"))
	add("agent-all-destructive", agent(catalog.Destructive, "", "*"))
	add("agent-all-read", agent(catalog.Read, "", "*"))
	add("agent-ours-write", agent(catalog.Write, "", "s"))
	add("agent-other", agent(catalog.Destructive, "", "o"))
	add("agent-nothing", agent(catalog.Destructive, ""))
	add("agent-pinned-read", agent(catalog.Destructive, "ours-read", "*"))
	add("agent-pinned-other", agent(catalog.Destructive, "other", "s"))
	add("agent-pinned-gone", agent(catalog.Destructive, "gone", "*"))
	add("anonymous", given{Kind: auth.Anonymous, All: true, Tier: catalog.Destructive})
	add("internal-read", given{Kind: auth.Internal, All: true, Tier: catalog.Read})
	add("nobody", given{})
	return names, byName
}

// states are what can be the matter with an item.
func states() []string {
	return []string{"approved", "pending", "changed", "blocked", "disabled", "held-server", "disabled-server", "unknown"}
}

// thing is what is used: the column of the table, the requests whose answers have
// to name it, all or none, and those that use it, which have to end alike.
type thing struct {
	column, name string
	lists, uses  []step
}

// step is a request.
type step struct{ method, params string }

// things are what is tried in a mode; suffix is put behind all names.
func things(mode, suffix string) []thing {
	tool := func(column, own string, tier catalog.Tier) thing {
		if mode == "direct" {
			name := "s__" + own + suffix
			return thing{column, name, []step{{"tools/list", ""}}, []step{{"tools/call", fmt.Sprintf(`{"name":%q}`, name)}}}
		}
		call := func(tool, args string) step {
			return step{"tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)}
		}
		name := "s:" + own + suffix
		t := thing{column, name, []step{
			call("retrieve_tools", fmt.Sprintf(`{"query":%q,"limit":100}`, name)),
			call("retrieve_tools", `{"query":"second first","limit":100}`),
			call("describe_tool", fmt.Sprintf(`{"tool_ids":[%q]}`, name)),
		}, nil}
		for _, variant := range variants()[tier:] {
			t.uses = append(t.uses, call(variantName(variant), fmt.Sprintf(`{"name":%q}`, name)), call(variantName(variant), fmt.Sprintf(`{"name":"s__%s"}`, own+suffix)))
		}
		return t
	}
	return []thing{
		tool("read", "r", catalog.Read), tool("write", "w", catalog.Write), tool("destructive", "d", catalog.Destructive), tool("no-hint", "n", catalog.Destructive),
		{"prompt", "s__p" + suffix, []step{{"prompts/list", ""}}, []step{{"prompts/get", fmt.Sprintf(`{"name":"s__p%s"}`, suffix)}}},
		{"completion", "", nil, []step{{"completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"s__p%s"}}`, suffix)}}},
		{"resource", "x:1" + suffix, []step{{"resources/list", ""}}, []step{{"resources/read", fmt.Sprintf(`{"uri":"x:1%s"}`, suffix)}}},
		{"subscription", "", nil, []step{{"resources/subscribe", fmt.Sprintf(`{"uri":"x:1%s"}`, suffix)}}},
		{"template", "y:{a}", []step{{"resources/templates/list", ""}}, []step{{"resources/read", fmt.Sprintf(`{"uri":"y:1%s"}`, suffix)}}},
	}
}

// offered is server s with one of everything, and a server beside it that has
// nothing.
func offered(description string) []*catalog.Server {
	ref := func(kind catalog.Kind, name string) catalog.Ref {
		return catalog.Ref{Server: "s", Kind: kind, Name: name}
	}
	define := func(kind catalog.Kind, name, more string) *catalog.Item {
		return catalog.New(ref(kind, name), fmt.Appendf(nil, `{"name":%q,"description":%q%s}`, name, description, more), nil)
	}
	s := &catalog.Server{Name: "s", Prefix: "s", Known: true, HasResources: true, Completions: true}
	s.SetItems(catalog.Tool, []*catalog.Item{
		define(catalog.Tool, "r", `,"annotations":{"readOnlyHint":true}`),
		define(catalog.Tool, "w", `,"annotations":{"destructiveHint":false}`),
		define(catalog.Tool, "d", `,"annotations":{"destructiveHint":true}`),
		define(catalog.Tool, "n", ``),
	})
	s.SetItems(catalog.Prompt, []*catalog.Item{define(catalog.Prompt, "p", "")})
	s.SetItems(catalog.Resource, []*catalog.Item{define(catalog.Resource, "x:1", "")})
	s.SetItems(catalog.Template, []*catalog.Item{define(catalog.Template, "y:{a}", "")})
	o := &catalog.Server{Name: "o", Prefix: "o", Known: true}
	return []*catalog.Server{s, o}
}

// gateIn returns a Gate behind which server s and all it offers are in a state.
func gateIn(t *testing.T, state string) (*policy.Gate, *upstreams) {
	t.Helper()
	u := &upstreams{}
	rule := policy.Rule{Unannotated: catalog.Destructive}
	switch state {
	case "disabled":
		rule.DisabledTools, rule.HidePrompts, rule.HideResources = []string{"r", "w", "d", "n"}, true, true
	case "held-server":
		rule.Quarantined = true
	case "disabled-server":
		rule.Disabled = true
	}
	rules := policy.Rules{
		Servers: map[string]policy.Rule{"s": rule, "o": {}},
		Profiles: map[string]policy.Profile{
			"ours": {Servers: []string{"s"}, Tier: catalog.Destructive}, "ours-read": {Servers: []string{"s"}},
			"other": {Servers: []string{"o"}, Tier: catalog.Destructive},
		},
	}
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	approvals := policy.NewApprovals(policy.ApprovalOptions{Store: func() *store.DB { return db }, DataDir: dir})
	gate := policy.NewGate(u, rules, policy.Options{Approvals: approvals})
	see := func(servers ...*catalog.Server) {
		u.set(servers...)
		gate.Catalog(t.Context())
	}
	first := offered("first")
	switch state {
	case "pending":
		see(&catalog.Server{Name: "s", Prefix: "s", Known: true}, first[1])
	case "changed":
		see(first...)
		see(offered("second")...)
	case "blocked":
		see(first...)
		for _, kind := range catalog.Kinds() {
			for _, item := range first[0].Items(kind) {
				if _, err := approvals.Block(t.Context(), item.Ref, "test"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if state != "changed" {
		see(first...)
	}
	return gate, u
}

// TestMatrix tries every use of every thing by every caller in every state, in
// the modes that there are, and compares with testdata/matrix.txt. Each cell says
// whether it is listed (l), whether it can be used (u), and else whether the
// caller is told why not (e) or is told that there is no such thing (-).
func TestMatrix(t *testing.T) {
	var table strings.Builder
	table.WriteString("# l listed, u usable, e refused with an explanation, - as if it did not exist\n")
	fmt.Fprintf(&table, "%-14s %-22s %-16s", "mode", "caller", "state")
	for _, thing := range things("direct", "") {
		fmt.Fprintf(&table, " %-12s", thing.column)
	}
	table.WriteString("\n")
	names, byName := callers()
	for _, mode := range []string{"direct", "retrieve_tools"} {
		for _, state := range states() {
			gate, u := gateIn(t, state)
			search := NewSearch(SearchOptions{Gate: gate, Settings: func() Settings { return Settings{} }})
			suffix := ""
			if state == "unknown" {
				suffix = "zz"
			}
			for _, name := range names {
				r := modes(Options{Mode: mode, Gate: gate, Callers: byName[name], Warn: func(string) {}, Search: search})
				fmt.Fprintf(&table, "%-14s %-22s %-16s", mode, name, state)
				for _, thing := range things(mode, suffix) {
					fmt.Fprintf(&table, " %-12s", tried(t, r, u, thing))
				}
				table.WriteString("\n")
			}
			if err := search.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	compareTable(t, "testdata/matrix.txt", table.String())
}

// compareTable compares a table, but for blanks at the ends of lines, with the one
// that is written down.
func compareTable(t *testing.T, file, table string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		if i >= len(want) || line != want[i] {
			t.Errorf("line %d is\n%s", i+1, line)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
}

// modes returns the router of a mode.
func modes(o Options) *Router {
	if o.Mode == "direct" {
		return NewDirect(o)
	}
	return NewRetrieve(o)
}

// tried is the cell of a thing.
func tried(t *testing.T, r *Router, u *upstreams, thing thing) (cell string) {
	t.Helper()
	for i, list := range thing.lists {
		answer, e := r.Handle(t.Context(), session(), list.method, json.RawMessage(list.params))
		if e != nil {
			t.Fatalf("%s: %v", list.method, e)
		}
		found := strings.Contains(firstText(answer), fmt.Sprintf(`"name":%q`, thing.name))
		switch {
		case found && i == 0:
			cell = "l"
		case found != (cell == "l"):
			t.Errorf("%s is in %s: %t, in the first list: %t", thing.name, list.params, found, cell == "l")
		}
	}
	end := ""
	for i, use := range thing.uses {
		got := used(t, r, u, use)
		if i > 0 && got != end {
			t.Errorf("%s %s ends with %s, another way with %s", use.method, use.params, got, end)
		}
		end = got
	}
	return cell + end
}

// firstText is the text of a result, or all of what is none.
func firstText(result json.RawMessage) string {
	for block := range wire.Elements(wire.Member(result, "content")) {
		text, _ := wire.String(wire.Member(block, "text"))
		return text
	}
	return string(result)
}

// used is how a use ends.
func used(t *testing.T, r *Router, u *upstreams, use step) string {
	t.Helper()
	before := u.count()
	result, e := r.Handle(t.Context(), session(), use.method, json.RawMessage(use.params))
	reached := u.count() > before
	const missing = "not found, or access denied"
	failed := string(wire.Member(result, "isError")) == "true"
	switch {
	case reached && e == nil && !failed:
		return "u"
	case reached:
		t.Errorf("%s %s reached the server and failed: %v", use.method, use.params, e)
	case e != nil && strings.HasSuffix(e.Message, missing), failed && strings.Contains(firstText(result), missing):
		return "-"
	case e != nil, failed:
		return "e"
	}
	t.Errorf("%s %s: %s %v", use.method, use.params, result, e)
	return "?"
}
