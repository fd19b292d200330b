package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpproxy/testdata/stub"
)

// stubborn is a server that neither the end of stdin nor a signal ends.
const stubborn = `"ignore_eof":true,"ignore_term":true`

// crowd is a configuration with servers of every kind that is hard to get rid
// of, and the names under which they are called.
func crowd(t *testing.T) (config string, names []string) {
	t.Helper()
	folder := t.TempDir()
	// npx runs the package's command through a shell and waits for it.
	npx := filepath.Join(folder, "npx")
	script := "#!/bin/sh\nsh -c \"mcpstub stub '$2'; exit \\$?\"\nexit $?\n"
	if err := os.WriteFile(npx, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	plain := newStub(t, "plain", "")
	bad := newStub(t, "stubborn", stubborn)
	deaf := newStub(t, "deaf", `"ignore_eof":true`)
	background := newStub(t, "background", stubborn)
	before := newStub(t, "before", stubborn)
	wrapped := newStub(t, "wrapped", stubborn)
	parent := newStub(t, "parent", `"grandchild":{"ignore_term":true}`)
	holder := newStub(t, "holder", `"grandchild":{"ignore_term":true,"inherit":true}`)
	all := []string{
		plain.entry(), bad.entry(), deaf.entry(), parent.entry(), holder.entry(),
		shellEntry(background, `exec 3<&0; mcpstub stub "$0" <&3 & wait`),
		shellEntry(before, `mcpstub stub "$0"; true`),
		fmt.Sprintf(`{"name":"wrapped","command":%q,"args":["-y",%q]}`, npx, wrapped.file),
	}
	return entries("", all...), []string{"plain", "stubborn", "deaf", "parent", "holder", "background", "before", "wrapped"}
}

// startAll calls a tool of every server, so that all of them run.
func (p *proxy) startAll(names []string) {
	p.t.Helper()
	p.initialize("")
	for _, name := range names {
		if m := p.tool(name+"__fast", ""); m.text() != "fast" {
			p.t.Fatalf("%s: %s", name, m.Raw)
		}
	}
}

// awaitProcesses waits until so many processes run: a server answers before what it
// starts itself is there.
func (p *proxy) awaitProcesses(n int) {
	p.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(p.processes()) != n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%d processes run, not %d: %v", len(p.processes()), n, p.processes())
		}
	}
}

// TestNobodyIsLeft ends a proxy in every way there is; none of the processes
// that it started may be there 5 s later.
func TestNobodyIsLeft(t *testing.T) {
	signalled := func(sig syscall.Signal) func(p *proxy) {
		return func(p *proxy) {
			if err := p.cmd.Process.Signal(sig); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		end    func(p *proxy)
		status int           // -1 = ended by a signal
		more   time.Duration // that the end may take
	}{
		{"end of stdin", func(p *proxy) { p.stdin.Close() }, 0, 0},
		{"end of stdin with calls under way", func(p *proxy) {
			for _, name := range []string{"plain", "stubborn", "before"} {
				p.startTool(name+"__hang", "")
			}
			p.tool("plain__fast", "")
			p.stdin.Close()
		}, 0, time.Second}, // in which they may be answered
		{"SIGTERM", signalled(syscall.SIGTERM), 130, 0},
		{"SIGINT", signalled(syscall.SIGINT), 130, 0},
		{"SIGHUP", signalled(syscall.SIGHUP), 130, 0},
		{"SIGKILL", signalled(syscall.SIGKILL), -1, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, names := crowd(t)
			p := startProxy(t, config)
			p.startAll(names)
			// The proxy, its guard, eight servers, two grandchildren, the four
			// shells of three wrappers.
			p.awaitProcesses(16)
			test.end(p)
			took := assertAllGone(t, p.home(), endOfAll+test.more)
			t.Logf("all gone after %s", took)
			<-p.exited
			if status := p.cmd.ProcessState.ExitCode(); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
		})
	}
}

