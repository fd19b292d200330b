package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// endOfAll is how long after its end a proxy may leave processes behind.
const endOfAll = 5 * time.Second

// process is one live process, as /proc shows it.
type process struct {
	pid, parent int
	args        []string
}

// is reports whether the process was started as the command, with that first
// argument; zombies are not listed at all.
func (p process) is(command, first string) bool {
	return len(p.args) > 1 && filepath.Base(p.args[0]) == command && p.args[1] == first
}

// processesOf lists the live processes that have this home folder, which every
// process that a test starts, and all that it starts, inherit.
func processesOf(t *testing.T, home string) []process {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, path := range environs {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, raw...), []byte("\x00HOME="+home+"\x00")) {
			continue
		}
		folder := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(folder, "stat"))
		// Behind the name, which may hold anything, come state and parent.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || len(command) == 0 {
			continue // it has just ended
		}
		parent, _ := strconv.Atoi(fields[1])
		found = append(found, process{pid, parent, strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")})
	}
	return found
}

// home is the home folder that all processes of a proxy share.
func (p *proxy) home() string { return filepath.Join(p.dir, "home") }

// processes lists all live processes of the proxy, itself included.
func (p *proxy) processes() []process {
	p.t.Helper()
	return processesOf(p.t, p.home())
}

// count is how many of the proxy's processes were started that way.
func (p *proxy) count(command, first string) int {
	p.t.Helper()
	n := 0
	for _, process := range p.processes() {
		if process.is(command, first) {
			n++
		}
	}
	return n
}

// awaitUntil polls until the condition holds and returns when; after the limit
// the test fails.
func awaitUntil(t *testing.T, limit time.Duration, what string, condition func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !condition() {
		if time.Since(begun) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

// awaitTools polls tools/list until all these are there: a busy machine may not
// get a server to say what it has within the time that the first list waits.
func (p *proxy) awaitTools(names ...string) {
	p.t.Helper()
	awaitUntil(p.t, answerTime, fmt.Sprintf("%q are listed", names), func() bool {
		_, listed := p.list("tools")
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(listed, name) })
	})
}

// assertAllGone fails the test for every process with this home that is there
// after the limit, and ends it. It returns how long the last one took.
func assertAllGone(t *testing.T, home string, limit time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	left := processesOf(t, home)
	for len(left) > 0 && time.Since(begun) < limit {
		time.Sleep(10 * time.Millisecond)
		left = processesOf(t, home)
	}
	for _, process := range left {
		t.Errorf("process %d (parent %d) is left after %s: %q", process.pid, process.parent, limit, process.args)
		if p, err := os.FindProcess(process.pid); err == nil {
			_ = p.Kill()
		}
	}
	return time.Since(begun)
}

// shellEntry is a configuration entry of a server that is started by a shell
// script; "$0" in it is the scenario of the stub.
func shellEntry(s *upstreamStub, script string) string {
	return fmt.Sprintf(`{"name":%q,"command":"sh","args":["-c",%q,%q]%s}`, s.name, script, s.file, s.more)
}

// entries is a configuration with these raw entries.
func entries(members string, all ...string) string {
	return `{` + members + `"share_upstreams":false,"mcpServers":[` + strings.Join(all, ",") + `]}`
}

// commandOutcome is what a command wrote and how it ended.
type commandOutcome struct {
	stdout, stderr string
	code           int
}

// runCommand runs a command of mcpproxy with the configuration, data and home
// of the instances in a folder.
func runCommand(t *testing.T, dir string, args ...string) commandOutcome {
	t.Helper()
	args = append(args, "--config", filepath.Join(dir, "mcp_config.json"), "--data-dir", filepath.Join(dir, "data"))
	cmd := exec.CommandContext(t.Context(), "mcpproxy", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "GORACE=atexit_sleep_ms=0"}
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(answerTime, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait() // the code tells
	return commandOutcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
