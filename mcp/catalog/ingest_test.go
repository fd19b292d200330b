package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestIngest takes one definition per line; want is what is kept, warnings
// what is said, by their ends.
func TestIngest(t *testing.T) {
	ignored := func(paths ...string) []string {
		var all []string
		for _, path := range paths {
			all = append(all, `: member "`+path+`" has a wrong type or value and is ignored`)
		}
		return all
	}
	for _, c := range []struct {
		kind     Kind
		sent     string
		want     string // "" is left out
		warnings []string
	}{
		{Tool, `{"name":"a"}`, `{"name":"a"}`, nil},
		{Tool, `{ "x":1.0, "name" : "a" }`, `{ "x":1.0, "name" : "a" }`, nil},
		{Tool, `{"name":5}`, ``, []string{`server s: tool 0 is left out: member "name" is no text`}},
		{Tool, `{"name":""}`, ``, []string{`member "name" is no text`}},
		{Tool, `{"uri":"a"}`, ``, []string{`member "name" is no text`}},
		{Tool, `[]`, ``, []string{`member "name" is no text`}},
		{Tool, `{"name":"a","title":null,"description":3,"icons":null,"_meta":[],"x":null}`, `{"name":"a","x":null}`,
			ignored("title", "description", "icons", "_meta")},
		{Tool, `{"name":"a","annotations":null,"outputSchema":[],"execution":"x"}`, `{"name":"a"}`,
			ignored("annotations", "outputSchema", "execution")},
		{Tool, `{"annotations":{"readOnlyHint":"yes","x":"yes","destructiveHint":false,"title":null},"name":"a"}`,
			`{"annotations":{"x":"yes","destructiveHint":false},"name":"a"}`, ignored("annotations.title", "annotations.readOnlyHint")},
		{Tool, `{"name":"a","execution":{"taskSupport":"optional"}}`, `{"name":"a","execution":{"taskSupport":"optional"}}`, nil},
		{Tool, `{"name":"a","execution":{"taskSupport":"maybe","y":1}}`, `{"name":"a","execution":{"y":1}}`, ignored("execution.taskSupport")},
		{Tool, `{"name":"a","icons":[{"src":"x","sizes":["1x1"],"theme":"dark","mimeType":"image/png","z":1.0}]}`,
			`{"name":"a","icons":[{"src":"x","sizes":["1x1"],"theme":"dark","mimeType":"image/png","z":1.0}]}`, nil},
		{Tool, `{"name":"a","icons":[ 5 , {"src":"x","sizes":"1x1"}, {"sizes":[]}, {"src":"y","sizes":["any",1]} ]}`,
			`{"name":"a","icons":[{"src":"x"},{"src":"y","sizes":["any"]}]}`, ignored("icons[0]", "icons[1].sizes", "icons[2]", "icons[3].sizes[1]")},
		{Tool, `{"name":"a","inputSchema":5}`, `{"name":"a","inputSchema":5}`, nil},
		{Resource, `{"uri":"x:1","name":"n","size":9007199254740993,"mimeType":""}`, `{"uri":"x:1","name":"n","size":9007199254740993,"mimeType":""}`, nil},
		{Resource, `{"uri":"x:1"}`, `{"uri":"x:1","name":"x:1"}`, nil},
		{Resource, `{"uri":"x:1","name":5,"size":1.5,"mimeType":null}`, `{"uri":"x:1","name":"x:1"}`, ignored("mimeType", "size", "name")},
		{Resource, `{"name":"n"}`, ``, []string{`resource 0 is left out: member "uri" is no text`}},
		{Resource, `{"uri":"x:1","name":"n","annotations":{"audience":["user","robot"],"priority":0.0,"lastModified":"2025-01-12T15:00:58Z","x":[]}}`,
			`{"uri":"x:1","name":"n","annotations":{"audience":["user"],"priority":0.0,"lastModified":"2025-01-12T15:00:58Z","x":[]}}`, ignored("annotations.audience[1]")},
		{Resource, `{"uri":"x:1","name":"n","annotations":{"audience":"user","priority":"high","lastModified":"yesterday"}}`,
			`{"uri":"x:1","name":"n","annotations":{}}`, ignored("annotations.audience", "annotations.priority", "annotations.lastModified")},
		{Template, `{"uriTemplate":"x:{a}","name":"n","size":"big"}`, `{"uriTemplate":"x:{a}","name":"n","size":"big"}`, nil},
		{Template, `{"uriTemplate":"x:{a}","mimeType":3}`, `{"uriTemplate":"x:{a}","name":"x:{a}"}`, ignored("mimeType")},
		{Template, `{"uri":"x:1"}`, ``, []string{`member "uriTemplate" is no text`}},
		{Prompt, `{"name":"p","arguments":[{"name":"a","required":true,"y":1.0},{"name":"b","description":null,"required":"yes"}]}`,
			`{"name":"p","arguments":[{"name":"a","required":true,"y":1.0},{"name":"b"}]}`, ignored("arguments[1].description", "arguments[1].required")},
		{Prompt, `{"name":"p","arguments":[{"name":5},null,"x"]}`, `{"name":"p","arguments":[]}`, ignored("arguments[0]", "arguments[1]", "arguments[2]")},
		{Prompt, `{"name":"p","arguments":null}`, `{"name":"p"}`, ignored("arguments")},
	} {
		items, warnings := Ingest("s", c.kind, []json.RawMessage{json.RawMessage(c.sent)})
		got := ""
		if len(items) > 0 {
			got = string(items[0].Raw)
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.sent, got, c.want)
		}
		if !slices.EqualFunc(warnings, c.warnings, strings.HasSuffix) {
			t.Errorf("%s\nsaid %q\nwant %q", c.sent, warnings, c.warnings)
		}
	}
}

