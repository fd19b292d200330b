package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// S01: tools without a usable schema are listed with an object schema.
func TestS01MissingSchemas(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"absent"},{"name":"null","inputSchema":null},{"name":"empty","inputSchema":{}},
		{"name":"typeless","inputSchema":{"properties":{"a":{"type":"string"}}}},{"name":"good","inputSchema":{"type":"object"}}]`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	all, names := p.list("tools")
	if len(names) != 5 {
		t.Errorf("listed are %q", names)
	}
	for name, tool := range all {
		if stringAt(tool, "inputSchema", "type") != "object" {
			t.Errorf("%s: %s", name, tool)
		}
	}
	if got := at(all["s__typeless"], "inputSchema", "properties", "a"); string(got) != `{"type":"string"}` {
		t.Errorf("property a is %s", got)
	}
}

// S09: one malformed tool does not cost the others of its server.
func TestS09MalformedToolsBesideGoodOnes(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"ok","inputSchema":{"type":"object"}},{"name":5,"inputSchema":{"type":"object"}},
		{"name":"c","annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"}},7,{"name":"last","description":[],"inputSchema":{"type":"object"}}]`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	if _, names := p.list("tools"); !slices.Equal(names, []string{"s__ok", "s__c", "s__last"}) {
		t.Errorf("listed are %q", names)
	}
	if m := p.tool("s__ok", ""); m.text() != "answer of ok · 世界" {
		t.Errorf("ok: %s", m.Raw)
	}
	p.close()
	for _, part := range []string{`server s: tool 1 is left out: member "name"`, `server s: tool 2 (c): member "annotations.readOnlyHint"`,
		`server s: tool 3 is left out`, `server s: tool 4 (last): member "description"`} {
		if strings.Count(p.stderrText(), part) != 1 {
			t.Errorf("stderr does not have %q once: %s", part, p.stderrText())
		}
	}
}

// S16: nothing of a parameter is lost between the server's list and ours.
func TestS16SchemasArriveWhole(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"object","required":["e"],"properties":{"e":{"enum":["a",1,null],"default":"a"},"d":{"type":"number","default":1.50}}},"opt":{"type":["string","null"],"default":null}},"additionalProperties":false}`
	s := newStub(t, "s", fmt.Sprintf(`"tools":[{"name":"t","inputSchema":%s}]`, schema))
	p := startProxy(t, configOf(s))
	p.initialize("")
	all, _ := p.list("tools")
	if got := at(all["s__t"], "inputSchema"); string(got) != schema {
		t.Errorf("got  %s\nwant %s", got, schema)
	}
}

// resultCase is a tool that answers with one result, and what has to arrive.
type resultCase struct {
	id, sentence string
	tool         string // the definition's further members
	result       string
	want         string // "" is the result itself
}

// R01, R03, R06, R08, R11: what a server answers, and what it says of its
// tools, arrives as it was.
func TestResultsArriveWhole(t *testing.T) {
	t.Parallel()
	cases := []resultCase{
		{"R01", "structured content and its schema are not lost",
			`"outputSchema":{"type":"object","properties":{"status":{"type":"string"},"score":{"type":"number"}}}`,
			`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"status":"ok","score":7}}`, ""},
		{"R02", "a result that is only structured gets a text",
			`"title":"T"`, `{"content":[],"structuredContent":{"a":1}}`,
			`{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		{"R02", "a result that has a text gets no other",
			`"title":"T"`, `{"content":[{"type":"text","text":""}],"structuredContent":{"a":1}}`, ""},
		{"R03", "meta of results and tools is not lost",
			`"_meta":{"anthropic/maxResultSizeChars":200000}`, `{"content":[],"_meta":{"k":1}}`, ""},
		{"R06", "a result that does not fit the schema passes",
			`"outputSchema":{"type":"object","properties":{"d":{"type":"string","format":"date-time"}},"required":["d"]}`,
			`{"content":[{"type":"text","text":"x"}],"structuredContent":{"d":"2026-01-01T10:00:00"}}`, ""},
		{"R06", "a text alone passes beside an output schema",
			`"outputSchema":{"type":"object","required":["d"]}`, `{"content":[{"type":"text","text":"only text"}]}`, ""},
		{"R08", "large integers keep their digits",
			`"title":"T"`, `{"content":[{"type":"text","text":"9007199254740993"}],"structuredContent":{"id":9007199254740993}}`, ""},
		{"R11", "members of the future are not lost",
			`"execution":{"taskSupport":"optional"},"title":"T","icons":[{"src":"data:,x","theme":"dark"}],"annotations":{"readOnlyHint":false,"destructiveHint":false,"x":1}`,
			`{"content":[{"type":"text","text":"x","y":1}],"z":2}`, ""},
	}
	var definitions, calls []string
	for i, c := range cases {
		definitions = append(definitions, fmt.Sprintf(`{"name":"t%d","description":"d","inputSchema":{"type":"object"},%s}`, i, c.tool))
		calls = append(calls, fmt.Sprintf(`"t%d":{"result":%s}`, i, c.result))
	}
	s := newStub(t, "s", fmt.Sprintf(`"tools":[%s],"calls":{%s}`, strings.Join(definitions, ","), strings.Join(calls, ",")))
	p := startProxy(t, configOf(s))
	p.initialize("")
	all, _ := p.list("tools")
	for i, c := range cases {
		t.Run(c.id+" "+c.sentence, func(t *testing.T) {
			name := fmt.Sprintf("s__t%d", i)
			want := fmt.Sprintf(`{"name":%q,"description":"[s] d","inputSchema":{"type":"object"},%s}`, name, c.tool)
			if string(all[name]) != want {
				t.Errorf("definition\ngot  %s\nwant %s", all[name], want)
			}
			if want = c.want; want == "" {
				want = c.result
			}
			if got := p.tool(name, "").Result; string(got) != want {
				t.Errorf("result\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

// R04: errors keep code, message and data, gain no prefix on the way, and stay
// what they were: errors or results. Behind two proxies as well.
func TestR04ErrorsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	const failure = `{"code":-32602,"message":"bad city","data":{"field":"city"}}`
	const boom = `{"isError":true,"content":[{"type":"text","text":"boom"}]}`
	s := newStub(t, "s", fmt.Sprintf(`%s,"calls":{"fail":{"error":%s},"boom":{"result":%s}}`, tools("fail", "boom"), failure, boom))
	one := startProxy(t, configOf(s))
	two := startProxy(t, fmt.Sprintf(
		`{"share_upstreams":false,"mcpServers":[{"name":"in","command":"mcpproxy","args":["--mode","direct","--config",%q,"--data-dir",%q]}]}`,
		one.dir+"/mcp_config.json", one.dir+"/data"))
	for prefix, p := range map[string]*proxy{"s__": one, "in__s__": two} {
		p.initialize("")
		if m := p.tool(prefix+"fail", ""); string(m.Error) != failure {
			t.Errorf("%sfail: %s", prefix, m.Raw)
		}
		if m := p.tool(prefix+"boom", ""); string(m.Result) != boom {
			t.Errorf("%sboom: %s", prefix, m.Raw)
		}
	}
}

// valid reports whether raw is one JSON value.
func valid(raw json.RawMessage) bool { return len(raw) > 0 && json.Valid(raw) }
