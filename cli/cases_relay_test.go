package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// asking are the tools of the stub that ask the client, the method they ask
// with and the capability that it needs.
func asking() [][3]string {
	return [][3]string{
		{"sample", "sampling/createMessage", "sampling"},
		{"elicit", "elicitation/create", "elicitation"},
		{"roots", "roots/list", "roots"},
	}
}

// C10: what a server asks reaches a client that can be asked, and its answer,
// good or bad, reaches the server byte for byte.
func TestC10ServersAskTheClient(t *testing.T) {
	t.Parallel()
	const params = `{"z":1.0,"message":"<\ud800>","id":9007199254740993,"future":{"b":1,"a":2},"_meta":{"k":1}}`
	for _, ids := range []string{"false", "true"} {
		s := newStub(t, "s", `"string_ids":`+ids)
		p := startProxy(t, privateConfig("", s)) // roots
		p.initialize(`{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"experimental":{"x":1.0}}`)
		p.list("tools")
		announced := at(s.received("initialize")[0].Params, "capabilities")
		if want := `{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"experimental":{"x":1.0}}`; string(announced) != want {
			t.Errorf("announced to the server was %s", announced)
		}
		for _, ask := range asking() {
			for _, outcome := range []string{
				`"result":{"z":1.0,"role":"assistant","content":{"type":"odd","text":"\ud800<&>"},"big":9007199254740993}`,
				`"result":{"action":"decline"}`,
				`"result":{"roots":[]}`,
				`"result":null`,
				`"error":{"code":-1,"message":"<user> said no","data":{"n":1.0},"x":null}`,
				`"error":{"message":"no code"}`,
			} {
				call := p.startTool("s__"+ask[0], `{"params":`+params+`}`)
				m := p.await(ask[1])
				if string(m.Params) != params {
					t.Errorf("%s\ngot  %s\nwant %s", ask[1], m.Params, params)
				}
				p.answer(m, outcome)
				if got := p.wait(call); got.text() != "{"+outcome+"}" {
					t.Errorf("%s\ngot  %s\nwant {%s}", ask[1], got.text(), outcome)
				}
			}
		}
	}
}

// C10: a server that asks what the client did not announce gets an error at
// once, and the call goes on.
func TestC10ClientsThatCannotBeAsked(t *testing.T) {
	for _, capabilities := range []string{`{}`, `{"sampling":null,"elicitation":null,"roots":null}`, `{"experimental":{}}`} {
		p := startProxy(t, configOf(newStub(t, "s", "")))
		p.initialize(capabilities)
		p.list("tools")
		for _, ask := range asking() {
			began := time.Now()
			m := p.tool("s__"+ask[0], "")
			if took := m.At.Sub(began); took > time.Second {
				t.Errorf("%s took %v", ask[1], took)
			}
			if string(at(m.Result, "structuredContent", "error", "code")) != "-32601" || !strings.Contains(m.text(), ask[2]) {
				t.Errorf("%s: %s", ask[1], m.Raw)
			}
		}
		if len(p.inbox) > 0 {
			t.Errorf("the client was asked: %s", p.inbox[0].Raw)
		}
	}
}

// C10: one capability is not another.
func TestC10OnlyWhatWasAnnounced(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	for i, ask := range asking() {
		p := startProxy(t, privateConfig("", s)) // roots
		p.initialize(fmt.Sprintf(`{%q:{}}`, ask[2]))
		p.list("tools")
		for k, other := range asking() {
			if k != i {
				if m := p.tool("s__"+other[0], ""); at(m.Result, "structuredContent", "error") == nil {
					t.Errorf("%s of a client with %s: %s", other[1], ask[2], m.Raw)
				}
				continue
			}
			call := p.startTool("s__"+ask[0], "")
			p.answer(p.await(ask[1]), `"result":{}`)
			p.wait(call)
		}
	}
}

// C10: a server that no longer wants to know says so to the client, with the
// client's id of the question.
func TestC10ServersWithdrawQuestions(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize(`{"elicitation":{}}`)
	p.list("tools")
	call := p.startTool("s__elicit", "")
	m := p.await("elicitation/create")
	p.tool("s__notify", `{"method":"notifications/cancelled","params":{"requestId":1,"reason":"too <late>","x":1.0}}`)
	cancelled := p.await("notifications/cancelled")
	if want := fmt.Sprintf(`{"requestId":%s,"reason":"too <late>","x":1.0}`, m.ID); string(cancelled.Params) != want {
		t.Errorf("got  %s\nwant %s", cancelled.Params, want)
	}
	// An answer that was on its way is nobody's.
	p.answer(m, `"result":{"action":"accept"}`)
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, call))
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}

// C10: a question that is open when the client leaves keeps nobody.
func TestC10ClientLeavesWithQuestionsOpen(t *testing.T) {
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize(`{"sampling":{}}`)
	p.list("tools")
	p.startTool("s__sample", "")
	p.await("sampling/createMessage")
	began := time.Now()
	p.close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the program left after %v", took)
	}
}