func TestIngestKeepsOrderAndTheFirst(t *testing.T) {
	var sent []json.RawMessage
	for _, raw := range []string{`{"name":"b"}`, `{"name":"a","n":1}`, `{"name":7}`, `{"name":"\u0061","n":2}`, `{"name":"c"}`} {
		sent = append(sent, json.RawMessage(raw))
	}
	items, warnings := Ingest("s", Tool, sent)
	var got []string
	for _, item := range items {
		got = append(got, item.Name+" "+string(item.Raw))
	}
	if want := []string{`b {"name":"b"}`, `a {"name":"a","n":1}`, `c {"name":"c"}`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if want := []string{`server s: tool 2 is left out: member "name" is no text`,
		`server s: tool 3 (a) is left out: an earlier one has the same name`}; !slices.Equal(warnings, want) {
		t.Errorf("said %q", warnings)
	}
}

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		override  *Override
		want      string
	}{
		{"plain", `{"name":"t","description":"d","inputSchema":{"type":"object"}}`, nil, `{"name":"P","description":"[s] d","inputSchema":{"type":"object"}}`},
		{"nothing", `{"name":"t"}`, nil, `{"name":"P","description":"[s]","inputSchema":{"type":"object"}}`},
		{"override", `{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
			&Override{Name: "u", Description: "<better> \"one\"", Annotations: json.RawMessage(`{"x":1.0}`)},
			`{"name":"P","description":"[s] <better> \"one\"","inputSchema":{"type":"object"},"annotations":{"x":1.0}}`},
		{"override of nothing", `{"name":"t","inputSchema":{"type":"object"}}`, &Override{Annotations: json.RawMessage(`{}`)},
			`{"name":"P","inputSchema":{"type":"object"},"description":"[s]","annotations":{}}`},
		{"root", `{"name":"t","description":"d","inputSchema":{"properties":{"a":true,"b":false,"c":{"type":["x"]},"d":null},"required":["a"]}}`, nil,
			`{"name":"P","description":"[s] d","inputSchema":{"properties":{"a":{},"b":{"not":{}},"c":{"type":["x"]},"d":{}},"required":["a"],"type":"object"}}`},
		{"odd required", `{"name":"t","description":"d","inputSchema":{"type":"object","required":"a"},"outputSchema":{"type":"object","required":[1]}}`, nil,
			`{"name":"P","description":"[s] d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`},
		{"output that may be null", `{"name":"t","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":["object","null"]}}`, nil,
			`{"name":"P","description":"[s] d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`},
		{"output that is no object", `{"name":"t","description":"d","outputSchema":{"type":"string"},"inputSchema":{"type":"object"}}`, nil,
			`{"name":"P","description":"[s] d","inputSchema":{"type":"object"}}`},
	} {
		if got := string(RenderTool(New(Ref{"s", Tool, "t"}, json.RawMessage(c.raw), c.override), "P")); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	prompt := New(Ref{"s", Prompt, "t"}, json.RawMessage(`{"x":1.0,"name":"t","description":"d"}`), nil)
	if got := string(RenderPrompt(prompt, "P")); got != `{"x":1.0,"name":"P","description":"d"}` {
		t.Errorf("prompt: %s", got)
	}
}

func TestSnapshot(t *testing.T) {
	a, b := serverOf("a", "a", "x"), serverOf("b", "b", "x")
	s := NewSnapshot([]*Server{a, b})
	if s.Server("b") != b || s.Server("c") != nil || len(s.Servers()) != 2 {
		t.Error("servers are not found by name")
	}
	if names := s.Names(Tool, 64); names != s.Names(Tool, 64) || names == s.Names(Tool, 20) {
		t.Error("names are not made once per length")
	}
	if n := s.Names(Prompt, 64); len(n.Ordered()) != 0 || n.Lookup("a__x") != nil {
		t.Error("tools are found among prompts")
	}
}
