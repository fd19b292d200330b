package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// C02: a tool without arguments gets an empty object, however the client says
// that there are none.
func TestC02NoArguments(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", tools("t"))
	p := startProxy(t, configOf(s))
	p.initialize("")
	for _, params := range []string{`{"name":"s__t"}`, `{"name":"s__t","arguments":null}`, `{"name":"s__t","arguments":{}}`} {
		if m := p.call("tools/call", params); m.Error != nil || m.isError() {
			t.Errorf("%s: %s", params, m.Raw)
		}
	}
	received := s.received("tools/call")
	if len(received) != 3 {
		t.Fatalf("the server got %d calls", len(received))
	}
	for _, m := range received {
		if got := at(m.Params, "arguments"); string(got) != `{}` {
			t.Errorf("arguments are %s", got)
		}
	}
}

// C04: a server keeps its state from call to call.
func TestC04OneProcessForAllCalls(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	pid := ""
	for n := 1; n <= 3; n++ {
		m := p.tool("s__inc", "")
		got := at(m.Result, "structuredContent", "n")
		if string(got) != fmt.Sprint(n) {
			t.Errorf("call %d returned %s", n, m.Raw)
		}
		now := string(at(m.Result, "structuredContent", "pid"))
		if pid != "" && pid != now {
			t.Errorf("process %s answered, before %s", now, pid)
		}
		pid = now
	}
}

// C05: a slow call holds up no other, of the same server or of another.
func TestC05SlowCallsHoldUpNobody(t *testing.T) {
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.tool("a__fast", "")
	p.tool("b__fast", "")
	slow := p.startTool("a__slow", `{"ms":3000}`)
	began := time.Now()
	for _, name := range []string{"a__fast", "b__fast"} {
		if m := p.tool(name, ""); m.text() != "fast" || m.At.Sub(began) > 500*time.Millisecond {
			t.Errorf("%s after %v: %s", name, m.At.Sub(began), m.Raw)
		}
	}
	if m := p.wait(slow); m.text() != "slow" || m.At.Sub(began) < 2900*time.Millisecond {
		t.Errorf("slow after %v: %s", m.At.Sub(began), m.Raw)
	}
}

// C07: a dead server is not an unknown tool.
func TestC07DeadServerIsNoUnknownTool(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	s.script(`"exit_at_start":3,"stderr_text":"cannot find the licence\n"`)
	if m := p.tool("s__exit", ""); !m.isError() || !strings.Contains(m.text(), "server s ") {
		t.Errorf("the call during which it ended: %s", m.Raw)
	}
	m := p.tool("s__fast", "")
	if !m.isError() {
		t.Errorf("the call after it: %s", m.Raw)
	}
	for _, part := range []string{"server s ", "unavailable", "cannot find the licence", "exit status 3"} {
		if !strings.Contains(m.text(), part) {
			t.Errorf("%q does not say %q", m.text(), part)
		}
	}
	if strings.Contains(m.text(), "not found, or") || strings.Contains(m.text(), "unknown") {
		t.Errorf("%q takes it for an unknown tool", m.text())
	}
	for _, name := range []string{"s__nothing", "other__fast", "plain", "__", "s__"} {
		if m := p.tool(name, ""); m.code() != -32602 || !strings.Contains(m.errorText(), "'"+name+"'") {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
}

// C08: the budget of a call holds for servers over stdio; what comes too late
// is dropped.
func TestC08CallTimeout(t *testing.T) {
	s := newStub(t, "s", "").with(`"call_tool_timeout":"2s"`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	began := time.Now()
	hang := p.startTool("s__hang", "")
	late := p.startTool("s__slow", `{"ms":2700,"ignore_cancel":true}`)
	for _, id := range []int{hang, late} {
		m := p.wait(id)
		if took := m.At.Sub(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("answered after %v: %s", took, m.Raw)
		}
		if !m.isError() || !strings.Contains(m.text(), "server s") || !strings.Contains(m.text(), "2s") {
			t.Errorf("answered %s", m.Raw)
		}
	}
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("fast: %s", m.Raw)
	}
	// The late answer was written before this one.
	p.tool("s__slow", `{"ms":1000}`)
	if len(p.inbox) > 0 {
		t.Errorf("there is more: %s", p.inbox[0].Raw)
	}
	if text := p.stderrText(); text != "" {
		t.Errorf("stderr: %s", text)
	}
	if n := len(s.events("cancelled")); n != 2 {
		t.Errorf("the server was told of %d cancelled calls", n)
	}
}

// C08: with a budget for silence, a call may take as long as it shows signs of
// life; the client hears of them only if it asked.
func TestC08IdleTimeout(t *testing.T) {
	s := newStub(t, "s", "").with(`"call_idle_timeout":"1s"`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	const busy = `{"name":"s__progress","arguments":{"n":4,"interval_ms":500}%s}`
	quiet, told := p.start("tools/call", fmt.Sprintf(busy, "")), p.start("tools/call", fmt.Sprintf(busy, `,"_meta":{"progressToken":"p"}`))
	began := time.Now()
	hang := p.startTool("s__hang", "")
	if m := p.wait(hang); !m.isError() || !strings.Contains(m.text(), "call_idle_timeout") || m.At.Sub(began) < time.Second || m.At.Sub(began) > 1900*time.Millisecond {
		t.Errorf("after %v: %s", m.At.Sub(began), m.Raw)
	}
	for _, id := range []int{quiet, told} {
		if m := p.wait(id); m.text() != "done" {
			t.Errorf("a busy call: %s", m.Raw)
		}
	}
	if n := len(p.taken("notifications/progress")); n != 4 {
		t.Errorf("the client was told of %d steps", n)
	}
}
