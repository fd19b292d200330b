package cli_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// serverState is what list --json says of a server.
type serverState struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Error     string `json:"error"`
	LastError string `json:"last_error"`
}

// statesOf asks the command line how the servers of an instance are.
func statesOf(t *testing.T, dir string) map[string]serverState {
	t.Helper()
	out := runCommand(t, dir, "list", "--json")
	var list struct{ Servers []serverState }
	if err := json.Unmarshal([]byte(out.stdout), &list); err != nil {
		t.Fatalf("list: %v: %s%s", err, out.stdout, out.stderr)
	}
	states := map[string]serverState{}
	for _, s := range list.Servers {
		states[s.Name] = s
	}
	return states
}

// awaitState waits until the command line shows a server in a state.
func awaitState(t *testing.T, dir, server, state string) serverState {
	t.Helper()
	awaitUntil(t, answerTime, server+" is "+state, func() bool { return statesOf(t, dir)[server].State == state })
	return statesOf(t, dir)[server]
}

// hasTool reports whether a tool is listed now.
func (p *proxy) hasTool(name string) bool {
	p.t.Helper()
	_, names := p.list("tools")
	return slices.Contains(names, name)
}

// TestSlowServer has one server that takes longer than lists wait: nobody else
// waits for it, and its tools come later (T01, T04).
func TestSlowServer(t *testing.T) {
	t.Parallel()
	const delay = 6 * time.Second
	slow := newStub(t, "slow", fmt.Sprintf(`"start_delay_ms":%d`, delay.Milliseconds()))
	quick := newStub(t, "quick", "")
	p := startProxy(t, configOf(slow, quick))
	begun := time.Now()
	p.initialize("")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("initialize took %s", took)
	}
	begun = time.Now()
	_, names := p.list("tools")
	if took := time.Since(begun); took > 3*time.Second || took < 2*time.Second {
		t.Errorf("tools/list took %s", took)
	}
	if slices.Contains(names, "slow__fast") {
		t.Errorf("listed: %q", names)
	}
	p.awaitTools("quick__fast")
	// The budget is spent: nobody waits a second time.
	begun = time.Now()
	p.list("tools")
	p.list("prompts")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("two more lists took %s", took)
	}
	// A busy machine may have sent one for the quick server.
	for !p.hasTool("slow__fast") {
		m := p.await("notifications/tools/list_changed")
		if after := m.At.Sub(begun); after > delay+5*time.Second {
			t.Errorf("list_changed came %s later", after)
		}
	}
	if n := len(slow.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// TestListsWaitOnlyForTheUnknown starts a second time with a server that is
// known and now takes long: nothing waits for it and nothing is started.
func TestListsWaitOnlyForTheUnknown(t *testing.T) {
	t.Parallel()
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.awaitTools("a__fast", "b__fast")
	first := p.call("tools/list", "")
	p.close()
	for _, s := range []*upstreamStub{a, b} {
		s.script(`"start_delay_ms":30000`)
	}
	p = startProxyIn(t, p.dir, "")
	begun := time.Now()
	p.initialize("")
	second := p.call("tools/list", "")
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("initialize and tools/list took %s", took)
	}
	if string(first.Result) != string(second.Result) {
		t.Errorf("first %.500s\nthen %.500s", first.Result, second.Result)
	}
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		if m := p.call(method, ""); m.Error != nil {
			t.Errorf("%s: %s", method, m.Raw)
		}
	}
	p.close()
	for _, s := range []*upstreamStub{a, b} {
		if n := len(s.events("start")); n != 1 {
			t.Errorf("%s: %d starts", s.name, n)
		}
	}
}

// TestFailingServers has servers that fail in every way beside a good one; each
// is to blame for itself alone (T02).
func TestFailingServers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	p := startProxy(t, entries("",
		newStub(t, "good", "").entry(),
		`{"name":"missing","command":"no-such-binary"}`,
		newStub(t, "dies", `"exit_at_start":1`).entry(),
		fmt.Sprintf(`{"name":"remote","url":"http://%s/mcp"}`, nobody)))
	p.initialize("")
	begun := time.Now()
	p.list("tools")
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("tools/list took %s", took)
	}
	p.awaitTools("good__fast")
	for name, part := range map[string]string{"missing": "no-such-binary", "dies": "exit status 1", "remote": "connection refused"} {
		p.awaitStderr("server " + name)
		state := awaitState(t, p.dir, name, "unavailable")
		if all := state.Error + state.LastError; !strings.Contains(all, part) {
			t.Errorf("%s: %+v", name, state)
		}
	}
	if state := awaitState(t, p.dir, "good", "ready"); state.Error != "" {
		t.Errorf("good: %+v", state)
	}
}

// TestListNeverAnswered has a server that greets and never says what it has
// (T03).
func TestListNeverAnswered(t *testing.T) {
	t.Parallel()
	mute := newStub(t, "mute", `"methods":{"tools/list":{"never":true}}`).with(`"init_timeout":"2s"`)
	p := startProxy(t, configOf(mute, newStub(t, "good", "")))
	p.initialize("")
	begun := time.Now()
	p.list("tools")
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("tools/list took %s", took)
	}
	p.awaitTools("good__fast")
	state := awaitState(t, p.dir, "mute", "unavailable")
	if all := state.Error + state.LastError; !strings.Contains(all, "tools/list: no answer within 2s (init_timeout)") {
		t.Errorf("%+v", state)
	}
	// What it has can be called all the same.
	if m := p.tool("mute__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
}

