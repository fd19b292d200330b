//go:build linux || darwin

package hub

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
)

// TestHelloChanged restarts a server that then answers initialize with something
// else: each of its sessions is told once, before it hears of lists, and nobody is
// told of an answer that is the same.
func TestHelloChanged(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "s", `"instructions":"first","capabilities":{"tools":{}}`)
	a, b := o.session(s.entry()), o.session(s.entry())
	restart := func() {
		t.Helper()
		pid := pidOf(t, a)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		soon(t, "its end is noticed", func() bool { return o.report().Servers[0].PID == 0 })
		a.tool("fast", `{}`)
	}
	a.call("tools/list", `{}`)
	restart()
	s.Write(`"instructions":"second","prompts":[{"name":"p"}]`)
	restart()
	for _, v := range []*visitor{a, b} {
		soon(t, "a session is told", func() bool { return len(v.heard(upstream.MethodHello)) > 0 })
		soon(t, "a session hears of prompts", func() bool { return len(v.heard("notifications/prompts/list_changed")) > 0 })
		v.mu.Lock()
		first := v.told[0]
		v.mu.Unlock()
		if first.Method != upstream.MethodHello || member(first.Params, "instructions") != "second" {
			t.Errorf("a session heard first of %s", first.Raw)
		}
		if n := len(v.heard(upstream.MethodHello)); n != 1 {
			t.Errorf("a session was told %d times", n)
		}
	}
	// What the server says of itself under that name is no word of the hub.
	a.tool("notify", `{"method":"`+upstream.MethodHello+`","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	var opened upstream.OpenResult
	if err := json.Unmarshal(o.visit().open(s.entry()), &opened); err != nil {
		t.Fatal(err)
	}
	if member(opened.Initialize, "instructions") != "second" {
		t.Errorf("a new session got %s", opened.Initialize)
	}
	if n := len(a.heard(upstream.MethodHello)); n != 1 {
		t.Errorf("a session was told %d times", n)
	}
}
