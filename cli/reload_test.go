//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sharings are the two settings under which most things have to hold.
func sharings() map[string]func(members string, stubs ...*upstreamStub) string {
	return map[string]func(string, ...*upstreamStub) string{"private": privateConfig, "shared": sharedConfig}
}

// save writes the configuration of the instances in a folder as editors do, by
// renaming a new file over the old one.
func save(t *testing.T, dir, config string) {
	t.Helper()
	file := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(file+".new", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// pidOf is the process that answers the calls to a server.
func (p *proxy) pidOf(server string) string {
	p.t.Helper()
	m := p.tool(server+"__pid", `{}`)
	if m.isError() || m.Error != nil {
		p.t.Fatalf("%s__pid: %s", server, m.Raw)
	}
	return m.text()
}

// TestReload edits the configuration under two instances that run: only what
// changed restarts, a broken file changes nothing, what is added is there in
// under three seconds, and what is taken away ends.
func TestReload(t *testing.T) {
	t.Parallel()
	for name, configure := range sharings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := sharedFolder(t)
			a, b, c := newStub(t, "a", ""), newStub(t, "b", ""), newStub(t, "c", "")
			instances := startInstances(t, 2, dir, configure("", a, b, c))
			pids := func() (all []string) {
				for _, p := range instances {
					all = append(all, p.pidOf("a"), p.pidOf("b"), p.pidOf("c"))
				}
				return all
			}
			first := pids()
			for _, p := range instances {
				p.awaitTools("a__fast", "b__fast", "c__fast")
			}

			// A broken edit takes nothing down and is said once.
			save(t, dir, "{")
			for _, p := range instances {
				p.awaitStderr("mcp_config.json")
			}
			if now := pids(); !slices.Equal(now, first) {
				t.Errorf("after a broken edit the processes are %v, were %v", now, first)
			}

			// A default, a timeout and an alias change nobody's process.
			save(t, dir, configure(`"health_check_interval":"1m","call_tool_timeout":"5m",`, a, b, c.with(`"tags":["x"]`)))
			d := newStub(t, "d", "")
			time.Sleep(time.Second) // so that this is a reload of its own
			if now := pids(); !slices.Equal(now, first) {
				t.Errorf("after a change of intervals the processes are %v, were %v", now, first)
			}

			// One server's entry changes, one is disabled, one is new.
			begun := time.Now()
			save(t, dir, configure("", a.with(`"env":{"MARK":"new"}`), b, c.with(`"enabled":false`), d))
			for _, p := range instances {
				p.await("notifications/tools/list_changed")
				p.awaitTools("d__fast")
				if took := time.Since(begun); took > 3*time.Second {
					t.Errorf("the new server was there after %s", took)
				}
				if got := p.tool("a__env", `{}`).text(); !strings.Contains(got, `"MARK":"new"`) {
					t.Errorf("a has not the new variable: %s", got)
				}
				if got := p.pidOf("b"); !slices.Contains(first, got) {
					t.Errorf("b was restarted for nothing")
				}
				if m := p.tool("c__fast", `{}`); !strings.Contains(string(m.Raw), "disabled") {
					t.Errorf("a call to a disabled server gave %s", m.Raw)
				}
				if _, listed := p.list("tools"); slices.ContainsFunc(listed, func(n string) bool { return strings.HasPrefix(n, "c__") }) {
					t.Errorf("tools of a disabled server are listed")
				}
			}
			live := 3 // a, b, d
			if name == "private" {
				live = 5 // d was only listed, by one of them or both
			}
			awaitUntil(t, endOfAll, "the old processes are gone", func() bool {
				n := countOf(t, home, "mcpstub", "stub")
				return n == live || name == "private" && n == live+1
			})
			for _, p := range instances {
				if n := strings.Count(p.stderrText(), "mcp_config.json"); n != 1 {
					t.Errorf("%d warnings for one broken edit: %s", n, p.stderrText())
				}
				p.close()
			}
			assertAllGone(t, home, hubIdle+endOfAll)
		})
	}
}

// TestReloadOnce saves in every way there is; each takes effect once.
func TestReloadOnce(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	p := startInstances(t, 1, dir, privateConfig("", s))[0]
	p.tool("s__fast", `{}`)
	file := filepath.Join(dir, "mcp_config.json")
	marked := func(n int) string { return privateConfig("", s.with(fmt.Sprintf(`"env":{"MARK":"%d"}`, n))) }
	starts := len(s.events("start"))
	for i, write := range []func(text string){
		func(text string) { save(t, dir, text) },
		func(text string) {
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, half := range []string{text[:len(text)/2], text[len(text)/2:]} {
				if _, err := f.WriteString(half); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
		func(text string) {
			for n := range 4 {
				save(t, dir, strings.Replace(text, `"MARK":"`, fmt.Sprintf(`"MARK":"draft%d-`, n), 1))
				time.Sleep(40 * time.Millisecond)
			}
			save(t, dir, text)
		},
	} {
		write(marked(i))
		want := fmt.Sprintf(`"MARK":"%d"`, i)
		awaitUntil(t, answerTime, "the change is in effect", func() bool {
			return strings.Contains(p.tool("s__env", `{}`).text(), want)
		})
		starts++
		if n := len(s.events("start")); n != starts {
			t.Errorf("way %d: the server was started %d times, want %d", i, n, starts)
		}
	}
	for line := range strings.Lines(p.stderrText()) {
		if !strings.Contains(line, "server s: its environment, headers or settings of the connection have changed") {
			t.Errorf("stderr: %s", line)
		}
	}
	p.close()
	assertAllGone(t, home, endOfAll)
}