// TestOneListFails has servers of which one list cannot be read: the others are
// shown all the same, in time.
func TestOneListFails(t *testing.T) {
	t.Parallel()
	const prompts = `,"prompts":[{"name":"p"}]`
	p := startProxy(t, configOf(
		newStub(t, "refuses", `"methods":{"resources/list":{"error":{"code":-32603,"message":"boom"}}}`+prompts),
		newStub(t, "hangs", `"methods":{"resources/templates/list":{"never":true}}`+prompts)))
	p.initialize("")
	begun := time.Now()
	p.list("tools")
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("tools/list took %s", took)
	}
	p.awaitTools("refuses__fast", "hangs__fast")
	awaitUntil(t, answerTime, "the prompts are listed", func() bool {
		_, names := p.list("prompts")
		return slices.Contains(names, "refuses__p") && slices.Contains(names, "hangs__p")
	})
	awaitUntil(t, answerTime, "somebody says which list failed", func() bool {
		return strings.Contains(p.readerSaid(), "server refuses: resources/list: boom")
	})
	awaitState(t, p.dir, "refuses", "ready")
}

// TestCrashAtStart tells the exit status and what the server said (T08).
func TestCrashAtStart(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(
		newStub(t, "loud", `"exit_at_start":3,"stderr_text":"config missing: X\n"`),
		newStub(t, "mute", `"exit_at_start":4`),
		newStub(t, "flood", `"exit_at_start":5,"stderr_bytes":100000,"stderr_text":"first\n"`)))
	p.initialize("")
	loud := p.tool("loud__t", "")
	for _, part := range []string{"server loud cannot be reached", "exit status 3", "config missing: X"} {
		if !loud.isError() || !strings.Contains(loud.text(), part) {
			t.Errorf("%q is not in %s", part, loud.Raw)
		}
	}
	if m := p.tool("mute__t", ""); !strings.Contains(m.text(), "exit status 4") || !strings.Contains(m.text(), "wrote nothing to stderr") {
		t.Errorf("%s", m.Raw)
	}
	if m := p.tool("flood__t", ""); !strings.Contains(m.text(), "exit status 5") || len(m.text()) > 5000 {
		t.Errorf("%d bytes: %.300s", len(m.text()), m.Raw)
	}
}

// TestCommandNotFound tells what was looked for and where, and is not tried
// again and again (T09).
func TestCommandNotFound(t *testing.T) {
	t.Parallel()
	p := startProxy(t, entries("", `{"name":"s","command":"npxx","args":["-y","server"]}`))
	p.initialize("")
	p.list("tools")
	for range 3 {
		m := p.tool("s__t", "")
		if !m.isError() || !strings.Contains(m.text(), "npxx") || !strings.Contains(m.text(), "PATH") {
			t.Errorf("%s", m.Raw)
		}
	}
	// It is said once.
	p.close()
	if n := strings.Count(p.stderrText(), "npxx"); n != 1 {
		t.Errorf("%d lines: %s", n, p.stderrText())
	}
}

// TestStrictServer refuses all that comes before notifications/initialized
// (T10).
func TestStrictServer(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"strict":true`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.awaitTools("s__fast")
	for range 3 {
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("%s", m.Raw)
		}
		p.tool("s__exit", "")
	}
	if n := len(s.events("start")); n != 3 {
		t.Errorf("%d starts", n)
	}
}

// TestCallTimeout has a call that is never answered and one that is answered
// too late (C08).
func TestCallTimeout(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "").with(`"call_tool_timeout":"2s"`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.tool("s__fast", "")
	begun := time.Now()
	hang := p.startTool("s__hang", "")
	late := p.startTool("s__slow", `{"ms":3000,"ignore_cancel":true}`)
	for _, id := range []int{hang, late} {
		m := p.wait(id)
		if took := m.At.Sub(begun); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("answered after %s", took)
		}
		if !m.isError() || !strings.Contains(m.text(), "server s") || !strings.Contains(m.text(), "no answer within 2s (call_tool_timeout)") {
			t.Errorf("%s", m.Raw)
		}
	}
	s.awaitMessage("notifications/cancelled")
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("afterwards: %s", m.Raw)
	}
	// The late answer comes in the meantime, and the client never sees it.
	if m := p.tool("s__slow", `{"ms":1500}`); m.text() != "slow" {
		t.Errorf("afterwards: %s", m.Raw)
	}
	if more, err := p.take(0, func(message) bool { return true }); err == nil {
		t.Errorf("also came: %s", more.Raw)
	}
	if n := len(s.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// TestCallsWaitForTheStart begins fifty calls at once, to a server that nobody
// has started and that takes a while: all wait, and it is started once.
func TestCallsWaitForTheStart(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"start_delay_ms":4000`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	var ids []int
	for range 50 {
		ids = append(ids, p.startTool("s__inc", ""))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		m := p.wait(id)
		if m.isError() || m.Error != nil {
			t.Fatalf("%s", m.Raw)
		}
		seen[m.text()] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d different answers", len(seen))
	}
	if n := len(s.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// TestInitializeNeverWaits has ten servers of which none ever answers.
func TestInitializeNeverWaits(t *testing.T) {
	t.Parallel()
	var stubs []*upstreamStub
	for i := range 10 {
		stubs = append(stubs, newStub(t, fmt.Sprintf("s%d", i), `"methods":{"initialize":{"never":true}}`))
	}
	p := startProxy(t, configOf(stubs...))
	begun := time.Now()
	p.initialize("")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("initialize took %s", took)
	}
	begun = time.Now()
	id := p.start("tools/list", "")
	if m := p.call("ping", ""); m.Error != nil || m.At.Sub(begun) > time.Second {
		t.Errorf("ping took %s: %s", m.At.Sub(begun), m.Raw)
	}
	if m := p.wait(id); m.Error != nil || m.At.Sub(begun) > 3*time.Second {
		t.Errorf("tools/list took %s: %s", m.At.Sub(begun), m.Raw)
	}
}
