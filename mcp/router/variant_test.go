package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

func threeTiers() *catalog.Server {
	return tools("s",
		[2]string{"read", `,"annotations":{"readOnlyHint":true}`}, [2]string{"write", `,"annotations":{"destructiveHint":false}`},
		[2]string{"wipe", `,"inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`})
}

// TestVariants calls tools of every tier through every variant.
func TestVariants(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, threeTiers())
	for variant, allowed := range map[string]string{
		"call_tool_read": "read", "call_tool_write": "read write", "call_tool_destructive": "read write wipe",
	} {
		for _, tool := range []string{"read", "write", "wipe"} {
			before := d.u.count()
			text, failed := d.call(t, variant, fmt.Sprintf(`{"name":"s:%s","args":{"path":"p"}}`, tool))
			passed := strings.Contains(allowed, tool)
			if failed == passed || (d.u.count() > before) != passed {
				t.Errorf("%s of %s: %s", variant, tool, text)
			}
			if !passed && !strings.Contains(text, "is called with call_tool_") {
				t.Errorf("the right variant is not named: %s", text)
			}
		}
	}
	if last := d.records[len(d.records)-1]; last.Variant == "" || last.Mode != retrieveName {
		t.Errorf("recorded %+v", last)
	}
	d.set.LenientVariants = true
	if text, failed := d.call(t, "call_tool_read", `{"name":"s:wipe","args":{"path":"p"}}`); failed || len(d.warned) != 1 || !strings.Contains(d.warned[0], "strict_server_validation") {
		t.Errorf("lenient: %s, warnings %q", text, d.warned)
	}
}

// TestVariantArguments gives names, intents and arguments in all ways.
func TestVariantArguments(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, threeTiers())
	for args, want := range map[string]string{
		`{"name":"s:read","args":{"n":1e400,"a":1,"a":2,"ü":"\ud800"}}`: `{"n":1e400,"a":1,"a":2,"ü":"\ud800"}`,
		`{"name":"s:read"}`:                                                            `{}`,
		`{"name":"s:read","args":"","args_json":" "}`:                                  `{}`,
		`{"name":"s:read","args":null,"args_json":null}`:                               `{}`,
		`{"name":"s:read","args_json":"{\"a\": 12345678901234567890}"}`:                `{"a": 12345678901234567890}`,
		`{"name":"s:read","args":{"a":1,"b":2},"args_json":"{\"b\":2.0,\"a\":1}"}`:     `{"a":1,"b":2}`,
		`{"name":"s:read","args":"{\"a\":1}"}`:                                         `{"a":1}`,
		`{"name":"s__read","intent_data_sensitivity":"private","intent_reason":"why"}`: `{}`,
	} {
		text, failed := d.call(t, "call_tool_read", args)
		got := d.u.last()
		if failed || string(wire.Member(got.Params, "arguments")) != want || string(wire.Member(got.Params, "name")) != `"read"` {
			t.Errorf("%s: %s; the server got %s", args, text, got.Params)
		}
	}
	var intents []string
	for _, r := range d.records {
		if r.Intent != "" {
			intents = append(intents, r.Intent)
		}
	}
	if fmt.Sprint(intents) != "[private: why]" {
		t.Errorf("intents recorded: %q", intents)
	}
	before, records := d.u.count(), len(d.records)
	wrong := map[string]string{
		`{}`: `"name" is missing`, `{"name":""}`: "blank", `{"name":7}`: "must be a string",
		`{"name":"s:read","intent_data_sensitivity":"secret"}`:                  "none of public, internal, private, unknown",
		`{"name":"nono:x","intent_data_sensitivity":1}`:                         "must be a string",
		`{"name":"s:read","intent_reason":"` + strings.Repeat("ü", 1001) + `"}`: "1001 characters; it may have 1000",
		`{"name":"s:read","args":[1]}`:                                          `"args" must be an object`,
		`{"name":"s:read","args_json":{}}`:                                      "text of a JSON object",
		`{"name":"s:read","args_json":"{"}`:                                     "text of a JSON object",
		`{"name":"s:read","args":{"a":1},"args_json":"{\"a\":2}"}`:              "differ",
		`{"name":"s:read","arguments":{}}`:                                      `unknown argument "arguments"`,
		`{"name":"s:read","name":"s:wipe"}`:                                     "stands twice",
		`{"name":"s:wipe","args":{"path":1}}`:                                   `"required":["path"]`,
		`{"name":"nono:x"}`:                                                     "not found, or access denied; retrieve_tools",
		`{"name":"s:raed"}`:                                                     `did you mean "s:read"`,
		`{"name":"read"}`:                                                       "not found, or access denied",
	}
	for args, want := range wrong {
		if text, failed := d.call(t, "call_tool_destructive", args); !failed || !strings.Contains(text, want) {
			t.Errorf("%.60s: %s", args, text)
		}
	}
	if d.u.count() != before || len(d.records) != records+len(wrong) {
		t.Errorf("%d of the wrong calls reached the server, %d of %d were recorded", d.u.count()-before, len(d.records)-records, len(wrong))
	}
	for _, r := range d.records[records:] {
		if r.Kind != activity.Refusal {
			t.Errorf("recorded %+v", r)
		}
	}
}

