package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// anAgent is an agent that may use server s.
func anAgent() auth.Caller {
	return auth.Caller{Kind: auth.Agent, Token: "t", Tier: catalog.Destructive, Servers: []string{"s"}}
}

// keyOf has a caller get a long text from a tool, and returns its key.
func (k *keeper) keyOf(t testing.TB, caller auth.Caller, tool, text string) string {
	t.Helper()
	keys, _ := keysIn(t, textsOf(k.Fit(t.Context(), asking(caller), k.tool(tool), json.RawMessage(textOfResult(text)))))
	if len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), k.errors)
	}
	return keys[0]
}

// TestReadCacheDefinition: it is a tool as clients want it, and small.
func TestReadCacheDefinition(t *testing.T) {
	k := keeping(t, 0)
	b := k.Builtin()
	definition := b.Definition(auth.Local())
	var tool struct {
		Name, Description string
		InputSchema       struct{ Required []string }
		Annotations       map[string]any
		Meta              map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(definition, &tool); err != nil || tool.Name != b.Name || b.Name != "read_cache" || len(tool.InputSchema.Required) != 1 {
		t.Errorf("%s, %v", definition, err)
	}
	for hint, want := range map[string]bool{"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false} {
		if tool.Annotations[hint] != want {
			t.Errorf("%s is %v", hint, tool.Annotations[hint])
		}
	}
	if tool.Meta["anthropic/alwaysLoad"] != true || tool.Meta["anthropic/maxResultSizeChars"] != 500000.0 || tool.Annotations["title"] == "" {
		t.Errorf("%v %v", tool.Meta, tool.Annotations)
	}
	if len(definition) > 520 { // about 130 tokens
		t.Errorf("it has %d bytes", len(definition))
	}
}

func TestReadCacheArguments(t *testing.T) {
	k := keeping(t, 500)
	key := k.keyOf(t, auth.Local(), "r", strings.Repeat("x", 5000))
	for args, want := range map[string]string{
		`{}`: `argument "key" is missing`, `{"key":null}`: `argument "key" is missing`, `[]`: `the arguments must be an object`,
		`{"key":"` + key + `","offset":-1}`:         `argument "offset" must be a whole number from 0`,
		`{"key":"` + key + `","offset":"1"}`:        `argument "offset" must be`,
		`{"key":"` + key + `","limit":0}`:           `argument "limit" must be a whole number from 1 to 1000`,
		`{"key":"` + key + `","limit":1001}`:        `argument "limit" must be`,
		`{"key":"` + key + `","page":1}`:            `unknown argument "page"`,
		`{"key":"` + key + `","key":"` + key + `"}`: `argument "key" stands twice`,
		`{"key":7}`:  `cache key not found: it is unknown`,
		`{"key":""}`: `cache key not found: it is unknown`,
		`{"key":"` + strings.ToUpper(key) + `X"}`:       `cache key not found: it is unknown`,
		`{"key":"` + strings.Repeat("x", 100000) + `"}`: `cache key not found: it is unknown`,
	} {
		before := len(k.reads)
		if answer, failed := k.ask(t, auth.Local(), args); !failed || !strings.HasPrefix(answer, want) {
			t.Errorf("%.100s: %s", args, answer)
		}
		if len(k.reads) != before+1 || k.reads[before].Outcome != PageMissing || k.reads[before].Error == "" {
			t.Errorf("%.100s: recorded were %+v", args, k.reads[before:])
		}
	}
	// Behind the end is nothing.
	if answer, failed := k.ask(t, auth.Local(), `{"key":"`+key+`","offset":99999}`); failed || answer != `{"text":"","meta":{"key":"`+key+`","offset":99999,"total_size":5000}}` {
		t.Error(answer)
	}
}

// TestReadCacheRecords: each call is told with who asked for what, and what came of it.
func TestReadCacheRecords(t *testing.T) {
	k := keeping(t, 500)
	k.options.Now = func() time.Time { k.now = k.now.Add(time.Millisecond); return k.now }
	key := k.keyOf(t, anAgent(), "w", strings.Repeat("x", 5000))
	other := anAgent()
	other.Servers = []string{"o"}
	for _, test := range []struct {
		caller  auth.Caller
		key     string
		outcome PageOutcome
		server  string
	}{{anAgent(), key, PageSent, "s"}, {other, key, PageForbidden, "s"}, {anAgent(), "x", PageMissing, ""}, {auth.Local(), key, PageSent, "s"}} {
		k.reads = nil
		args := fmt.Sprintf(`{"key":%q,"offset":7}`, test.key)
		answer, _ := k.ask(t, test.caller, args)
		if len(k.reads) != 1 {
			t.Fatalf("%d records", len(k.reads))
		}
		r := k.reads[0]
		text, _ := wire.String(wire.Member(wire.Member(r.Response, "content")[1:], "text"))
		if r.Outcome != test.outcome || r.Server != test.server || (r.Server != "") != (r.Item == "w") || r.Caller.Kind != test.caller.Kind ||
			string(r.Request) != args || text != answer || r.Session == nil || r.Duration <= 0 || (r.Error == "") != (test.outcome == PageSent) {
			t.Errorf("%+v", r)
		}
	}
}

// TestOneRefusal: whoever may not read everything is told the same, whatever the
// matter is, on every page.
func TestOneRefusal(t *testing.T) {
	k := keeping(t, 500)
	text := strings.Repeat("x", 5000)
	hers := k.keyOf(t, auth.Local(), "r", text)
	old := k.keyOf(t, anAgent(), "r", text)
	k.now = k.now.Add(2*time.Hour - time.Millisecond)
	if _, failed := k.ask(t, anAgent(), fmt.Sprintf(`{"key":%q}`, old)); failed {
		t.Error("it was expired too early")
	}
	k.now = k.now.Add(time.Millisecond)
	k.limit = 0 // nothing is written, so that what is old is there
	limited := auth.Local()
	limited.Profile = "both"
	for _, caller := range []auth.Caller{anAgent(), limited, {Kind: auth.Anonymous, All: true, Tier: catalog.Destructive}, {}} {
		for what, key := range map[string]string{
			"expired": `"` + old + `"`, "unauthorised": `"` + hers + `"`, "missing": `"` + newKey() + `"`, "malformed": `"../x"`, "no text": `{"a":1}`, "empty": `""`,
		} {
			for _, more := range []string{"", `,"offset":700`, `,"offset":1000000,"limit":1000`} {
				result, failure := k.Builtin().Call(t.Context(), asking(caller), json.RawMessage(`{"key":`+key+more+`}`))
				if want := `{"content":[{"type":"text","text":"cache key not found"}],"isError":true}`; string(result) != want || failure != nil {
					t.Errorf("%s %s: %s, %v", caller.Kind, what, result, failure)
				}
			}
		}
	}
	if answer, _ := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q}`, old)); answer != "cache key not found: it is unknown, or older than two hours; call the tool again" {
		t.Errorf("an administrator is told %q", answer)
	}
}

// TestEveryPageIsJudged: what may be read is asked anew for each page.
func TestEveryPageIsJudged(t *testing.T) {
	profiled := anAgent()
	profiled.Profile = "both"
	changes := map[string]struct {
		reader auth.Caller
		change func(k *keeper, t *testing.T, reader *auth.Caller)
	}{
		"server is held": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			rules.Servers["s"] = policy.Rule{Quarantined: true}
			k.gate.SetRules(rules)
		}},
		"server is disabled": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			rules.Servers["s"] = policy.Rule{Disabled: true}
			k.gate.SetRules(rules)
		}},
		"server is removed": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			delete(rules.Servers, "s")
			k.gate.SetRules(rules)
		}},
		"tool is disabled": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			rules.Servers["s"] = policy.Rule{DisabledTools: []string{"d"}}
			k.gate.SetRules(rules)
		}},
		"tool is blocked": {anAgent(), func(k *keeper, t *testing.T, _ *auth.Caller) {
			if _, err := k.approvals.Block(t.Context(), k.tool("d").Ref, "test"); err != nil {
				t.Fatal(err)
			}
		}},
		"tool is blocked and listed no more": {anAgent(), func(k *keeper, t *testing.T, _ *auth.Caller) {
			if _, err := k.approvals.Block(t.Context(), k.tool("d").Ref, "test"); err != nil {
				t.Fatal(err)
			}
			k.u.set(&catalog.Server{Name: "s", Prefix: "s", Known: true})
		}},
		"tool has changed": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) { k.offer("another description") }},
		"profile is smaller": {profiled, func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			rules.Profiles["both"] = policy.Profile{Servers: []string{"o"}, Tier: catalog.Destructive}
			k.gate.SetRules(rules)
		}},
		"profile is weaker": {profiled, func(k *keeper, _ *testing.T, _ *auth.Caller) {
			rules := pageRules()
			rules.Profiles["both"] = policy.Profile{Servers: []string{"o", "s"}, Tier: catalog.Read}
			k.gate.SetRules(rules)
		}},
		"token is weaker":    {anAgent(), func(_ *keeper, _ *testing.T, reader *auth.Caller) { reader.Tier = catalog.Write }},
		"token reaches less": {anAgent(), func(_ *keeper, _ *testing.T, reader *auth.Caller) { reader.Servers = nil }},
		"token is bound":     {anAgent(), func(_ *keeper, _ *testing.T, reader *auth.Caller) { reader.Pin, reader.Profile = "s-only", "s-only" }},
		"page is removed": {anAgent(), func(k *keeper, t *testing.T, _ *auth.Caller) {
			k.size = 60000
			k.keyOf(t, anAgent(), "d", strings.Repeat("y", 50000))
		}},
		"two hours are over": {anAgent(), func(k *keeper, _ *testing.T, _ *auth.Caller) { k.now = k.now.Add(2 * time.Hour) }},
		"somebody else reads": {anAgent(), func(_ *keeper, _ *testing.T, reader *auth.Caller) {
			*reader = auth.Caller{Kind: auth.Anonymous, All: true, Tier: catalog.Destructive}
		}},
	}
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			k := keeping(t, 500)
			reader := test.reader
			key := k.keyOf(t, reader, "d", strings.Repeat("x", 5000))
			if answer, failed := k.ask(t, reader, fmt.Sprintf(`{"key":%q}`, key)); failed {
				t.Fatal(answer)
			}
			if answer, failed := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q}`, key)); failed {
				t.Fatal(answer)
			}
			test.change(k, t, &reader)
			for _, change := range []string{"server is held", "server is disabled", "tool is blocked", "tool has changed"} {
				if answer, failed := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q}`, key)); name == change && (!failed || !strings.HasPrefix(answer, notFound+": ") || !strings.Contains(answer, "mcpproxy ")) {
					t.Errorf("an administrator is told %.100q", answer)
				}
			}
			for _, offset := range []int{0, 500, 100000} {
				if answer, failed := k.ask(t, reader, fmt.Sprintf(`{"key":%q,"offset":%d}`, key, offset)); !failed || answer != notFound {
					t.Errorf("from %d: %.100s", offset, answer)
				}
			}
		})
	}
	t.Run("a tool that is listed no more", func(t *testing.T) {
		k := keeping(t, 500)
		reader := anAgent()
		reader.Tier = catalog.Read
		key := k.keyOf(t, reader, "r", strings.Repeat("x", 5000))
		k.u.set(&catalog.Server{Name: "s", Prefix: "s", Known: true})
		if answer, failed := k.ask(t, reader, fmt.Sprintf(`{"key":%q}`, key)); failed {
			t.Error(answer)
		}
	})
}

// TestPagesAreShared: what one instance keeps another reads, and reads after the first
// has ended.
func TestPagesAreShared(t *testing.T) {
	k := keeping(t, 500)
	text := strings.Repeat("0123456789", 1000)
	first := k.keyOf(t, auth.Local(), "r", text)
	db, err := store.Open(t.Context(), k.db.Path(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	other := &keeper{u: k.u, gate: k.gate, db: db, limit: 500, size: 256 << 20, now: k.now}
	other.Pages = NewPages(PageOptions{Gate: k.gate, Store: func() *store.DB { return db }, Limit: func() int { return other.limit }, Now: func() time.Time { return other.now }})
	if all, _, _ := other.whole(t, first, 0, 50); all != text {
		t.Error("the pages are not the text")
	}
	second := other.keyOf(t, auth.Local(), "r", text)
	if err := k.db.Close(); err != nil {
		t.Fatal(err)
	}
	// A smaller limit, or none, holds for what is there already.
	for _, limit := range []int{200, 0, 100000} {
		other.limit = limit
		for _, key := range []string{first, second} {
			answer, failed := other.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q,"offset":9}`, key))
			shown, _ := wire.String(wire.Member([]byte(answer), "text"))
			if n := len(shown); failed || limit == 200 && n > 200 || n > 500 || n < 150 {
				t.Errorf("limit %d: %d characters: %s", limit, n, answer)
			}
		}
	}
}

