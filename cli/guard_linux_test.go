package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGuardOfARemovedProgram starts an instance whose program is no longer where
// it was, as after an upgrade: it has its guard all the same.
func TestGuardOfARemovedProgram(t *testing.T) {
	t.Parallel()
	original, err := exec.LookPath("mcpproxy")
	if err != nil {
		t.Fatal(err)
	}
	dir, home := sharedFolder(t)
	program := filepath.Join(t.TempDir(), "mcpproxy")
	copyProgram(t, original, program)
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(privateConfig("", newStub(t, "s", stubborn))), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "mcpproxy")
	if err := os.Symlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), link); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, link, dir, nil)
	p.initialize("")
	p.tool("s__fast", "")
	if text := p.stderrText(); text != "" {
		t.Errorf("stderr: %s", text)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	assertAllGone(t, home, endOfAll)
}