// TestVariantOrder checks which of several refusals is told: name, intent and
// arguments come before what the tool is, the variant before what a person has to
// review.
func TestVariantOrder(t *testing.T) {
	d := retrieve(t, auth.Person(""), map[string]policy.Rule{"s": {Unannotated: catalog.Destructive, DisabledTools: []string{"wipe"}}}, threeTiers())
	for args, want := range map[string]string{
		`{"intent_reason":1,"args":1}`:                   `"name"`,
		`{"name":"nono:x","intent_reason":1,"args":1}`:   `"intent_reason"`,
		`{"name":"nono:x","args":1}`:                     `"args"`,
		`{"name":"nono:x","args":{"path":1}}`:            "not found",
		`{"name":"s:wipe","args":{"path":1}}`:            "call_tool_destructive",
		`{"name":"s:read","args":{"path":1},"debug":{}}`: "unknown argument",
	} {
		if text, failed := d.call(t, "call_tool_read", args); !failed || !strings.Contains(text, want) {
			t.Errorf("%s: %s", args, text)
		}
	}
	if text, _ := d.call(t, "call_tool_destructive", `{"name":"s:wipe","args":{"path":1}}`); !strings.Contains(text, "disabled by the configuration") {
		t.Errorf("disabled comes before the arguments: %s", text)
	}
}

// TestVariantResults passes results and errors of servers on as they are.
func TestVariantResults(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, threeTiers())
	call := json.RawMessage(`{"name":"call_tool_read","arguments":{"name":"s:read"},"_meta":{"progressToken":7}}`)
	for answer, want := range map[string]string{
		`{"content":[{"type":"image","data":"AA==","x":1},{"type":"text","text":"t"}],"isError":true,"_meta":{"a":1},"odd":[1.0]}`: "",
		`{"structuredContent":{"a":1}}`: `{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}`,
	} {
		d.u.answers = map[string]json.RawMessage{"tools/call": json.RawMessage(answer)}
		if want == "" {
			want = answer
		}
		if got, e := d.Handle(t.Context(), session(), "tools/call", call); string(got) != want || e != nil {
			t.Errorf("got  %s %v\nwant %s", got, e, want)
		}
	}
	if got := string(wire.Member(d.u.last().Params, "_meta", "progressToken")); got != "7" {
		t.Errorf("the progress token is %s", got)
	}
	d.u.failure = &wire.Error{Code: -32042, Message: "of the server", Raw: json.RawMessage(`{"code":-32042,"message":"of the server","data":{"x":1}}`)}
	if _, e := d.Handle(t.Context(), session(), "tools/call", call); e == nil || e.Raw == nil {
		t.Errorf("the server's error became %v", e)
	}
	d.u.failure = wire.Errorf(wire.CodeUnavailable, "server s has died")
	if got, e := d.Handle(t.Context(), session(), "tools/call", call); e != nil || string(wire.Member(got, "isError")) != "true" {
		t.Errorf("our own error became %s, %v", got, e)
	}
}

// TestBuiltinsOfRetrieve compares annotations and metadata of the built-in tools with
// the contract (Z03), and their names with what the servers offer.
func TestBuiltinsOfRetrieve(t *testing.T) {
	d := retrieve(t, auth.Person(""), nil, tools("retrieve", [2]string{"tools", ``}), tools("call_tool", [2]string{"read", ``}))
	d.set.MaxResult = 5000
	list, e := d.Handle(t.Context(), session(), "tools/list", nil)
	if e != nil {
		t.Fatal(e)
	}
	want := []struct {
		name                        string
		readOnly, destructive, open bool
	}{
		{"retrieve_tools", true, false, false}, {"describe_tool", true, false, false},
		{"call_tool_read", true, false, true}, {"call_tool_write", false, false, true}, {"call_tool_destructive", false, true, true},
	}
	i := 0
	for tool := range wire.Elements(wire.Member(list, "tools")) {
		var got struct {
			Name, Description string
			InputSchema       struct{ Type string }
			OutputSchema      json.RawMessage
			Annotations       struct {
				Title                                        string
				ReadOnlyHint, DestructiveHint, OpenWorldHint bool
			}
			Meta map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal(tool, &got); err != nil {
			t.Fatal(err)
		}
		if i >= len(want) {
			t.Fatalf("one more: %s", tool)
		}
		w, a := want[i], got.Annotations
		if got.Name != w.name || a.ReadOnlyHint != w.readOnly || a.DestructiveHint != w.destructive || a.OpenWorldHint != w.open || a.Title == "" {
			t.Errorf("%s", tool)
		}
		if got.OutputSchema != nil || got.InputSchema.Type != "object" || len(got.Description) >= 2000 || got.Meta["anthropic/alwaysLoad"] != true || got.Meta["anthropic/maxResultSizeChars"] != 5000.0 {
			t.Errorf("%s", tool)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d tools", i)
	}
	if _, e := d.Handle(t.Context(), session(), "tools/call", json.RawMessage(`{"name":"call_tool__read"}`)); e == nil || !strings.Contains(e.Message, "call_tool_read") {
		t.Errorf("a tool called by its public name: %v", e)
	}
}