// TestResultsThatCannotBeKept are sent whole, and a key is never named in vain.
func TestResultsThatCannotBeKept(t *testing.T) {
	result := textOfResult(strings.Repeat("x", 5000))
	for name, spoil := range map[string]func(k *keeper){
		"no store": func(k *keeper) { k.db = nil }, "closed": func(k *keeper) { k.db.Close() }, "too large": func(k *keeper) { k.size = 1000 }, "off": func(k *keeper) { k.limit = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			k := keeping(t, 500)
			spoil(k)
			if got := k.fit(t, result); string(got) != result {
				t.Errorf("it became %s", got)
			}
			if wrong := name == "closed" || name == "too large"; (len(k.errors) > 0) != wrong {
				t.Errorf("told were %v", k.errors)
			}
		})
	}
	t.Run("locked", func(t *testing.T) {
		k := keeping(t, 500)
		other, err := store.Open(t.Context(), k.db.Path(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		held, release := make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			done <- other.Write(context.Background(), func(context.Context, *store.Tx) error { close(held); <-release; return nil })
		}()
		<-held
		if got := k.fit(t, result); string(got) != result {
			t.Errorf("it became %s", got)
		}
		if len(k.errors) != 1 || !errors.Is(k.errors[0], context.DeadlineExceeded) {
			t.Errorf("told were %v", k.errors)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("read without a store", func(t *testing.T) {
		k := keeping(t, 500)
		key := k.keyOf(t, auth.Local(), "r", strings.Repeat("x", 5000))
		k.db.Close()
		if answer, failed := k.ask(t, anAgent(), fmt.Sprintf(`{"key":%q}`, key)); !failed || answer != notFound || k.reads[0].Outcome != PageFailed || len(k.errors) != 1 {
			t.Errorf("%s, %v, %v", answer, k.reads, k.errors)
		}
		k.db = nil
		if answer, failed := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q}`, key)); !failed || !strings.HasPrefix(answer, notFound) {
			t.Error(answer)
		}
	})
}