// TestClientDies kills a client, with which both pipes to the proxy end at
// once.
func TestClientDies(t *testing.T) {
	t.Parallel()
	config, names := crowd(t)
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// The client is a shell. What it is told to send comes from the test, and
	// what the proxy answers goes back, but only the client holds the pipes.
	client := exec.Command("sh", "-c", `
		mkfifo in out
		mcpproxy --mode direct --config "$0" --data-dir data <in >out &
		exec 3>in 4<out
		while read -r line; do
			printf '%s\n' "$line" >&3
			case $line in *'"id"'*) read -r answer <&4; printf '%s\n' "$answer" ;; esac
		done`, file)
	client.Dir, client.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=atexit_sleep_ms=0"}
	stdin, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Process.Kill()
	answers := make(chan string)
	go func() {
		in := bufio.NewReader(stdout)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				close(answers)
				return
			}
			answers <- line
		}
	}()
	ask := func(line string) string {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case answer := <-answers:
			return answer
		case <-time.After(answerTime):
			t.Fatalf("no answer to %s", line)
			return ""
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	for _, name := range names {
		if answer := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s__fast"}}`, name)); !strings.Contains(answer, `"fast"`) {
			t.Fatalf("%s: %s", name, answer)
		}
	}
	if n := len(processesOf(t, home)); n != 17 {
		t.Errorf("%d processes run: %v", n, processesOf(t, home))
	}
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Logf("all gone after %s", assertAllGone(t, home, endOfAll))
	_ = client.Wait()
}