// J04: progress on what a server asked goes to that server, under its own
// token.
func TestJ04ProgressOfTheClient(t *testing.T) {
	t.Parallel()
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, configOf(a, b))
	p.initialize(`{"sampling":{}}`)
	p.list("tools")
	const params = `{"params":{"_meta":{"x":1.0,"progressToken":"mine"},"messages":[]}}`
	first, second := p.startTool("a__sample", params), p.startTool("b__sample", params)
	asked := []message{p.await("sampling/createMessage"), p.await("sampling/createMessage")}
	token := at(asked[0].Params, "_meta", "progressToken")
	if string(token) == string(at(asked[1].Params, "_meta", "progressToken")) {
		t.Errorf("two servers have the token %s", token)
	}
	if string(at(asked[0].Params, "_meta", "x")) != "1.0" {
		t.Errorf("asked was %s", asked[0].Params)
	}
	for step := range 20 {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d.0}}`, token, step))
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1.0}}`)
	p.answer(asked[0], `"result":{}`)
	p.answer(asked[1], `"result":{}`)
	p.wait(first)
	p.wait(second)
	got := append(a.received("notifications/progress"), b.received("notifications/progress")...)
	if len(got) != 20 {
		t.Fatalf("the servers were told %d times", len(got))
	}
	for step, m := range got {
		if want := fmt.Sprintf(`{"progressToken":"mine","progress":%d.0}`, step); string(m.Params) != want {
			t.Errorf("got  %s\nwant %s", m.Params, want)
		}
	}
}

// A log message reaches the client as it is, and only from the level that the
// client wants; the servers are told that level.
func TestLogMessagesByLevel(t *testing.T) {
	t.Parallel()
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	a, b := newStub(t, "a", ""), newStub(t, "b", `"capabilities":{"tools":{}}`)
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.list("tools")
	logged := func(server string) (got []string) {
		t.Helper()
		for _, level := range levels {
			p.tool(server+"__log", fmt.Sprintf(`{"level":%q,"logger":"l","data":{"z":"\ud800<&>","a":1.0}}`, level))
		}
		for _, m := range p.taken("notifications/message") {
			level := stringAt(m.Params, "level")
			if want := fmt.Sprintf(`{"level":%q,"logger":"l","data":{"z":"\ud800<&>","a":1.0}}`, level); string(m.Params) != want {
				t.Errorf("got  %s\nwant %s", m.Params, want)
			}
			got = append(got, level)
		}
		return got
	}
	if got := logged("a"); !slices.Equal(got, levels) {
		t.Errorf("without a wish: %q", got)
	}
	for i, level := range levels {
		if m := p.call("logging/setLevel", fmt.Sprintf(`{"level":%q}`, level)); string(m.Result) != "{}" {
			t.Errorf("level %s: %s", level, m.Raw)
		}
		for _, server := range []string{"a", "b"} {
			if got := logged(server); !slices.Equal(got, levels[i:]) {
				t.Errorf("level %s of %s: %q", level, server, got)
			}
		}
	}
	for _, params := range []string{`{"level":"loud"}`, `{"level":3}`, `{}`, ``} {
		if m := p.call("logging/setLevel", params); m.code() != -32602 {
			t.Errorf("%s: %s", params, m.Raw)
		}
	}
	told := a.received("logging/setLevel")
	for i, level := range levels {
		if i >= len(told) || stringAt(told[i].Params, "level") != level {
			t.Fatalf("the server was told %v", told)
		}
	}
	if n := len(b.received("logging/setLevel")); n != 0 {
		t.Errorf("the server without logging was told %d levels", n)
	}
}

// Notifications that are not known here pass from servers to the client, and a
// changed list of roots to all servers.
func TestOtherNotificationsPass(t *testing.T) {
	t.Parallel()
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, privateConfig("", a, b))
	p.initialize(`{"roots":{"listChanged":true}}`)
	p.list("tools")
	p.tool("a__notify", `{"method":"notifications/tasks/status","params":{"taskId":"t","status":"working","n":1.0}}`)
	if m := p.await("notifications/tasks/status"); string(m.Params) != `{"taskId":"t","status":"working","n":1.0}` {
		t.Errorf("got %s", m.Params)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	a.awaitMessage("notifications/roots/list_changed")
	b.awaitMessage("notifications/roots/list_changed")
	p.send(`{"jsonrpc":"2.0","method":"notifications/whatever","params":[1]}`)
	if m := p.tool("a__fast", ""); m.text() != "fast" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}

// Methods that are not known, and requests out of order, are answered with an
// error, and what follows works.
func TestRequestsThatCannotBe(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	for _, method := range []string{"tools/list", "tools/call", "resources/read"} {
		if m := p.call(method, `{}`); m.code() != -32600 {
			t.Errorf("%s before initialize: %s", method, m.Raw)
		}
	}
	if m := p.call("ping", ""); string(m.Result) != "{}" {
		t.Errorf("ping before initialize: %s", m.Raw)
	}
	p.initialize("")
	for _, method := range []string{"foo", "", "tools/", "Tools/List", "rpc.discover", "sampling/createMessage"} {
		if m := p.call(method, `{}`); m.code() != -32601 {
			t.Errorf("%q: %s", method, m.Raw)
		}
	}
	for _, params := range []string{``, `null`, `[]`, `"x"`, `5`, `{}`, `{"name":null}`, `{"name":""}`, `{"name":["s__fast"]}`} {
		if m := p.call("tools/call", params); m.code() != -32602 {
			t.Errorf("tools/call %s: %s", params, m.Raw)
		}
	}
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}
