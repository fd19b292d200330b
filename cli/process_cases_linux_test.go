package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/testdata/stub"
)

// TestExitInSession calls a tool that ends its server: that call fails, the
// next ones start it again, and what is listed stays (P10).
func TestExitInSession(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.awaitTools("s__fast")
	_, before := p.list("tools")
	if m := p.tool("s__exit", `{"code":7}`); !m.isError() || !strings.Contains(m.text(), "server s ended during tools/call") || !strings.Contains(m.text(), "exit status 7") {
		t.Errorf("the call that hit the exit: %s", m.Raw)
	}
	for range 2 {
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("after the exit: %s", m.Raw)
		}
	}
	if _, after := p.list("tools"); !slices.Equal(before, after) {
		t.Errorf("tools %q after %q", after, before)
	}
	if n := p.count("mcpstub", "stub"); n != 1 {
		t.Errorf("%d servers run", n)
	}
	if n := len(s.events("start")); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// TestCommandsLeaveNothing runs the commands that read, which start nothing,
// and those that ask a server, which start it once; none leaves a process
// behind (P13).
func TestCommandsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, privateConfig("", s))
	p.initialize("")
	p.tool("s__fast", "")
	p.close()
	for _, test := range []struct {
		args   []string
		starts int
	}{
		{[]string{"status"}, 0},
		{[]string{"list"}, 0},
		{[]string{"get", "s"}, 0},
		{[]string{"logs", "s"}, 0},
		{[]string{"version"}, 0},
		{[]string{"tools", "list"}, 0},
		{[]string{"tools", "show", "s__fast"}, 0},
		{[]string{"tools", "call", "s__fast"}, 1},
		{[]string{"list", "--check"}, 1},
	} {
		before := len(s.events("start"))
		out := runCommand(t, p.dir, test.args...)
		if out.code != 0 {
			t.Errorf("%q: exit code %d: %s", test.args, out.code, out.stderr)
		}
		assertAllGone(t, p.home(), 0)
		if n := len(s.events("start")) - before; n != test.starts {
			t.Errorf("%q: %d starts, want %d", test.args, n, test.starts)
		}
	}
}

// TestSilentServer tries a server that never answers initialize again and
// again: there is never a second process of it (P14).
func TestSilentServer(t *testing.T) {
	t.Parallel()
	p := startProxy(t, entries(`"init_timeout":"1s",`, `{"name":"s","command":"sleep","args":["1000"]}`))
	p.initialize("")
	most, seen := 0, map[int]bool{}
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() {
		for {
			now := 0
			for _, process := range processesOf(t, p.home()) {
				if process.is("sleep", "1000") {
					now++
					seen[process.pid] = true
				}
			}
			most = max(most, now)
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	for range 5 {
		m := p.tool("s__t", "")
		if !m.isError() || !strings.Contains(m.text(), "server s cannot be reached") || !strings.Contains(m.text(), "not connected within 1s (init_timeout)") {
			t.Errorf("call: %s", m.Raw)
		}
		// An attempt as short ago as this tells all there is to know.
		time.Sleep(600 * time.Millisecond)
	}
	close(stop)
	watching.Wait()
	if most != 1 || len(seen) < 5 {
		t.Errorf("at most %d at once, %d in all", most, len(seen))
	}
	p.close()
	assertAllGone(t, p.home(), 0)
}

// TestProxyAsItsOwnServer has an entry that starts the proxy with the very
// configuration it stands in, once openly and once through a wrapper (P15).
func TestProxyAsItsOwnServer(t *testing.T) {
	t.Parallel()
	good := newStub(t, "good", "")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mcp_config.json")
	p := startProxyIn(t, dir, entries("",
		fmt.Sprintf(`{"name":"self","command":"mcpproxy","args":["--mode","direct","--config",%q]}`, file),
		fmt.Sprintf(`{"name":"hidden","command":"sh","args":["-c","mcpproxy --mode direct --config \"$0\"; exit $?",%q]}`, file),
		good.entry()))
	p.initialize("")
	most := 0
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() {
		for {
			now := 0
			for _, process := range processesOf(t, p.home()) {
				if process.is("mcpproxy", "--mode") {
					now++
				}
			}
			most = max(most, now)
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	if m := p.tool("good__fast", ""); m.text() != "fast" {
		t.Errorf("good: %s", m.Raw)
	}
	if m := p.tool("hidden__t", ""); !m.isError() || !strings.Contains(m.text(), "recursion") {
		t.Errorf("hidden: %s", m.Raw)
	}
	if m := p.tool("self__t", ""); !m.isError() || !strings.Contains(m.text(), "it starts mcpproxy with this same configuration") {
		t.Errorf("self: %s", m.Raw)
	}
	close(stop)
	watching.Wait()
	if most > 2 {
		t.Errorf("%d proxies at once", most)
	}
	p.awaitStderr("it starts mcpproxy with this same configuration")
	p.close()
	assertAllGone(t, p.home(), 0)
}

// TestContainerCommand stops something that looks like docker run -i: it has
// to see the end of its stdin first, and a signal only after a while, so that
// the real one can stop its container (P16).
func TestContainerCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, members string }{
		{"leaves at the end of stdin", `"eof_delay_ms":700`},
		{"leaves at SIGTERM", `"ignore_eof":true`},
		{"stays", stubborn},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, "s", test.members)
			docker := filepath.Join(t.TempDir(), "docker")
			if err := os.WriteFile(docker, []byte("#!/bin/sh\nexec mcpstub stub \"$4\"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			p := startProxy(t, entries("", fmt.Sprintf(`{"name":"s","command":%q,"args":["run","-i","--rm",%q]}`, docker, s.file)))
			p.startAll([]string{"s"})
			p.close()
			assertAllGone(t, p.home(), 0)
			eof := s.await(func(e stub.Event) bool { return e.Kind == "eof" })
			signals := s.events("signal")
			switch test.name {
			case "leaves at the end of stdin":
				if len(signals) != 0 || !slices.Equal(s.events("exit"), []string{"0"}) {
					t.Errorf("signals %q, exit %q", signals, s.events("exit"))
				}
			default:
				term := s.await(func(e stub.Event) bool { return e.Kind == "signal" })
				if wait := term.Time.Sub(eof.Time); wait < time.Second || len(signals) != 1 {
					t.Errorf("signals %q, the first %s after the end of stdin", signals, wait)
				}
			}
		})
	}
}

// TestManyInstances starts several instances that know their servers already;
// listing starts none of them (P17).
func TestManyInstances(t *testing.T) {
	t.Parallel()
	var stubs []*upstreamStub
	for i := range 6 {
		stubs = append(stubs, newStub(t, fmt.Sprintf("s%d", i), ""))
	}
	first := startProxy(t, privateConfig("", stubs...))
	first.initialize("")
	for _, s := range stubs {
		first.awaitTools(s.name + "__fast")
	}
	_, want := first.list("tools")
	first.close()
	var others []*proxy
	for range 5 {
		others = append(others, startProxyIn(t, first.dir, ""))
	}
	for _, p := range others {
		p.initialize("")
		if _, got := p.list("tools"); !slices.Equal(got, want) || len(got) < 6*10 {
			t.Errorf("%d tools, first %d", len(got), len(want))
		}
	}
	if running := first.processes(); len(running) != len(others) {
		t.Errorf("%d processes run: %v", len(running), running)
	}
	for _, s := range stubs {
		if n := len(s.events("start")); n != 1 {
			t.Errorf("%s: %d starts", s.name, n)
		}
	}
}
