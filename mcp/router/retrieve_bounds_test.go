package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
)

// TestAnswersKeepTheLimit asks for what could make answers longer than they may be.
func TestAnswersKeepTheLimit(t *testing.T) {
	var list [][2]string
	var off, ids, slips, strange []string
	for i := range 120 {
		name := fmt.Sprintf("thing_%03d", i)
		list = append(list, [2]string{name, fmt.Sprintf(`,"description":"a thing %s"`, strings.Repeat("words ", 60))})
		if i >= 20 {
			off = append(off, name)
		}
		if i < 20 {
			ids = append(ids, "s:"+name)
			slips = append(slips, "s:thinx_"+name[6:])
		}
		strange = append(strange, strings.Repeat("x", 90)+name)
	}
	ids, slips = append(ids, ids[:10]...), append(slips, ids[0])
	d := retrieve(t, auth.Person(""), map[string]policy.Rule{"s": {DisabledTools: off, Unannotated: catalog.Destructive}}, tools("s", list...))
	long := strings.Repeat("q", 1<<20)
	for _, limit := range []int{4000, 10000, 20000} {
		d.set.ResponseLimit = limit
		for tool, args := range map[string][]any{
			retrieveName: {
				map[string]any{"query": "thing", "limit": 100, "include_disabled": true},
				map[string]any{"query": "thing", "limit": 100, "include_disabled": true, "include_stats": true, "debug": true, "read_only_only": true, "explain_tool": "s:thing_001"},
				map[string]any{"query": "thing", "limit": 100, "servers": append(strange, "s")},
				map[string]any{"query": long, "servers": strange},
			},
			describeName:      {map[string]any{"tool_ids": ids}, map[string]any{"tool_ids": slips}, map[string]any{"tool_ids": []string{long}}},
			"call_tool_read":  {map[string]any{"name": "s:" + long}, map[string]any{"name": long}},
			"call_tool_write": {map[string]any{"name": "s:x", long: 1}},
		} {
			for _, a := range args {
				text, _ := d.call(t, tool, string(encode(a)))
				if n := utf8.RuneCountInString(text); n > limit {
					t.Errorf("limit %d, %s %.80s: %d characters", limit, tool, encode(a), n)
				}
			}
		}
		f := d.find(t, `{"query":"thing","limit":100,"include_disabled":true}`)
		if len(f.Tools) != 20 || len(f.Disabled) == 0 || !strings.Contains(f.Hint, fmt.Sprintf("%d more that cannot be called", 100-len(f.Disabled))) {
			t.Errorf("limit %d: %d tools, %d of 100 that cannot be called, hint %q", limit, len(f.Tools), len(f.Disabled), f.Hint)
		}
	}
	for _, r := range d.records {
		if len(r.Tool)+len(r.Error) > 3000 {
			t.Errorf("recorded a name of %d bytes, an error of %d", len(r.Tool), len(r.Error))
		}
	}
}

// TestNestedDeeply searches and describes tools of which the definition is nested
// deeper than can be encoded: the others are found all the same.
func TestNestedDeeply(t *testing.T) {
	const deep = 12000
	nested := strings.Repeat("[", deep) + strings.Repeat("]", deep)
	d := retrieve(t, auth.Person(""), nil, tools("s",
		[2]string{"thing_in", `,"inputSchema":{"type":"object","x":` + nested + `}`}, [2]string{"thing_out", `,"outputSchema":{"x":` + nested + `}`},
		[2]string{"thing_hints", `,"annotations":{"x":` + nested + `}`}, [2]string{"thing_plain", ``},
		[2]string{"thing_edge", `,"inputSchema":{"x":` + nested[deep-9995:deep+9995] + `}`}))
	if f := d.find(t, `{"query":"thing"}`); len(f.Tools) != 5 {
		t.Errorf("%d tools", len(f.Tools))
	}
	if f := d.find(t, `{"query":"thing","detail":"compact"}`); len(f.Tools) != 5 {
		t.Errorf("compact: %d tools", len(f.Tools))
	}
	text, _ := d.call(t, describeName, `{"tool_ids":["s:thing_in","s:thing_out","s:thing_hints","s:thing_edge"]}`)
	var answer described
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Definitions) != 4 {
		t.Errorf("%v, %d definitions", err, len(answer.Definitions))
	}
}

// TestQueryOfAnyCharacters finds with, or in spite of, every character.
func TestQueryOfAnyCharacters(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, tools("s", [2]string{"thing", ``}))
	for _, query := range []string{`thing\u0000`, `\u0000 thing`, `\ufffe thing \u202e`, `\ud83d thing`} {
		if f := d.find(t, `{"query":"`+query+`"}`); len(f.Tools) != 1 {
			t.Errorf("%s: %v", query, f.names())
		}
	}
}

