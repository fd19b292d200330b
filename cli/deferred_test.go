//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestDeferred: with direct_tool_response_mode deferred the tools of mode direct are
// listed with a signature in place of their schemas, which describe_tool gives;
// calls are as before. It is switched while the session lasts, and told.
func TestDeferred(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","default":3}},"required":["city"]}`
	s := newStub(t, "s", fmt.Sprintf(`"tools":[{"name":"weather","title":"Weather","description":"Tells the weather.","inputSchema":%s,"outputSchema":{"type":"object"},
		"annotations":{"readOnlyHint":true},"_meta":{"k":1}},{"name":"plain"}],"calls":{"weather":{"result":{"content":[{"type":"text","text":"fine"}],"structuredContent":{"sun":true}}}}`, schema))
	dir := place(t, privateConfig(`"direct_tool_response_mode":"deferred",`, s))
	_, file := issue(t, dir, "agent", "--servers", "other")
	p := adminIn(t, dir, "s__weather")
	expectDeferred := func() {
		t.Helper()
		all, names := p.list("tools")
		if !slices.Equal(names, []string{"describe_tool", "s__weather", "s__plain"}) {
			t.Errorf("listed are %q", names)
		}
		for _, name := range []string{"s__weather", "s__plain"} {
			if string(at(all[name], "inputSchema")) != `{"type":"object"}` || at(all[name], "outputSchema") != nil {
				t.Errorf("%s is %s", name, all[name])
			}
		}
		text := stringAt(all["s__weather"], "description")
		if !strings.HasPrefix(text, "[s] Tells the weather.\n") || !strings.Contains(text, "city*") || !strings.Contains(text, "days") || stringAt(all["s__weather"], "title") != "Weather" ||
			string(at(all["s__weather"], "annotations", "readOnlyHint")) != "true" || string(at(all["s__weather"], "_meta", "k")) != "1" {
			t.Errorf("weather is %s", all["s__weather"])
		}
		m := p.tool("describe_tool", `{"tool_ids":["s__weather","s:plain","s__nothing","t:weather"]}`)
		answer := json.RawMessage(m.text())
		if m.isError() || string(at(answer, "definitions", "0", "inputSchema")) != schema || string(at(answer, "definitions", "0", "outputSchema")) != `{"type":"object"}` ||
			stringAt(answer, "definitions", "1", "name") == "" || stringAt(answer, "errors", "0", "id") != "s__nothing" || stringAt(answer, "errors", "1", "id") != "t:weather" {
			t.Errorf("describe_tool gave %s", m.Raw)
		}
		// What the answer names as the way to call the tool is one.
		if name := stringAt(answer, "definitions", "0", "call_with"); all[name] == nil {
			t.Errorf("the tool is to be called with %s, which is not listed", name)
		}
	}
	expectDeferred()
	expectCalls := func() {
		t.Helper()
		m := p.tool("s__weather", `{"city":"Rome"}`)
		if m.text() != "fine" || string(at(m.Result, "structuredContent", "sun")) != "true" {
			t.Errorf("the call gave %s", m.Raw)
		}
		calls := s.received("tools/call")
		if got := at(calls[len(calls)-1].Params, "arguments"); string(got) != `{"city":"Rome"}` {
			t.Errorf("the server got %s", got)
		}
	}
	expectCalls()
	agent := startProxyIn(t, dir, "", "--token-file", file)
	agent.initialize("")
	m := agent.tool("describe_tool", `{"tool_ids":["s:weather"]}`)
	if !isNotDescribed(m) || strings.Contains(m.text(), "city") {
		t.Errorf("an agent of another server is told %s", m.Raw)
	}

	p.list("tools")
	save(t, dir, privateConfig("", s))
	p.await("notifications/tools/list_changed")
	all, names := p.list("tools")
	if !slices.Equal(names, []string{"s__weather", "s__plain"}) || string(at(all["s__weather"], "inputSchema")) != schema || at(all["s__weather"], "outputSchema") == nil {
		t.Errorf("listed are %q, %s", names, all["s__weather"])
	}
	if m := p.tool("describe_tool", `{"tool_ids":["s:weather"]}`); m.code() != -32602 {
		t.Errorf("describe_tool is there: %s", m.Raw)
	}
	expectCalls()
	save(t, dir, privateConfig(`"direct_tool_response_mode":"deferred",`, s))
	p.await("notifications/tools/list_changed")
	expectDeferred()
	expectCalls()
}

// TestDirectTruncate: mode direct cuts long results, and lists read_cache, only with
// direct_truncate, which is switched while the session lasts.
func TestDirectTruncate(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"long","outputSchema":{"type":"object"}}],"calls":{"long":{"bytes":30000}}`)
	dir := place(t, privateConfig("", s))
	p := adminIn(t, dir, "s__long")
	if m := p.tool("s__long", ""); len(m.text()) != 30000 {
		t.Errorf("a result has %d characters", len(m.text()))
	}
	if m := p.tool("read_cache", `{"key":"x"}`); m.code() != -32602 {
		t.Errorf("read_cache is there: %s", m.Raw)
	}
	p.list("tools")
	save(t, dir, privateConfig(`"direct_truncate":true,`, s))
	p.await("notifications/tools/list_changed")
	all, names := p.list("tools")
	if !slices.Equal(names, []string{"read_cache", "s__long"}) || at(all["s__long"], "outputSchema") != nil {
		t.Errorf("listed are %q, %s", names, all["s__long"])
	}
	m := p.tool("s__long", "")
	named := readCall.FindStringSubmatch(m.text())
	if len(m.text()) > 20000 || named == nil {
		t.Fatalf("a result is %s", shorten(m.Raw))
	}
	var text strings.Builder
	for _, page := range readOn(t, named[2], p) {
		text.WriteString(stringAt(page, "text"))
	}
	if text.String() != strings.Repeat("x", 30000) {
		t.Errorf("the pages have %d characters", text.Len())
	}
	save(t, dir, privateConfig("", s))
	p.await("notifications/tools/list_changed")
	if _, names := p.list("tools"); !slices.Equal(names, []string{"s__long"}) {
		t.Errorf("listed are %q", names)
	}
	if m := p.tool("s__long", ""); len(m.text()) != 30000 {
		t.Errorf("a result has %d characters", len(m.text()))
	}
}