// TestChildDies kills a server with its whole group from outside: the proxy
// goes on, and the next call starts a new one.
func TestChildDies(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	first := p.tool("s__pid", "").text()
	for _, child := range p.processes() {
		if child.is("mcpstub", "stub") {
			if err := syscall.Kill(child.pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaitUntil(t, answerTime, "the child is gone", func() bool { return p.count("mcpstub", "stub") == 0 })
	if second := p.tool("s__pid", "").text(); second == "" || second == first {
		t.Errorf("pid %q after %q", second, first)
	}
	if n := p.count("mcpstub", "stub"); n != 1 {
		t.Errorf("%d servers run", n)
	}
	p.close()
	assertAllGone(t, p.home(), endOfAll)
}

// TestClosedStdout closes the reading end of the proxy's stdout; the next
// answer must end it, without a spin.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStub(t, "s", "")
	file := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(file, []byte(configOf(s)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("mcpproxy", "--mode", "direct", "--config", file, "--data-dir", filepath.Join(dir, "data"))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	defer func() { _ = cmd.Process.Kill(); <-exited }()
	say := func(line string) {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	in := bufio.NewReader(stdout)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__fast"}}`)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	begun := time.Now()
	select {
	case <-exited:
	case <-time.After(answerTime):
		t.Fatal("it goes on with a broken stdout")
	}
	// With the server, which leaves at the end of its stdin.
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if status := cmd.ProcessState.ExitCode(); status <= 0 {
		t.Errorf("exit status %d", status)
	}
	if cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); cpu > time.Second {
		t.Errorf("%s of processor time", cpu)
	}
	assertAllGone(t, dir, endOfAll)
}

// TestClientDoesNotRead ends a proxy whose client has stopped reading, with
// more on its way to it than the pipe takes.
func TestClientDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cmd *exec.Cmd, stdin io.Closer) error{
		"end of stdin": func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
		"SIGTERM":      func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newStub(t, "s", "")
			file := filepath.Join(dir, "mcp_config.json")
			if err := os.WriteFile(file, []byte(configOf(s)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("mcpproxy", "--mode", "direct", "--config", file, "--data-dir", filepath.Join(dir, "data"))
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			unread, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer unread.Close()
			cmd.Stdout = stdout
			err = cmd.Start()
			stdout.Close()
			if err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(answerTime, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
			say := func(lines ...string) {
				if _, err := io.WriteString(stdin, strings.Join(lines, "\n")+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			// Once the server runs, a call takes no goroutine of its own.
			say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__big","arguments":{"bytes":1}}}`)
			for lines := bufio.NewReaderSize(unread, 16); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(line, `"id":2`) {
					break
				}
			}
			say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"s__big","arguments":{"bytes":5000000}}}`,
				`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"s__big","arguments":{"bytes":5000000}}}`)
			awaitUntil(t, answerTime, "the pipe is full", func() bool {
				waiting, err := unix.IoctlGetInt(int(unread.Fd()), unix.TIOCINQ)
				if err != nil {
					t.Fatal(err)
				}
				size, err := unix.FcntlInt(unread.Fd(), unix.F_GETPIPE_SZ, 0)
				if err != nil {
					t.Fatal(err)
				}
				return waiting > size-8192
			})
			begun := time.Now()
			if err := end(cmd, stdin); err != nil {
				t.Fatal(err)
			}
			assertAllGone(t, dir, endOfAll)
			t.Logf("all gone after %s", time.Since(begun))
			_, _ = cmd.Process.Wait()
		})
	}
}

// TestStopLadder looks at the end of a proxy as a server sees it that nothing
// but the last rung ends: first its stdin ends, then SIGTERM comes, then it is
// gone.
func TestStopLadder(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", stubborn)
	p := startProxy(t, privateConfig("", s))
	p.startAll([]string{"s"})
	begun := time.Now()
	p.close()
	took := time.Since(begun)
	eof := s.await(func(e stub.Event) bool { return e.Kind == "eof" }).Time
	term := s.await(func(e stub.Event) bool { return e.Kind == "signal" && e.Text == "terminated" }).Time
	t.Logf("end of stdin after %s, SIGTERM %s later, the end %s later", eof.Sub(begun), term.Sub(eof), begun.Add(took).Sub(term))
	if wait := term.Sub(eof); wait < time.Second {
		t.Errorf("SIGTERM came %s after the end of stdin", wait)
	}
	if wait := begun.Add(took).Sub(term); wait < time.Second {
		t.Errorf("the end came %s after SIGTERM", wait)
	}
	if took > 4*time.Second {
		t.Errorf("the proxy took %s to end", took)
	}
	if signals := s.events("signal"); len(signals) != 1 {
		t.Errorf("signals: %q", signals)
	}
	assertAllGone(t, p.home(), endOfAll-took)
}

// TestServersAreStoppedTogether stops three servers that need the whole ladder
// in the time of one.
func TestServersAreStoppedTogether(t *testing.T) {
	t.Parallel()
	p := startProxy(t, privateConfig("", newStub(t, "a", stubborn), newStub(t, "b", stubborn), newStub(t, "c", stubborn)))
	p.startAll([]string{"a", "b", "c"})
	begun := time.Now()
	p.close()
	if took := time.Since(begun); took > 4500*time.Millisecond {
		t.Errorf("the proxy took %s to end", took)
	}
	assertAllGone(t, p.home(), endOfAll-time.Since(begun))
}

// TestGuard looks at the process that outlives a killed proxy: it is there as
// soon as the first child is, not before, and goes with the proxy.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", stubborn)
	p := startProxy(t, privateConfig("", s))
	p.initialize("")
	if n := len(p.processes()); n != 1 {
		t.Errorf("%d processes before the first call: %v", n, p.processes())
	}
	p.tool("s__fast", "")
	p.tool("s__fast", "")
	if n := p.count("mcpproxy", "guard"); n != 1 {
		t.Errorf("%d guards", n)
	}
	p.close()
	if n := p.count("mcpproxy", "guard"); n != 0 {
		t.Errorf("the guard is there after its proxy")
	}

	killed := startProxyIn(t, p.dir, "")
	killed.initialize("")
	killed.tool("s__fast", "")
	// A guard that is asked to leave, with the proxy or by a terminal, stays as
	// long as it is needed.
	for _, process := range killed.processes() {
		if process.is("mcpproxy", "guard") {
			if err := syscall.Kill(process.pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	assertAllGone(t, p.home(), endOfAll)
}