// TestCallByNameBesideAnAlias lets a call through to a server that has an alias and
// has listed nothing yet.
func TestCallByNameBesideAnAlias(t *testing.T) {
	late := &catalog.Server{Name: "late", Prefix: "l"}
	d := retrieve(t, auth.Person(""), nil, late)
	for _, name := range []string{"late:x", "l:x", "l__x"} {
		before := d.u.count()
		if text, failed := d.call(t, "call_tool_destructive", fmt.Sprintf(`{"name":%q}`, name)); failed || d.u.count() == before {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestManyServersAreNamedWhole never cuts a name of a server.
func TestManyServersAreNamedWhole(t *testing.T) {
	var servers []*catalog.Server
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("server-%02d-%s", i, strings.Repeat("n", 54)))
		servers = append(servers, tools(names[i]))
	}
	d := retrieve(t, auth.Person(""), nil, servers...)
	texts := []string{Instructions(Briefing{Mode: retrieveName, Operator: strings.Repeat("operator ", 300), Servers: names, Tier: catalog.Destructive})}
	list, _ := d.Handle(t.Context(), session(), "tools/list", nil)
	var answer struct {
		Tools []struct{ Description string }
	}
	if err := json.Unmarshal(list, &answer); err != nil {
		t.Fatal(err)
	}
	for i, text := range append(texts, answer.Tools[0].Description) {
		if most := []int{maxInstructions, maxDescription}[i]; len(text) > most {
			t.Errorf("%d bytes", len(text))
		}
		_, text, _ = strings.Cut(text, "Servers: ")
		text, _, _ = strings.Cut(text, "\n")
		named, more, _ := strings.Cut(text, ", +")
		count := len(strings.Split(named, ", "))
		if more != fmt.Sprintf("%d more", 40-count) || named != strings.Join(names[:count], ", ") || count < 8 {
			t.Errorf("%d named, %s", count, text)
		}
	}
}

// TestSlipsAmongManyTools looks for what fifty wrong names may have meant among ten
// thousand long ones.
func TestSlipsAmongManyTools(t *testing.T) {
	var names []string
	for i := range 10000 {
		names = append(names, fmt.Sprintf("s:tool_%05d_%s", i, strings.Repeat("x", 150)))
	}
	began := time.Now()
	for i := range 50 {
		word := fmt.Sprintf("s:tool_%05d_y%s", 20000+i, strings.Repeat("x", 149))
		if got := nearest(word, names); got == "" {
			t.Errorf("nothing is near %s", word)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestLongSchemaOfAFailure cuts the schema that is shown to who called wrongly.
func TestLongSchemaOfAFailure(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, tools("s", [2]string{"long", `,"inputSchema":{"type":"object","required":["p"],"description":"` + strings.Repeat("long ü ", 10000) + `"}`}))
	for limit, most := range map[int]int{0: 1 << 20, 300: tersely, 2000: 2000, 20000: 20000} {
		d.set.ResponseLimit = limit
		text, failed := d.call(t, "call_tool_destructive", `{"name":"s:long"}`)
		n := utf8.RuneCountInString(text)
		if !failed || n > most || !strings.Contains(text, "missing property 'p'") {
			t.Errorf("limit %d: %d characters: %.200s", limit, n, text)
		}
		if limit > 0 && (n < most-1 || !strings.HasSuffix(text, `describe_tool {"tool_ids": ["s:long"]} gives the schema)`)) {
			t.Errorf("limit %d: %d characters that end with %s", limit, n, text[len(text)-100:])
		}
	}
}

// TestWordsOfOtherKinds says of resources and prompts nothing that is about tools.
func TestWordsOfOtherKinds(t *testing.T) {
	server := tools("s", [2]string{"thing", ``})
	server.Resources = []*catalog.Item{catalog.New(catalog.Ref{Server: "s", Kind: catalog.Resource, Name: "x:thing"}, []byte(`{"uri":"x:thing","name":"thing"}`), nil)}
	d := retrieve(t, auth.Person(""), nil, server)
	if f := d.find(t, `{"query":"thing","types":["resource"],"detail":"compact"}`); len(f.Tools) != 1 || f.Usage != "" || f.Hint != "" {
		t.Errorf("resources: %+v", f)
	}
	if f := d.find(t, `{"query":"thing","types":["resource","tool"],"detail":"compact"}`); len(f.Tools) != 2 || f.Usage == "" || f.Hint == "" {
		t.Errorf("both: %+v", f)
	}
}
