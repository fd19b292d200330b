package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// asExecutable has the program started again by a script, which may do
// something first.
func asExecutable(t *testing.T, first string) func(*Env) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the script is for a Unix shell")
	}
	program, err := exec.LookPath("mcpproxy")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+first+"\nexec "+program+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(env *Env) {
		env.Executable = script
		env.Environ = os.Environ()
	}
}

// TestDemoOnSlowMachine shows a server that takes longer than a list waits.
func TestDemoOnSlowMachine(t *testing.T) {
	got := invokeWith(t, asExecutable(t, `case "$1" in demo-server) sleep 3;; esac`), "demo")
	for _, want := range []string{"0 tools, ", "tools/list_changed", "from the server\n", "from the store\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the transcript lacks %q", want)
		}
	}
	if got.code != 0 || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", got.code, got.stderr, got.stdout)
	}
}

// TestDemoThatFails says what went wrong and leaves nothing.
func TestDemoThatFails(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	got := invokeWith(t, asExecutable(t, `case "$1" in --config) echo broken from birth >&2; exit 3;; esac`), "demo")
	if got.code != exitFailed || !strings.Contains(got.stderr, "mcpproxy wrote to stderr: broken from birth") {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	got = invokeWith(t, asExecutable(t, `case "$1" in demo-server) echo no notes today >&2; exit 3;; esac`), "demo")
	if got.code != exitFailed || !strings.Contains(got.stderr, "no notes today") {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "mcpproxy-demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
