package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/mcp/config"
)

func TestInstallOf(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @scope/pkg@1.2 --port 1 -p x":    "npm @scope/pkg@1.2",
		"/usr/bin/npx pkg":                       "npm pkg",
		`C:\nodejs\npx.cmd --yes pkg`:            "npm pkg",
		"NPX.EXE pkg":                            "npm pkg",
		"cmd /c npx -y pkg":                      "npm pkg",
		"cmd.exe /d /C npx.cmd pkg":              "npm pkg",
		"cmd /k":                                 "",
		"npx --registry https://r -- pkg -x":     "npm pkg",
		"npx -p b --package=a -c run":            "npm a b",
		"npx --package a b":                      "npm a",
		"npx -c run":                             "",
		"npx -y":                                 "",
		"npx":                                    "",
		"npx -p":                                 "",
		"npm exec --yes -- pkg -y":               "npm pkg",
		"npm --silent x pkg":                     "npm pkg",
		"npm start":                              "",
		"npm":                                    "",
		"pnpm dlx --package=a b":                 "pnpm a",
		"pnpm run dlx":                           "",
		"pnpx pkg":                               "pnpm pkg",
		"yarn dlx -q -p a b":                     "yarn a",
		"bunx --bun pkg@latest":                  "bun pkg@latest",
		"bun x pkg":                              "bun pkg",
		"bun run x":                              "",
		"uvx --python 3.12 --from pkg==1.0 tool": "uv pkg==1.0",
		"uvx --with b -w c tool":                 "uv b c tool",
		"uvx pkg==1.0 --from x":                  "uv pkg==1.0",
		"uv --quiet tool run pkg":                "uv pkg",
		"uv run pkg":                             "",
		"pipx run --spec git+https://x/y=1 tool": "pipx git+https://x/y=1",
		"pipx install pkg":                       "",
		"node npx pkg":                           "",
		"/opt/npx/server pkg":                    "",
		"npxx pkg":                               "",
		"npx --package=git+https://u:p@host/x tool": "npm git+https://u:p@host/x",
	} {
		words := strings.Fields(command)
		if got := installOf(words[0], words[1:]); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

// coldStarter is another process, which enters for a package.
type coldStarter struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// startColdStarter runs TestColdStarter in a process of its own.
func startColdStarter(t *testing.T, dir, pkg string) *coldStarter {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestColdStarter$")
	cmd.Env = append(os.Environ(), "COLD_DIR="+dir, "COLD_PACKAGE="+pkg)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &coldStarter{t, cmd, stdin, bufio.NewScanner(stdout)}
}

// says waits for a line.
func (s *coldStarter) says(want string) {
	s.t.Helper()
	if !s.lines.Scan() || s.lines.Text() != want {
		s.t.Fatalf("the other process says %q, want %q (%v)", s.lines.Text(), want, s.lines.Err())
	}
}

// tell sends a line.
func (s *coldStarter) tell(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.stdin, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// TestColdStarter is the other process: it enters when it is told to, says so,
// and leaves when it is told how. In the ordinary run it has nothing to do.
func TestColdStarter(t *testing.T) {
	dir := os.Getenv("COLD_DIR")
	if dir == "" {
		return
	}
	c := newColdStarts(filepath.Join(dir, "cold"))
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		leave, err := c.enter(t.Context(), "npx", []string{"-y", os.Getenv("COLD_PACKAGE")})
		if err != nil {
			t.Fatal(err)
		}
		switch lines.Text() {
		case "hold":
			fmt.Println("entered")
			lines.Scan()
			leave(lines.Text() == "ok")
		case "round":
			busy := filepath.Join(dir, "busy")
			f, err := os.OpenFile(busy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				fmt.Println("two at once")
				return
			}
			time.Sleep(50 * time.Millisecond) // a start takes its time
			_ = f.Close()
			if err := os.Remove(busy); err != nil {
				t.Fatal(err)
			}
			leave(false)
		}
		fmt.Println("left")
	}
}

// entering enters on the side.
func entering(t *testing.T, c *coldStarts, pkg string) <-chan func(bool) {
	entered := make(chan func(bool), 1)
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	wg.Go(func() {
		leave, err := c.enter(ctx, "npx", []string{pkg})
		if err != nil {
			return
		}
		entered <- leave
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return entered
}

// soon returns what is entered within a generous time.
func soon(t *testing.T, entered <-chan func(bool)) func(bool) {
	t.Helper()
	select {
	case leave := <-entered:
		return leave
	case <-time.After(20 * time.Second):
		t.Fatal("still waiting")
		return nil
	}
}

// waits makes sure that nothing is entered.
func waits(t *testing.T, entered <-chan func(bool)) {
	t.Helper()
	select {
	case <-entered:
		t.Fatal("entered while another start was under way")
	case <-time.After(200 * time.Millisecond):
	}
}

func TestColdStartsAreNeverAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []*coldStarter
	for range 3 {
		all = append(all, startColdStarter(t, dir, "pkg"))
	}
	for _, s := range all {
		s.says("ready")
	}
	for range 3 {
		for _, s := range all {
			s.tell("round")
		}
		for _, s := range all {
			s.says("left")
		}
	}
}

func TestColdStartOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newColdStarts(filepath.Join(dir, "cold"))
	other := startColdStarter(t, dir, "pkg")
	other.says("ready")

	// A start that failed gives the turn to the next one.
	other.tell("hold")
	other.says("entered")
	same := entering(t, c, "pkg")
	waits(t, same)
	soon(t, entering(t, c, "another"))(true)
	other.tell("failed")
	other.says("left")
	leave := soon(t, same)
	waits(t, entering(t, newColdStarts(filepath.Join(dir, "cold")), "pkg"))
	leave(false)
	leave(true) // once only

	// A holder that was killed as well.
	victim := startColdStarter(t, dir, "victim")
	victim.says("ready")
	victim.tell("hold")
	victim.says("entered")
	same = entering(t, c, "victim")
	waits(t, same)
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	soon(t, same)(false)
}

func TestColdStartThatSucceeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cold := filepath.Join(dir, "cold")
	other := startColdStarter(t, dir, "pkg")
	other.says("ready")
	other.tell("hold")
	other.says("entered")
	c := newColdStarts(cold)
	first, second := entering(t, c, "pkg"), entering(t, c, "pkg")
	waits(t, first)
	waits(t, second)
	other.tell("ok")
	other.says("left")
	// Nobody leaves, and all get in.
	soon(t, first)
	soon(t, second)
	soon(t, entering(t, c, "pkg"))
	unlock, err := config.Lock(t.Context(), newColdStarts(cold).file("npm pkg", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	soon(t, entering(t, newColdStarts(cold), "pkg"))
	if err := unlock(); err != nil {
		t.Fatal(err)
	}

	markers, err := filepath.Glob(filepath.Join(cold, "*.started"))
	if err != nil || len(markers) != 1 {
		t.Fatalf("markers %q, %v", markers, err)
	}
	old := time.Now().Add(-warmFor - time.Minute)
	if err := os.Chtimes(markers[0], old, old); err != nil {
		t.Fatal(err)
	}
	late := newColdStarts(cold)
	leave := soon(t, entering(t, late, "pkg"))
	waits(t, entering(t, late, "pkg"))
	leave(true)
}

func TestColdStartsWithinOneProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without a folder, and with one that cannot be made.
	for _, dir := range []string{"", filepath.Join(file, "cold")} {
		c := newColdStarts(dir)
		var inside, most atomic.Int32
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				leave, err := c.enter(t.Context(), "uvx", []string{"pkg"})
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				time.Sleep(10 * time.Millisecond)
				inside.Add(-1)
				leave(false)
			})
		}
		wg.Wait()
		if most.Load() != 1 {
			t.Errorf("%d starts at once", most.Load())
		}
		soon(t, entering(t, c, "pkg"))(true) // npx, not uvx
		soon(t, entering(t, c, "pkg"))
		soon(t, entering(t, c, "pkg"))

		for range 2 { // no package runner, nothing to wait for
			if _, err := c.enter(t.Context(), "node", []string{"x.js"}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestColdStartWaitsNoLongerThanItMay(t *testing.T) {
	dir := t.TempDir()
	first := newColdStarts(dir)
	leave := soon(t, entering(t, first, "pkg"))
	defer leave(false)
	for _, c := range []*coldStarts{first, newColdStarts(dir)} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if leave, err := c.enter(ctx, "npx", []string{"pkg"}); !errors.Is(err, context.DeadlineExceeded) || leave != nil {
			t.Errorf("got %v", err)
		}
	}
}
