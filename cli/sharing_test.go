//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sharedFolder is a folder for several instances, and their home in it.
func sharedFolder(t *testing.T) (dir, home string) {
	t.Helper()
	dir = t.TempDir()
	home = filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, home
}

// startInstances starts so many instances in one folder, each with a client that
// has said hello.
func startInstances(t *testing.T, n int, dir, config string) []*proxy {
	t.Helper()
	instances := make([]*proxy, n)
	for i := range instances {
		instances[i] = startProxyIn(t, dir, config)
		instances[i].initializeAs(fmt.Sprintf("client-%d", i), "1", `{}`)
	}
	return instances
}

// hubOf is the hub of the instances in a folder, nil if there is none.
func hubOf(t *testing.T, home string) *process {
	t.Helper()
	var found *process
	for _, p := range processesOf(t, home) {
		if p.is("mcpproxy", "hub-run") {
			if found != nil {
				t.Errorf("two hubs: %d and %d", found.pid, p.pid)
			}
			found = &p
		}
	}
	return found
}

// countOf is how many processes with this home were started that way.
func countOf(t *testing.T, home, command, first string) int {
	t.Helper()
	n := 0
	for _, p := range processesOf(t, home) {
		if p.is(command, first) {
			n++
		}
	}
	return n
}

// TestSharedServers has five clients use two servers at once: there is one
// process of each, every client gets the answers to its own calls, status and
// list tell who is there, and nothing is left when all are gone.
func TestSharedServers(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	instances := startInstances(t, 5, dir, sharedConfig("", a, b))
	var all sync.WaitGroup
	for i, p := range instances {
		all.Go(func() {
			for n := range 20 {
				for _, server := range []string{"a", "b"} {
					text := fmt.Sprintf("from %d, %d to %s", i, n, server)
					if got := p.tool(server+"__echo", fmt.Sprintf(`{"text":%q}`, text)).text(); !strings.Contains(got, `"`+text+`"`) {
						t.Errorf("client %d sent %q and got %q", i, text, got)
					}
				}
			}
		})
	}
	all.Wait()
	if n := countOf(t, home, "mcpstub", "stub"); n != 2 {
		t.Errorf("%d processes of two servers", n)
	}
	if hubOf(t, home) == nil {
		t.Error("no hub")
	}
	var list struct {
		Servers []struct {
			Name, State string
			Users       int
			PIDs        []int
			Memory      int `json:"memory_bytes"`
		}
	}
	awaitUntil(t, answerTime, "list shows the clients of each server", func() bool {
		if err := json.Unmarshal([]byte(runCommand(t, dir, "list", "--json").stdout), &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Servers {
			if s.State != "ready" || s.Users != len(instances) || len(s.PIDs) != 1 || s.Memory == 0 {
				return false
			}
		}
		return len(list.Servers) == 2
	})
	awaitUntil(t, answerTime, "status shows the hub with its clients", func() bool {
		out := runCommand(t, dir, "status").stdout
		for i := range instances {
			if strings.Count(out, fmt.Sprintf("client-%d 1", i)) == 0 {
				return false
			}
		}
		return strings.Contains(out, "\nhub\tpid ")
	})
	out := runCommand(t, dir, "hub", "status").stdout
	for i := range instances {
		if line := fmt.Sprintf("client\tclient-%d\ta,b\n", i); !strings.Contains(out, line) {
			t.Errorf("hub status lacks %q:\n%s", line, out)
		}
	}
	for _, s := range list.Servers {
		if line := fmt.Sprintf("server\t%s\t%d\t%d\n", s.Name, s.PIDs[0], len(instances)); !strings.Contains(out, line) {
			t.Errorf("hub status lacks %q:\n%s", line, out)
		}
	}
	for _, p := range instances {
		p.close()
	}
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestHubKilled ends the hub in the middle of calls: one that its server calls
// read-only is made again, any other gets one clear error, the servers come back
// once, and nothing of the old hub is left.
func TestHubKilled(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", `"list_builtins":["echo"],"tools":{"pages":[{"items":[
		{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
		{"name":"change","inputSchema":{"type":"object"}}]}]},
		"calls":{"look":{"delay_ms":1500,"result":{"content":[{"type":"text","text":"seen"}]}},
			"change":{"delay_ms":1500,"result":{"content":[{"type":"text","text":"changed"}]}}}`)
	instances := startInstances(t, 3, dir, sharedConfig("", s))
	for _, p := range instances {
		p.tool("s__echo", `{"text":"x"}`)
	}
	looks, changes := make([]int, len(instances)), make([]int, len(instances))
	for i, p := range instances {
		looks[i], changes[i] = p.startTool("s__look", `{}`), p.startTool("s__change", `{}`)
	}
	awaitUntil(t, answerTime, "the calls are under way", func() bool { return len(s.received("tools/call")) == 9 })
	hub := hubOf(t, home)
	if hub == nil {
		t.Fatal("no hub")
	}
	if err := syscall.Kill(hub.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, p := range instances {
		if m := p.wait(looks[i]); m.text() != "seen" {
			t.Errorf("client %d: a read-only call gave %s", i, m.Raw)
		}
		if m := p.wait(changes[i]); !m.isError() || !strings.Contains(m.text(), "server s ended during tools/call") {
			t.Errorf("client %d: a call that changes something gave %s", i, m.Raw)
		}
		if m := p.tool("s__echo", `{"text":"again"}`); !strings.Contains(m.text(), "again") {
			t.Errorf("client %d: after that %s", i, m.Raw)
		}
	}
	changed := 0
	for _, m := range s.received("tools/call") {
		if stringAt(m.Params, "name") == "change" {
			changed++
		}
	}
	if changed != len(instances) {
		t.Errorf("%d calls that change something reached the server, %d were made", changed, len(instances))
	}
	if n := len(s.events("start")); n != 2 {
		t.Errorf("the server was started %d times", n)
	}
	awaitUntil(t, answerTime, "one process of the server is left", func() bool { return countOf(t, home, "mcpstub", "stub") == 1 })
	if next := hubOf(t, home); next == nil || next.pid == hub.pid {
		t.Errorf("the hub is %v", next)
	}
	for _, p := range instances {
		p.close()
	}
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestSecretsAreNotShared has two clients whose environments differ in one
// secret: each has a process of its own.
func TestSecretsAreNotShared(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "").with(`"env":{"TOKEN":"${env:TOKEN}"}`)
	var instances []*proxy
	for _, token := range []string{"first-secret", "second-secret", "first-secret"} {
		p := startProxyWith(t, dir, sharedConfig("", s), []string{"TOKEN=" + token})
		p.initialize(`{}`)
		instances = append(instances, p)
		if got := p.tool("s__env", `{}`).text(); !strings.Contains(got, token) {
			t.Errorf("no %s in %s", token, got)
		}
	}
	if n := countOf(t, home, "mcpstub", "stub"); n != 2 {
		t.Errorf("%d processes for two secrets", n)
	}
	for _, p := range instances {
		p.close()
	}
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestSharedRequestsReachTheirClient lets a shared server ask for sampling: the
// client with the call under way is asked, and none where two have one, also
// after one of them has cancelled it.
func TestSharedRequestsReachTheirClient(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	config := sharedConfig("", s)
	var clients []*proxy
	for range 2 {
		p := startProxyIn(t, dir, config)
		p.initialize(`{"sampling":{}}`)
		p.tool("s__echo", `{"text":"x"}`)
		clients = append(clients, p)
	}
	one, two := clients[0], clients[1]
	for _, p := range clients {
		id := p.startTool("s__sample", `{}`)
		p.answer(p.await("sampling/createMessage"), `"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}`)
		if m := p.wait(id); m.isError() || m.Error != nil {
			t.Errorf("sampling for the only caller gave %s", m.Raw)
		}
	}
	hanging := one.startTool("s__hang", `{}`)
	s.awaitMessage("tools/call")
	one.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, hanging))
	s.awaitMessage("notifications/cancelled")
	asked := len(one.taken("sampling/createMessage")) + len(two.taken("sampling/createMessage"))
	if m := two.tool("s__sample", `{}`); !strings.Contains(string(m.Raw), "no single client") {
		t.Errorf("sampling while another's call is not answered gave %s", m.Raw)
	}
	if now := len(one.taken("sampling/createMessage")) + len(two.taken("sampling/createMessage")); now != asked {
		t.Errorf("%d clients were asked", now-asked)
	}
	for _, p := range clients {
		p.close()
	}
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestSharedRestart has a command restart a server that the hub runs.
func TestSharedRestart(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	p := startInstances(t, 1, dir, sharedConfig("", s))[0]
	before := p.pidOf("s")
	if out := runCommand(t, dir, "restart", "s"); out.code != 0 {
		t.Fatalf("exit code %d, stderr %s", out.code, out.stderr)
	}
	awaitUntil(t, answerTime, "it is another process", func() bool {
		m := p.tool("s__pid", `{}`)
		return !m.isError() && m.text() != before
	})
	p.close()
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestHubHangs stops the hub as a debugger would: its sessions find out by their
// probes, its lease runs out, and another takes its place. The old one leaves
// once it goes on.
func TestHubHangs(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	p := startInstances(t, 1, dir, sharedConfig(`"health_check_interval":"5s",`, s))[0]
	p.tool("s__echo", `{"text":"x"}`)
	hub := hubOf(t, home)
	if hub == nil {
		t.Fatal("no hub")
	}
	if err := syscall.Kill(hub.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	id := p.startTool("s__echo", `{"text":"during"}`) // which is read-only
	m, err := p.take(time.Minute, func(m message) bool { return string(m.ID) == fmt.Sprint(id) })
	if err != nil || !strings.Contains(m.text(), "during") {
		t.Errorf("a call to a hub that hangs gave %v %s", err, m.Raw)
	}
	if err := syscall.Kill(hub.pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitUntil(t, answerTime, "one process of the server is left", func() bool { return countOf(t, home, "mcpstub", "stub") == 1 })
	p.close()
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestHubOfAnotherBuild has a client of a newer program come while an older one
// is served: each has a hub of its own, and the older ends with its client.
func TestHubOfAnotherBuild(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	older := startInstances(t, 1, dir, sharedConfig("", s))[0]
	older.tool("s__fast", `{}`)
	program, err := exec.LookPath("mcpproxy")
	if err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(t.TempDir(), "mcpproxy")
	copyProgram(t, program, newer)
	p := startProgram(t, newer, dir, nil)
	p.initialize(`{}`)
	p.tool("s__fast", `{}`)
	if n := countOf(t, home, "mcpproxy", "hub-run"); n != 2 {
		t.Errorf("%d hubs", n)
	}
	older.close()
	awaitUntil(t, hubIdle+endOfAll, "the older hub is gone", func() bool { return countOf(t, home, "mcpproxy", "hub-run") == 1 })
	if m := p.tool("s__fast", `{}`); m.isError() {
		t.Errorf("after that: %s", m.Raw)
	}
	other := fmt.Sprintf("a hub of another build runs (pid %d); it ends with its clients\n", hubOf(t, home).pid)
	for _, command := range []string{"status", "stop"} {
		if out := runCommand(t, dir, "hub", command); out.code != 0 || !strings.HasSuffix(out.stderr, other) || strings.Contains(out.stderr, "no hub") {
			t.Errorf("hub %s of the older build: exit code %d, stderr %s", command, out.code, out.stderr)
		}
	}
	p.close()
	assertAllGone(t, home, hubIdle+endOfAll)
}

// copyProgram makes the same program count as another build: what has no commit
// is told apart by its file.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	program, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, append(program, 0), 0o700); err != nil {
		t.Fatal(err)
	}
}
