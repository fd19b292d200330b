package cli_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// requireEndToEnd, set to 1, turns a missing piece from a skip into a failure.
	requireEndToEnd = "MCPPROXY_E2E"
	// markVariable is in the environment of every process that a test starts,
	// with a value of that test alone, so that what is left can be found.
	markVariable = "E2E_MARK"
	// patience bounds one run of one program.
	patience = 2 * time.Minute
	// departure is how long processes may take to end after their client.
	departure = 5 * time.Second
)

// TestEndToEnd puts the built program between real servers and real clients
// from npm. Everything stays on this machine: the servers list and answer
// without a network, the clients run with their reporting switched off.
func TestEndToEnd(t *testing.T) {
	e := newEndToEnd(t)
	t.Run("definitions", e.testDefinitions)
	t.Run("conversation", e.testConversation)
	t.Run("retrieve", e.testRetrieve)
	t.Run("official client", e.testOfficialClient)
	t.Run("inspector", e.testInspector)
	t.Run("claude code", e.testClaudeCode)
	t.Run("gemini cli", e.testGeminiCLI)
	t.Run("codex", e.testCodex)
}

// endToEnd is what all end-to-end tests share: where the pieces are.
type endToEnd struct {
	program string // the built mcpproxy
	node    string
	servers string // the folder with the servers and the scripts
	clients string // the folder with the clients
}

// newEndToEnd builds the program and finds the npm packages. Where they are
// not installed it skips the test, or fails it if they are required.
func newEndToEnd(t *testing.T) *endToEnd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the clients' paths and environment are those of Unix systems")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	missing := func(format string, args ...any) {
		t.Helper()
		if os.Getenv(requireEndToEnd) == "1" {
			t.Fatalf(format, args...)
		}
		t.Skipf(format, args...)
	}

	e := &endToEnd{
		servers: filepath.Join(root, "testdata", "npm"),
		clients: filepath.Join(root, "testdata", "npm-clients"),
	}
	if e.node, err = exec.LookPath("node"); err != nil {
		missing("node is not on PATH: the end-to-end tests need Node.js 20 or later")
	}
	for _, folder := range []string{e.servers, e.clients} {
		if _, err := os.Stat(filepath.Join(folder, "node_modules")); errors.Is(err, fs.ErrNotExist) {
			missing("not installed, run: npm ci --ignore-scripts --prefix %s", folder)
		}
	}

	e.program = filepath.Join(t.TempDir(), "mcpproxy")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", e.program, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return e
}

// module returns the path of a file in the servers' node_modules.
func (e *endToEnd) module(path string) string {
	return filepath.Join(e.servers, "node_modules", filepath.FromSlash(path))
}

// client returns the path of a file in the clients' node_modules.
func (e *endToEnd) client(path string) string {
	return filepath.Join(e.clients, "node_modules", filepath.FromSlash(path))
}

// script returns the path of one of our scripts.
func (e *endToEnd) script(name string) string {
	return filepath.Join(e.servers, "scripts", name)
}

// world is the machine as one test sees it: an empty home, a configuration, a
// data folder and an environment of its own.
type world struct {
	*endToEnd
	home, work, data, config string
	mark                     string
}

// newWorld makes an empty world. When the test ends, no process that was
// started in it may be left.
func (e *endToEnd) newWorld(t *testing.T) *world {
	t.Helper()
	// Not t.TempDir: clients print paths, and its names hold the test's.
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		endToEnd: e,
		home:     filepath.Join(dir, "home"),
		work:     filepath.Join(dir, "work"),
		data:     filepath.Join(dir, "data"),
		config:   filepath.Join(dir, "mcp_config.json"),
		mark:     rand.Text(),
	}
	for _, folder := range []string{w.home, w.work} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		w.assertNobodyLeft(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	return w
}

// environ is the whole environment of a program in this world.
func (w *world) environ(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + w.home,
		markVariable + "=" + w.mark,
	}, more...)
}

// serverConfig is one entry of the configuration.
type serverConfig struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`

	AutoApprove bool `json:"auto_approve_tool_changes,omitempty"`
}

// configure writes a configuration with these servers.
func (w *world) configure(t *testing.T, servers []serverConfig) {
	t.Helper()
	raw, err := json.MarshalIndent(map[string]any{
		"mcpServers":           servers,
		"share_upstreams":      allShared(), // a shared server outlives its client on purpose
		"hub_idle_timeout":     hubIdle.String(),
		"inherit_env":          "base",
		"enable_socket":        allShared(),
		"activity_max_records": 1000,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// proxyArgs are the arguments that make the program serve one client directly.
func (w *world) proxyArgs() []string {
	return []string{"--mode", "direct", "--config", w.config, "--data-dir", w.data}
}

// outcome is what a program that ended wrote.
type outcome struct {
	stdout, stderr string
}

// run runs a program to its end in the work folder and fails the test unless
// it succeeds.
func (w *world) run(t *testing.T, name string, args ...string) outcome {
	t.Helper()
	return w.runIn(t, w.work, w.environ(), append([]string{name}, args...))
}

// runIn is run with a folder and an environment of the caller's choice.
func (w *world) runIn(t *testing.T, dir string, environ, argv []string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, environ
	cmd.WaitDelay = departure
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\nstdout: %s\nstderr: %s", strings.Join(argv, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return outcome{stdout: stdout.String(), stderr: stderr.String()}
}

// tail shortens what a failed program wrote to what is worth reading.
func tail(s string) string {
	const limit = 4000
	if len(s) > limit {
		return "..." + s[len(s)-limit:]
	}
	return s
}

// assertNobodyLeft fails the test when processes of this world are still there
// after the time they have to end in, and ends them. It reads /proc, so it sees
// nothing on systems without it.
func (w *world) assertNobodyLeft(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(departure)
	left := w.processes()
	for len(left) > 0 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		left = w.processes()
	}
	for pid, command := range left {
		t.Errorf("process %d is left after %s: %s", pid, departure, command)
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// processes returns the command lines of the live processes of this world.
func (w *world) processes() map[int]string {
	found := map[int]string{}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return found
	}
	want := []byte(fmt.Sprintf("%s=%s", markVariable, w.mark))
	for _, path := range environs {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, want) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found[pid] = string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
	}
	return found
}
