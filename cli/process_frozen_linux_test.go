package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// signalServers sends a signal to all servers of the proxy.
func (p *proxy) signalServers(sig syscall.Signal) {
	p.t.Helper()
	for _, process := range p.processes() {
		if process.is("mcpstub", "stub") {
			if err := syscall.Kill(process.pid, sig); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// freeze stops a process and waits until all of it stands still; a thread on
// another core goes on for a moment after the signal was sent.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitUntil(t, answerTime, "it is stopped", func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("process %d has no threads: %v", pid, err)
		}
		for _, task := range tasks {
			stat, err := os.ReadFile(task)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return true
	})
}

// TestFrozenServer stops a server (SIGSTOP) and lets it go on: calls fail by
// name in their time, and it can be used again (H07, without probes).
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "").with(`"call_tool_timeout":"1s"`)
	p := startProxy(t, configOf(s, newStub(t, "other", "")))
	p.startAll([]string{"s", "other"})
	for _, process := range p.processes() {
		if process.is("mcpstub", "stub") && process.args[2] == s.file {
			freeze(t, process.pid)
		}
	}
	if m := p.tool("s__fast", ""); !m.isError() || !strings.Contains(m.text(), "server s: tools/call: no answer within 1s") {
		t.Errorf("%s", m.Raw)
	}
	if m := p.tool("other__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	// More than its pipe takes: nobody waits for that either.
	if m := p.tool("s__echo", `{"a":"`+strings.Repeat("x", 3<<20)+`"}`); !m.isError() || !strings.Contains(m.text(), "server s: tools/call: no answer within 1s") {
		t.Errorf("%.300s", m.Raw)
	}
	if m := p.tool("other__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	p.signalServers(syscall.SIGCONT)
	// It has to work off what waits for it first.
	awaitUntil(t, answerTime, "it answers again", func() bool {
		m := p.tool("s__fast", "")
		return m.text() == "fast"
	})
	if n := len(s.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// TestFrozenServerIsStopped ends a proxy whose server is stopped (SIGSTOP) and
// takes no notice of anything but the last rung of the ladder.
func TestFrozenServerIsStopped(t *testing.T) {
	t.Parallel()
	p := startProxy(t, privateConfig("", newStub(t, "s", "")))
	p.startAll([]string{"s"})
	p.signalServers(syscall.SIGSTOP)
	p.close()
	assertAllGone(t, p.home(), 0)
}
