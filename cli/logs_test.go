package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestLogsFollow follows a log that does not exist yet, grows, is replaced and
// is cut short, until the command is interrupted.
func TestLogsFollow(t *testing.T) {
	home := t.TempDir()
	logs := filepath.Join(home, ".mcpproxy", "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(flag int, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(logs, "files.log"), os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(home, ".mcpproxy", "mcp_config.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers": {"files": {"command": "true"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}

	out, in := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		code := Main(ctx, Env{
			Args: []string{"logs", "-f", "files"}, Stdout: in, Stderr: io.Discard,
			Home: home, Dir: home, Now: testNow,
			IsTerminal: terminals(Stdout), Columns: func() int { return 80 },
		})
		in.Close()
		ended <- code
	}()
	lines := bufio.NewReader(out)
	expect := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); got != want+"\n" {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}

	write(0, "one\n\x1b[2Jtwo\r\n")
	expect("one")
	expect(`\x1b[2Jtwo`)
	write(os.O_APPEND, "thr")
	write(os.O_APPEND, "ee\n")
	expect("three")
	if err := os.Rename(filepath.Join(logs, "files.log"), filepath.Join(logs, "files.log.1")); err != nil {
		t.Fatal(err)
	}
	write(0, "of the next file\n")
	expect("of the next file")
	write(os.O_TRUNC, "cut\n")
	expect("cut")

	interrupt()
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("after the interrupt: %v", err)
	}
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}
