package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// readText reads a resource and returns its text.
func (p *proxy) readText(uri string) string {
	p.t.Helper()
	m := p.call("resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
	if m.Error != nil {
		p.t.Errorf("read %s: %s", uri, m.Error)
	}
	return stringAt(m.Result, "contents", "0", "text")
}

// X01: of a URI that two servers offer, each can be read, and neither stands in
// for the other.
func TestX01SameURIFromTwoServers(t *testing.T) {
	t.Parallel()
	offer := func(text string) string {
		return fmt.Sprintf(`"resources":[{"uri":"config://settings","name":"s"},{"uri":"x:%s","name":"own"}],"templates":[{"uriTemplate":"t:{a}","name":"t"}],
			"reads":{"config://settings":{"result":{"contents":[{"uri":"config://settings","text":%q}]}}}`, text, text)
	}
	a, b := newStub(t, "a", offer("of a")), newStub(t, "b", offer("of b"))
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	if _, uris := p.list("resources"); !slices.Equal(uris, []string{"config://settings", "x:of a", "config://settings", "x:of b"}) {
		t.Errorf("listed are %q", uris)
	}
	for _, uri := range []string{"config://settings", "t:1"} {
		for _, method := range []string{"resources/read", "resources/subscribe"} {
			m := p.call(method, fmt.Sprintf(`{"uri":%q}`, uri))
			if m.code() != -32602 || !strings.Contains(m.errorText(), "(a, b)") || !strings.Contains(m.errorText(), "'a|"+uri+"'") {
				t.Errorf("%s %s: %s", method, uri, m.Raw)
			}
		}
	}
	for server, want := range map[string]string{"a": "of a", "b": "of b"} {
		if got := p.readText(server + "|config://settings"); got != want {
			t.Errorf("%s's is %q", server, got)
		}
	}
	if got := p.readText("b|t:1"); got != "b: t:1" {
		t.Errorf("b's is %q", got)
	}
	for _, s := range []*upstreamStub{a, b} {
		for _, m := range s.received("resources/read") {
			if uri := stringAt(m.Params, "uri"); strings.Contains(uri, "|") {
				t.Errorf("%s was asked for %q", s.name, uri)
			}
		}
	}
	// What only one of them lists needs no name.
	p.readText("x:of b")
	if n := len(a.received("resources/read")); n != 1 {
		t.Errorf("a was asked %d times", n)
	}
}

// X03: a URI that a template gives reaches the server of the template.
func TestX03URIsOfTemplates(t *testing.T) {
	t.Parallel()
	a := newStub(t, "a", `"templates":[{"uriTemplate":"file:///{+path}","name":"files"},{"uriTemplate":"db://{table}/{id}{?full}","name":"rows"}]`)
	b := newStub(t, "b", `"templates":[{"uriTemplate":"mail://{box}","name":"mail"},{"uriTemplate":"odd://{","name":"odd"}],"resources":[{"uri":"file:///b's own","name":"own"}]`)
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	for uri, want := range map[string]*upstreamStub{
		"file:///a/b": a, "file:///": a, "db://users/7": a, "db://users/7?full=yes": a, "mail://in": b, "file:///b's own": b, "odd://{": b,
	} {
		if got := p.readText(uri); got != want.name+": "+uri {
			t.Errorf("%s was read as %q", uri, got)
		}
		received := want.received("resources/read")
		if got := stringAt(received[len(received)-1].Params, "uri"); got != uri {
			t.Errorf("%s got %q", want.name, got)
		}
	}
	m := p.call("resources/read", `{"uri":"nowhere://x"}`)
	if m.code() != -32002 || stringAt(m.Error, "data", "uri") != "nowhere://x" {
		t.Errorf("a URI that nobody has: %s", m.Raw)
	}
	for _, params := range []string{``, `{}`, `{"uri":""}`, `{"uri":5}`, `[]`} {
		if m := p.call("resources/read", params); m.code() != -32602 {
			t.Errorf("params %s: %s", params, m.Raw)
		}
	}
	m = p.call("completion/complete", `{"ref":{"type":"ref/resource","uri":"db://{table}/{id}{?full}"},"argument":{"name":"table","value":"u"}}`)
	if m.Error != nil || len(a.received("completion/complete")) != 1 {
		t.Errorf("completion: %s", m.Raw)
	}
}

// X04: prompts of one name keep apart, and arguments arrive.
func TestX04PromptsOfOneName(t *testing.T) {
	t.Parallel()
	const prompt = `"prompts":[{"name":"greet","description":"says hello","arguments":[{"name":"who","required":true}]},{"name":"good bye!","title":"T"}]`
	a, b := newStub(t, "a", prompt), newStub(t, "b", prompt)
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	all, names := p.list("prompts")
	if len(names) != 4 || names[0] != "a__greet" || names[2] != "b__greet" {
		t.Errorf("listed are %q", names)
	}
	if want := `{"name":"a__greet","description":"says hello","arguments":[{"name":"who","required":true}]}`; string(all["a__greet"]) != want {
		t.Errorf("got  %s\nwant %s", all["a__greet"], want)
	}
	const arguments = `{"who":"<世界>","z":"1","a":"2"}`
	for _, name := range []string{names[2], names[3]} {
		if m := p.call("prompts/get", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)); m.Error != nil {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	if n := len(a.received("prompts/get")); n != 0 {
		t.Errorf("a got %d requests", n)
	}
	for i, want := range []string{"greet", "good bye!"} {
		params := b.received("prompts/get")[i].Params
		if stringAt(params, "name") != want || string(at(params, "arguments")) != arguments {
			t.Errorf("b got %s", params)
		}
	}
	for _, name := range []string{"greet", "c__greet", "a__nothing"} {
		if m := p.call("prompts/get", fmt.Sprintf(`{"name":%q}`, name)); m.code() != -32602 || !strings.Contains(m.errorText(), "'"+name+"'") {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	m := p.call("completion/complete", `{"ref":{"type":"ref/prompt","name":"b__greet"},"argument":{"name":"who","value":"w"}}`)
	if m.Error != nil || stringAt(b.received("completion/complete")[0].Params, "ref", "name") != "greet" {
		t.Errorf("completion: %s", m.Raw)
	}
	if m := p.call("completion/complete", `{"ref":{"type":"ref/odd"}}`); m.code() != -32602 {
		t.Errorf("completion of something odd: %s", m.Raw)
	}
}

// X04: a server that completes nothing is not asked to.
func TestX04CompletionWithoutTheCapability(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"capabilities":{"prompts":{}},"prompts":[{"name":"p"}]`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("prompts")
	m := p.call("completion/complete", `{"ref":{"type":"ref/prompt","name":"s__p"},"argument":{"name":"who","value":"w"}}`)
	if string(at(m.Result, "completion", "values")) != "[]" {
		t.Errorf("completion: %s", m.Raw)
	}
	if n := len(s.received("completion/complete")); n != 0 {
		t.Errorf("the server got %d requests", n)
	}
}

// X06: updates reach those who subscribed, once, and nobody after that.
func TestX06SubscriptionsAreForwarded(t *testing.T) {
	t.Parallel()
	const updated = "notifications/resources/updated"
	a := newStub(t, "a", `"list_builtins":["update"],"tools":[],"resources":[{"uri":"x:1","name":"one"},{"uri":"x:2","name":"two"},{"uri":"dir://d","name":"dir"}]`)
	b := newStub(t, "b", `"list_builtins":["update"],"tools":[],"resources":[{"uri":"y:1","name":"one"}]`)
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.list("tools")
	update := func(server, uri string, want int) {
		t.Helper()
		p.tool(server+"__update", fmt.Sprintf(`{"uri":%q}`, uri))
		got := p.taken(updated)
		if len(got) != want {
			t.Errorf("an update of %s was told %d times, not %d", uri, len(got), want)
		}
		for _, m := range got {
			if string(m.Params) != fmt.Sprintf(`{"uri":%q}`, uri) {
				t.Errorf("told was %s", m.Params)
			}
		}
	}
	update("a", "x:1", 0)
	for range 2 {
		if m := p.call("resources/subscribe", `{"uri":"x:1"}`); string(m.Result) != "{}" {
			t.Errorf("subscribe: %s", m.Raw)
		}
	}
	p.call("resources/subscribe", `{"uri":"dir://d"}`)
	update("a", "x:1", 1)
	update("a", "x:2", 0)
	update("b", "y:1", 0)
	update("b", "x:1", 0)
	update("a", "dir://d/inside", 1)
	update("a", "dir://door", 0)
	if m := p.call("resources/unsubscribe", `{"uri":"x:1"}`); string(m.Result) != "{}" {
		t.Errorf("unsubscribe: %s", m.Raw)
	}
	update("a", "x:1", 0)
	p.call("resources/unsubscribe", `{"uri":"x:1"}`)
	if got := a.events("subscribe"); !slices.Equal(got, []string{"x:1", "dir://d"}) {
		t.Errorf("the server got subscriptions %q", got)
	}
	if got := a.events("unsubscribe"); !slices.Equal(got, []string{"x:1"}) {
		t.Errorf("the server lost subscriptions %q", got)
	}
	if n := len(b.events("subscribe")); n != 0 {
		t.Errorf("the other server got %d subscriptions", n)
	}
}

// X06: a server that was started again is asked again for what the client had
// subscribed to.
func TestX06SubscriptionsOutliveTheServer(t *testing.T) {
	t.Parallel()
	a := newStub(t, "a", `"list_builtins":["update","exit"],"tools":[],"resources":[{"uri":"x:1","name":"one"}]`)
	p := startProxy(t, configOf(a))
	p.initialize("")
	p.list("tools")
	p.call("resources/subscribe", `{"uri":"x:1"}`)
	p.call("logging/setLevel", `{"level":"error"}`)
	p.tool("a__exit", "")
	p.tool("a__update", `{"uri":"x:2"}`)
	for n := 0; n < 2; n = len(a.events("subscribe")) {
		p.tool("a__update", `{"uri":"x:2"}`)
	}
	p.tool("a__update", `{"uri":"x:1"}`)
	p.await("notifications/resources/updated")
	if levels := a.received("logging/setLevel"); len(levels) != 2 || string(levels[1].Params) != `{"level":"error"}` {
		t.Errorf("log levels asked for: %s", levels)
	}
}
