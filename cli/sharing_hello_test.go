//go:build unix

package cli_test

import (
	"strconv"
	"syscall"
	"testing"
)

// TestSharedServerOffersMore has a shared server come back after its end with
// something that it did not announce before: every client learns of it, and keeps
// the call that it has under way elsewhere.
func TestSharedServerOffersMore(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s, busy := newStub(t, "s", `"capabilities":{"tools":{}}`), newStub(t, "busy", "")
	instances := startInstances(t, 2, dir, sharedConfig(`"quarantine_enabled":false,`, s, busy))
	for _, p := range instances {
		p.tool("s__fast", "")
		if _, prompts := p.list("prompts"); len(prompts) != 0 {
			t.Fatalf("prompts %v", prompts)
		}
	}
	slow := make([]int, len(instances))
	for i, p := range instances {
		slow[i] = p.startTool("busy__slow", `{"ms":2000}`)
	}
	s.script(`"prompts":[{"name":"p"}]`)
	pid, err := strconv.Atoi(instances[0].pidOf("s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	instances[0].tool("s__fast", "")
	for i, p := range instances {
		p.await("notifications/prompts/list_changed")
		if _, prompts := p.list("prompts"); len(prompts) != 1 {
			t.Errorf("client %d: prompts %v", i, prompts)
		}
		if m := p.wait(slow[i]); m.text() != "slow" {
			t.Errorf("client %d: the call under way gave %s", i, m.Raw)
		}
	}
	if n := len(s.events("start")); n != 2 {
		t.Errorf("the server was started %d times", n)
	}
	for _, p := range instances {
		p.close()
	}
	assertAllGone(t, home, hubIdle+endOfAll)
}
