//go:build linux || darwin

package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
)

// TestSession goes once through what a session can do.
func TestSession(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "one", `"instructions":"be kind","tools":[{"name":"odd","inputSchema":{"type":"object"},"x":1.0}],
		"resources":[{"uri":"r:1","name":"r"}],"prompts":[{"name":"p"}]`)
	v := o.visit()
	v.fail("tools/list", `{}`, "before hub/open")
	v.fail(upstream.MethodOpen, `{}`, "the entry of a server is missing")
	var opened upstream.OpenResult
	if err := json.Unmarshal(v.open(s.entry()), &opened); err != nil {
		t.Fatal(err)
	}
	if opened.Hub != o.id || member(opened.Initialize, "instructions") != "be kind" {
		t.Errorf("opened %+v", opened)
	}
	if pid := v.tool("pid", `{}`); pid != fmt.Sprint(opened.PID) {
		t.Errorf("the server says it is %s, the hub says %d", pid, opened.PID)
	}
	v.fail(upstream.MethodOpen, v.opening(s.entry()), "for one session")
	v.fail("initialize", `{}`, "the session was begun")
	v.fail("odd/method", `{}`, "method not found")
	if got := string(v.call("tools/list", `{}`)); got != `{"tools":[{"name":"odd","inputSchema":{"type":"object"},"x":1.0}]}` {
		t.Errorf("tools: %s", got)
	}
	if got := string(v.call("resources/list", ``)); got != `{"resources":[{"uri":"r:1","name":"r"}]}` {
		t.Errorf("resources: %s", got)
	}
	if got := string(v.call("resources/templates/list", `{}`)); got != `{"resourceTemplates":[]}` {
		t.Errorf("templates: %s", got)
	}
	if got := string(v.call("prompts/list", `{}`)); got != `{"prompts":[{"name":"p"}]}` {
		t.Errorf("prompts: %s", got)
	}
	if got := string(v.call("ping", `{}`)); got != `{}` {
		t.Errorf("ping: %s", got)
	}
	if got := v.tool("echo", `{"n":9007199254740993}`); got != `{"name":"echo","arguments":{"n":9007199254740993}}` {
		t.Errorf("echo: %s", got)
	}
	r := o.report()
	want := Report{
		ID: o.id, PID: r.PID, Build: testBuild, Since: r.Since,
		Clients: []ClientReport{{Instance: "instance", Name: "tester", Servers: []string{"one"}}},
		Servers: []ServerReport{{Name: "one", PID: opened.PID, Users: 1}},
	}
	if got, want := fmt.Sprint(r), fmt.Sprint(want); got != want {
		t.Errorf("the hub reports %s, want %s", got, want)
	}
}

// TestUnstartable tells why a server cannot be started, and whether it is worth
// trying again.
func TestUnstartable(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "bad", `"exit_at_start":3,"stderr_text":"no key\n"`)
	v := o.visit()
	v.fail(upstream.MethodOpen, v.opening(s.entry()), "no key")
	id := v.send(upstream.MethodOpen, v.opening(s.entry()))
	v.receive(id)
	if got := string(wire.Member(v.answers[id].Error, "data", "permanent")); got != "false" {
		t.Errorf("permanent: %s", got)
	}
}

