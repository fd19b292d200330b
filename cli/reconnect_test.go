package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBackoff has a remote that is down: the attempts become rarer (H01).
func TestBackoff(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.script(func(string) int { return http.StatusServiceUnavailable })
	p := startProxy(t, entries("", r.entry("r", "")))
	p.initialize("")
	p.list("tools")
	awaitUntil(t, 3*answerTime, "four attempts", func() bool { return len(r.requests("initialize")) >= 4 })
	attempts := r.requests("initialize")
	for i := 2; i < 4; i++ {
		before, gap := attempts[i-1].at.Sub(attempts[i-2].at), attempts[i].at.Sub(attempts[i-1].at)
		if gap < before*3/2 {
			t.Errorf("attempt %d came %s after the one before, that one %s", i+1, gap, before)
		}
	}
	// Lists do not make it quicker.
	before := len(r.requests("initialize"))
	for range 20 {
		p.list("tools")
	}
	if n := len(r.requests("initialize")); n > before+1 {
		t.Errorf("%d attempts after %d", n, before)
	}
}

// TestNoLoginLoop has a remote that wants a login: it is asked once, and then
// only when somebody needs it (H01).
func TestNoLoginLoop(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.script(func(string) int { return http.StatusUnauthorized })
	p := startProxy(t, entries("", r.entry("r", "")))
	p.initialize("")
	p.list("tools")
	awaitState(t, p.dir, "r", "needs_login")
	if m := p.tool("r__t", ""); !m.isError() || !strings.Contains(m.text(), "server r") || !strings.Contains(m.text(), "needs_login") || !strings.Contains(m.text(), "401") {
		t.Errorf("%s", m.Raw)
	}
	time.Sleep(4 * time.Second) // in which the first retries of a server that is down would come
	if n := len(r.requests("initialize")); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

// TestBackInTime calls a server that failed before and is there again: the
// call does not wait for the backoff (H03).
func TestBackInTime(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.script(func(string) int { return http.StatusServiceUnavailable })
	s := newStub(t, "s", `"exit_at_start":1`)
	p := startProxy(t, entries("", r.entry("r", ""), s.entry()))
	p.initialize("")
	p.list("tools")
	// After three failures the next attempt by itself is four seconds away.
	awaitUntil(t, answerTime, "three attempts each", func() bool {
		return len(r.requests("initialize")) >= 3 && len(s.events("start")) >= 3
	})
	time.Sleep(600 * time.Millisecond) // an attempt as short ago as this tells enough
	r.script(nil)
	s.script("")
	for _, name := range []string{"r__t", "s__fast"} {
		begun := time.Now()
		if m := p.tool(name, ""); m.isError() || m.Error != nil || m.At.Sub(begun) > 2*time.Second {
			t.Errorf("%s after %s: %s", name, m.At.Sub(begun), m.Raw)
		}
	}
	p.awaitTools("r__t", "s__fast")
}

// TestForgottenSession has a remote that forgets its sessions (H04).
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	p := startProxy(t, entries("", r.entry("r", "")))
	p.initialize("")
	p.list("tools")
	for i, want := range []string{"call 1", "call 2", "call 3", "call 4"} {
		if m := p.tool("r__t", ""); m.text() != want {
			t.Errorf("%s", m.Raw)
		}
		if n := len(r.requests("initialize")); n != i+1 {
			t.Errorf("%d handshakes after %s", n, want)
		}
		r.forget()
	}
	// It goes on forgetting: each call is tried twice and not more.
	r.script(func(method string) int {
		if method == "tools/call" {
			return http.StatusNotFound
		}
		return 0
	})
	before := len(r.requests("tools/call"))
	if m := p.tool("r__t", ""); !m.isError() || !strings.Contains(m.text(), "server r") {
		t.Errorf("%s", m.Raw)
	}
	if n := len(r.requests("tools/call")) - before; n != 2 {
		t.Errorf("tried %d times", n)
	}
	r.script(nil)
	if m := p.tool("r__t", ""); m.text() != "call 5" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}

// TestExitAfterEveryAnswer has a server that serves one call and ends (H05).
func TestExitAfterEveryAnswer(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"calls":{"fast":{"then_exit":0}}`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	for i := range 5 {
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("call %d: %s", i+1, m.Raw)
		}
	}
	// One may have served two that came close together.
	if n := len(s.events("start")); n < 2 || n > 5 {
		t.Errorf("%d starts", n)
	}
	if state := awaitState(t, p.dir, "s", "idle"); state.LastError != "" && state.State != "idle" {
		t.Errorf("%+v", state)
	}
	p.awaitTools("s__fast")
	if text := p.stderrText(); text != "" {
		t.Errorf("stderr: %s", text)
	}
}

// TestOneFailure has a remote that fails once (H08).
func TestOneFailure(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	p := startProxy(t, entries("", r.entry("r", "")))
	p.initialize("")
	p.list("tools")
	failures := 1
	r.script(func(method string) int {
		if method == "tools/call" && failures > 0 {
			failures--
			return http.StatusInternalServerError
		}
		return 0
	})
	if m := p.tool("r__t", ""); !m.isError() || !strings.Contains(m.text(), "server r") || !strings.Contains(m.text(), "500") {
		t.Errorf("%s", m.Raw)
	}
	if m := p.tool("r__t", ""); m.text() != "call 1" {
		t.Errorf("afterwards: %s", m.Raw)
	}
	if n := len(r.requests("initialize")); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

// TestDisabledServer is not started by anything (H09, as far as it goes without
// reloading the configuration).
func TestDisabledServer(t *testing.T) {
	t.Parallel()
	s, other := newStub(t, "s", ""), newStub(t, "other", "")
	p := startProxy(t, configOf(s, other))
	p.initialize("")
	p.awaitTools("s__fast", "other__fast")
	p.close()
	if out := runCommand(t, p.dir, "disable", "s"); out.code != 0 {
		t.Fatalf("disable: %s", out.stderr)
	}
	p = startProxyIn(t, p.dir, "")
	p.initialize("")
	_, names := p.list("tools")
	if slices.Contains(names, "s__fast") || !slices.Contains(names, "other__fast") {
		t.Errorf("listed: %q", names)
	}
	if m := p.tool("s__fast", ""); !m.isError() || !strings.Contains(m.text(), "server s is disabled") {
		t.Errorf("%s", m.Raw)
	}
	if n := len(s.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
}
