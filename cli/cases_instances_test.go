package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// D07: an instance that starts leaves one that works alone.
func TestD07ANewInstanceHarmsNone(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	a := startProxy(t, configOf(s))
	a.initialize("")
	a.list("tools")
	id := a.startTool("s__slow", `{"ms":2000}`)
	s.awaitMessage("tools/call")
	b := startProxyIn(t, a.dir, "")
	b.initialize("")
	if _, names := b.list("tools"); !slices.Contains(names, "s__slow") {
		t.Errorf("listed are %q", names)
	}
	b.tool("s__fast", "")
	if m := a.wait(id); m.isError() || m.Error != nil {
		t.Errorf("the call under way gave %s", m.Raw)
	}
	for _, p := range []*proxy{a, b} {
		if m := p.tool("s__fast", ""); m.isError() {
			t.Errorf("after that: %s", m.Raw)
		}
	}
}

// D12: what is stored of a server that is no longer configured, or is configured
// otherwise, is not shown.
func TestD12TheConfigurationDecides(t *testing.T) {
	t.Parallel()
	old, s := newStub(t, "old", ""), newStub(t, "s", `"tools":[{"name":"before","inputSchema":{"type":"object"}}]`)
	first := startProxy(t, configOf(old, s))
	first.initialize("")
	first.awaitTools("old__fast", "s__before")
	first.close()
	changed := newStub(t, "s", `"tools":[{"name":"after","inputSchema":{"type":"object"}}]`).trusted()
	p := startProxyIn(t, first.dir, configOf(changed))
	p.initialize("")
	p.awaitTools("s__after")
	if _, names := p.list("tools"); !slices.Equal(names, []string{"s__after"}) {
		t.Errorf("listed are %q", names)
	}
}

// D06: instances and commands run side by side on one folder.
func TestD06SideBySide(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	a := startProxy(t, configOf(s))
	b := startProxyIn(t, a.dir, "")
	for _, p := range []*proxy{a, b} {
		p.initialize("")
		p.tool("s__fast", "")
	}
	var all sync.WaitGroup
	for range 4 {
		for _, command := range []string{"status", "list"} {
			all.Go(func() {
				if out := runCommand(t, a.dir, command, "--json"); out.code != 0 || !json.Valid([]byte(out.stdout)) {
					t.Errorf("%s: exit code %d: %s%s", command, out.code, out.stdout, out.stderr)
				}
			})
		}
	}
	for i := range 20 {
		for _, p := range []*proxy{a, b} {
			if m := p.tool("s__echo", fmt.Sprintf(`{"n":%d}`, i)); m.isError() {
				t.Errorf("call %d: %s", i, m.Raw)
			}
		}
	}
	all.Wait()
}

// L01: what one client's server says of its list reaches the other clients too.
func TestL01OtherInstancesHear(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newStub(t, "s", "").trusted()
	config := sharedConfig("", s)
	a, b, idle := startProxyIn(t, dir, config), startProxyIn(t, dir, ""), startProxyIn(t, dir, "")
	for _, p := range []*proxy{a, b, idle} {
		p.initialize("")
		p.awaitTools("s__fast")
	}
	for _, p := range []*proxy{a, b} { // the third lists from the store alone
		p.tool("s__fast", "")
	}
	for _, p := range []*proxy{a, b, idle} {
		p.list("tools")
		p.taken(toolsChanged) // of the first discovery
	}
	began := time.Now()
	a.tool("s__addtool", `{"name":"late"}`)
	for _, p := range []*proxy{a, b, idle} {
		m := p.await(toolsChanged)
		if took := m.At.Sub(began); took > 10*time.Second {
			t.Errorf("announced after %v", took)
		}
		if _, names := p.list("tools"); !slices.Contains(names, "s__late") {
			t.Errorf("listed are %q", names)
		}
		if more := p.taken(toolsChanged); len(more) > 0 {
			t.Errorf("announced %d times more", len(more))
		}
	}
	for _, p := range []*proxy{a, b, idle} {
		if text := p.stderrText(); strings.Contains(text, "warning") {
			t.Errorf("stderr: %s", text)
		}
	}
}