// TestApart has two sessions share a process, with equal ids and tokens, and
// cancels the call of one.
func TestApart(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "shared", "")
	a, b := o.session(s.entry()), o.session(s.entry())
	if a.tool("pid", `{}`) != b.tool("pid", `{}`) {
		t.Fatal("equal entries do not share a process")
	}
	for i, v := range []*visitor{a, b} {
		v.write([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"progress","arguments":{"n":2,"interval_ms":100,"who":%d},"_meta":{"progressToken":"token"}}}`, i)))
	}
	for i, v := range []*visitor{a, b} {
		if _, failure := v.receive(`"same"`); failure != "" {
			t.Errorf("session %d: %s", i, failure)
		}
		var steps []string
		for _, m := range v.heard("notifications/progress") {
			steps = append(steps, member(m.Params, "progressToken")+" "+string(wire.Member(m.Params, "progress")))
		}
		if want := []string{"token 1", "token 2"}; !slices.Equal(steps, want) {
			t.Errorf("session %d heard of %q, want %q", i, steps, want)
		}
	}

	slow := a.send("tools/call", `{"name":"slow","arguments":{"ms":60000}}`)
	other := b.send("tools/call", `{"name":"slow","arguments":{"ms":300}}`)
	s.await("recv", `"ms":300`)
	a.notify("notifications/cancelled", `{"requestId":`+slow+`,"reason":"enough"}`)
	s.await("recv", `"reason":"enough"`)
	if _, failure := b.receive(other); failure != "" {
		t.Errorf("the other call: %s", failure)
	}
	if n := len(s.events("cancelled")); n != 1 {
		t.Errorf("%d calls were cancelled", n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer, there := a.answers[slow]; there {
		t.Errorf("the cancelled call was answered: %s", answer.Raw)
	}
}

// TestQuestions takes what a server asks to the session with a call under way,
// and to nobody where there are several, also after one has given up.
func TestQuestions(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "curious", "")
	a, b := o.session(s.entry()), o.session(s.entry())

	id := a.send("tools/call", `{"name":"sample","arguments":{}}`)
	soon(t, "a is asked", func() bool { return len(a.heard("sampling/createMessage")) == 1 })
	question := a.heard("sampling/createMessage")[0]
	a.write(wire.Response(question.ID, json.RawMessage(`{"role":"assistant","by":"a"}`)))
	if result, failure := a.receive(id); !strings.Contains(text(result), `"by":"a"`) {
		t.Errorf("sampling: %s %s", result, failure)
	}

	hanging := b.send("tools/call", `{"name":"hang","arguments":{}}`)
	s.await("recv", `"hang"`)
	refused := func(when string) {
		t.Helper()
		if got := a.tool("sample", `{}`); !strings.Contains(got, "no single client to ask") {
			t.Errorf("%s: %s", when, got)
		}
	}
	refused("both have a call under way")
	b.notify("notifications/cancelled", `{"requestId":`+hanging+`}`)
	s.await("cancelled", "")
	refused("one has given up its call")
	b.leave()
	soon(t, "b has left", func() bool { return o.report().Servers[0].Users == 1 })
	refused("one has left")
	if n := len(b.heard("sampling/createMessage")); n != 0 {
		t.Errorf("the other session was asked %d times", n)
	}

	plain := s.entry()
	plain.Announced = json.RawMessage(`{}`)
	c := o.session(plain)
	if got := c.tool("sample", `{}`); !strings.Contains(got, "did not announce") {
		t.Errorf("a client that cannot sample: %s", got)
	}
	if c.tool("pid", `{}`) == a.tool("pid", `{}`) {
		t.Error("clients of different abilities share a process")
	}
}

// TestSecretsNeverShare starts one process for each secret.
func TestSecretsNeverShare(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "secret", "")
	a, b, c := o.session(s.entry("KEY=one")), o.session(s.entry("KEY=two")), o.session(s.entry("KEY=one"))
	for v, want := range map[*visitor]string{a: "one", b: "two", c: "one"} {
		if got := v.tool("env", `{}`); !strings.Contains(got, `"KEY":"`+want+`"`) {
			t.Errorf("the environment is %s, want KEY=%s", got, want)
		}
	}
	if a.tool("pid", `{}`) == b.tool("pid", `{}`) || a.tool("pid", `{}`) != c.tool("pid", `{}`) {
		t.Error("the wrong sessions share a process")
	}
}

// TestListChanged tells each session once, and shows the new list.
func TestListChanged(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "changing", "")
	a, b := o.session(s.entry()), o.session(s.entry())
	stranger := o.session(newScript(t, "other", "").entry())
	const changed = "notifications/tools/list_changed"
	for _, v := range []*visitor{a, b, stranger} {
		v.call("tools/list", `{}`)
	}
	for round, tool := range []string{"fast", "slow"} {
		a.tool("droptool", `{"name":"`+tool+`"}`)
		for _, v := range []*visitor{a, b} {
			soon(t, "a session is told", func() bool { return len(v.heard(changed)) > round })
			if list := string(v.call("tools/list", `{}`)); strings.Contains(list, `"name":"`+tool+`"`) {
				t.Errorf("the list still has %s", tool)
			}
		}
	}
	for _, v := range []*visitor{a, b} {
		if n := len(v.heard(changed)); n != 2 {
			t.Errorf("a session was told %d times of two changes", n)
		}
	}
	if n := len(stranger.heard(changed)); n != 0 {
		t.Errorf("a session with another server was told %d times", n)
	}
}

// TestLogLevels keeps the levels of sessions apart, and asks the server for what
// the most curious wants.
func TestLogLevels(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "talking", "")
	a, b := o.session(s.entry()), o.session(s.entry())
	a.fail("logging/setLevel", `{"level":"loud"}`, "is none of")
	a.call("logging/setLevel", `{"level":"error"}`)
	s.await("recv", `"level":"info"`) // b has not said that it wants less
	b.call("logging/setLevel", `{"level":"warning"}`)
	s.await("recv", `"level":"warning"`)
	for _, v := range []*visitor{a, b} {
		v.tool("log", `{"level":"warning"}`)
	}
	soon(t, "b hears a warning", func() bool { return len(b.heard("notifications/message")) == 1 })
	if n := len(a.heard("notifications/message")); n != 0 {
		t.Errorf("a, who wants errors, heard %d warnings", n)
	}
	b.leave()
	soon(t, "the server is asked for errors", func() bool {
		var levels []string
		for _, line := range s.events("recv") {
			if level := member(json.RawMessage(line), "params", "level"); strings.Contains(line, "logging/setLevel") {
				levels = append(levels, level)
			}
		}
		return slices.Equal(levels, []string{"info", "warning", "error"})
	})
}

// TestSubscriptions keeps the subscription of a server as long as a session
// wants it.
func TestSubscriptions(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "watched", "")
	a, b := o.session(s.entry()), o.session(s.entry())
	const updated = "notifications/resources/updated"
	a.fail("resources/subscribe", `{}`, `"uri" is missing`)
	a.call("resources/subscribe", `{"uri":"r:1"}`)
	b.call("resources/subscribe", `{"uri":"r:1"}`)
	a.call("resources/unsubscribe", `{"uri":"r:1"}`)
	a.tool("update", `{"uri":"r:1"}`)
	soon(t, "b is told", func() bool { return len(b.heard(updated)) == 1 })
	if n := len(a.heard(updated)); n != 0 {
		t.Errorf("a was told %d times", n)
	}
	if n := len(s.events("subscribe")); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
	if n := len(s.events("unsubscribe")); n != 0 {
		t.Errorf("the server was told %d times that it is over", n)
	}
	b.leave()
	s.await("unsubscribe", "r:1")
}

// TestLeavingCancels gives up the calls of a session that has ended, on both
// paths that a call can take.
func TestLeavingCancels(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "busy", `"methods":{"custom/wait":{"never":true}}`)
	for _, call := range [][2]string{
		{"tools/call", `{"name":"slow","arguments":{"ms":50000}}`},
		{"custom/wait", `{"ms":50000}`}, // not started, but handled
	} {
		heard, before := strings.Count(strings.Join(s.events("recv"), ""), "50000"), len(s.events("cancelled"))
		v := o.session(s.entry())
		v.send(call[0], call[1])
		soon(t, "the server has the call", func() bool { return strings.Count(strings.Join(s.events("recv"), ""), "50000") == heard+1 })
		v.leave()
		soon(t, "the server is told", func() bool { return len(s.events("cancelled")) == before+1 })
	}
}

// TestAdjust changes how often a server is probed while a session is open.
func TestAdjust(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "probed", "")
	v := o.session(s.entry())
	if n := strings.Count(strings.Join(s.events("recv"), ""), `"ping"`); n != 0 {
		t.Fatalf("%d probes without an interval", n)
	}
	raw, err := json.Marshal(upstream.Times{InitTimeout: eventually, HealthCheckInterval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	v.notify(upstream.MethodAdjust, string(raw))
	soon(t, "the server is probed", func() bool { return strings.Contains(strings.Join(s.events("recv"), ""), `"ping"`) })
}

// TestAdjustWhileOpening keeps what is said of the times before the session has
// begun.
func TestAdjustWhileOpening(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "slow", `"start_delay_ms":700`)
	v := o.visit()
	raw, err := json.Marshal(upstream.Times{InitTimeout: eventually, HealthCheckInterval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	id := v.send(upstream.MethodOpen, v.opening(s.entry()))
	v.notify(upstream.MethodAdjust, string(raw))
	if _, failure := v.receive(id); failure != "" {
		t.Fatal(failure)
	}
	soon(t, "the server is probed", func() bool { return strings.Contains(strings.Join(s.events("recv"), ""), `"ping"`) })
}

// TestDied leaves it to the session whether a call is made again during which
// the server died, whatever the server says of its tool: on both paths that a
// call can take.
func TestDied(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "frail", `"tools":[{"name":"die","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],
		"calls":{"die":{"exit":1}}`)
	v := o.session(s.entry())
	v.call("tools/list", `{}`)
	for _, path := range []string{"started", "handled, since the server does not run"} {
		before := strings.Count(strings.Join(s.events("recv"), ""), `"die"`)
		id := v.send("tools/call", `{"name":"die","arguments":{}}`)
		_, failure := v.receive(id)
		data := wire.Member(v.answers[id].Error, "data")
		if !strings.Contains(failure, "server frail ended during tools/call") || strings.Contains(failure, s.Name+"-") || string(wire.Member(data, "hub")) != "true" || string(wire.Member(data, "died")) != "true" {
			t.Errorf("%s: got %q with %s", path, failure, data)
		}
		if n := strings.Count(strings.Join(s.events("recv"), ""), `"die"`) - before; n != 1 {
			t.Errorf("%s: the server was called %d times", path, n)
		}
	}
}

// TestUnreadList tells by the server's name which list there is not, and why, as
// an error of the hub. It asks the server again after a while, and tells sessions
// when it has the list, also where that is the first that it could read.
func TestUnreadList(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "secretive", `"methods":{"tools/list":{"times":2,"error":{"code":-32603,"message":"no entry for TOKEN-1"}},
		"prompts/list":{"error":{"code":-32603,"message":"never"}},"resources/list":{"error":{"code":-32603,"message":"never"}},
		"resources/templates/list":{"error":{"code":-32603,"message":"never"}}}`)
	entry := s.entry()
	entry.Secrets = []string{"TOKEN-1"}
	v := o.session(entry)
	id := v.send("tools/list", `{}`)
	_, failure := v.receive(id)
	if !strings.Contains(failure, "server secretive: tools/list could not be read: no entry for ***") {
		t.Errorf("got %q", failure)
	}
	if data := wire.Member(v.answers[id].Error, "data"); string(data) != `{"hub":true}` {
		t.Errorf("its data is %s", data)
	}
	const changed = "notifications/tools/list_changed"
	soon(t, "the session is told of the list", func() bool { return len(v.heard(changed)) > 0 })
	if list := string(v.call("tools/list", `{}`)); !strings.Contains(list, `"echo"`) {
		t.Errorf("the list is %s", list)
	}
	if n := len(v.heard(changed)); n != 1 {
		t.Errorf("the session was told %d times", n)
	}
}

// TestChangedByRestart tells sessions of the list of a server that died while
// nobody used it and has other tools when it is back, also after the hub has
// looked into the store meanwhile.
func TestChangedByRestart(t *testing.T) {
	dir := t.TempDir()
	o := newOffice(t, dir, time.Minute, nil)
	other := openStore(t, dir, nil)
	s, beacon := newScript(t, "updated", tools("old")), newScript(t, "beacon", "")
	v := o.session(s.entry())
	o.session(beacon.entry()) // looked at after the other
	if list := string(v.call("tools/list", `{}`)); !strings.Contains(list, `"old"`) {
		t.Fatalf("the list is %s", list)
	}
	pid := pidOf(t, v)
	soon(t, "both lists are stored", func() bool {
		rows, err := other.Servers(t.Context())
		return err == nil && len(rows) == 2 && !rows[0].ListedAt.IsZero() && !rows[1].ListedAt.IsZero()
	})
	s.Write(tools("new"))
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "its end is recorded", func() bool {
		processes, err := other.Processes(t.Context())
		return err == nil && len(processes) == 1
	})
	started := len(beacon.events("start"))
	if err := other.RequestRestart(t.Context(), "beacon", time.Now()); err != nil {
		t.Fatal(err)
	}
	soon(t, "the hub has looked into the store", func() bool { return len(beacon.events("start")) > started })

	const changed = "notifications/tools/list_changed"
	if n := len(v.heard(changed)); n != 0 {
		t.Errorf("the session was told %d times before the server was back", n)
	}
	v.tool("pid", `{}`)
	soon(t, "the session is told", func() bool { return len(v.heard(changed)) > 0 })
	if list := string(v.call("tools/list", `{}`)); !strings.Contains(list, `"new"`) || strings.Contains(list, `"old"`) {
		t.Errorf("the list is %s", list)
	}
	v.tool("pid", `{}`)
	if n := len(v.heard(changed)); n != 1 {
		t.Errorf("the session was told %d times", n)
	}
}

// tools are the members of a scenario with one tool.
func tools(name string) string {
	return fmt.Sprintf(`"tools":[{"name":%q,"inputSchema":{"type":"object"}}]`, name)
}

// TestDeafClient has a session that does not read its answers harm nobody else.
func TestDeafClient(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "generous", "")
	conn, err := Connect(t.Context(), o.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	deaf := &visitor{t: t, conn: conn}
	deaf.send(upstream.MethodOpen, deaf.opening(s.entry()))
	if _, err := (&question{conn: conn}).answer(t.Context(), eventually); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		deaf.send("tools/call", `{"name":"big","arguments":{"bytes":1000000}}`)
	}
	v := o.session(s.entry())
	soon(t, "the server has the calls", func() bool { return strings.Count(strings.Join(s.events("recv"), ""), "1000000") == 5 })
	for i := range 20 {
		if got := v.tool("echo", `{"i":`+strconv.Itoa(i)+`}`); !strings.Contains(got, strconv.Itoa(i)) {
			t.Errorf("echo %d: %s", i, got)
		}
	}
}
