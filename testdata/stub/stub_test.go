//go:build unix

package stub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "stub" || os.Getenv("MCPSTUB") != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// stub is a running stub and its pipes.
type stub struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
	log    string
}

// run starts a stub with the members given, and a log.
func run(t *testing.T, members string) *stub {
	t.Helper()
	dir := t.TempDir()
	s := &stub{t: t, log: filepath.Join(dir, "events"), stderr: &bytes.Buffer{}}
	scenario := filepath.Join(dir, "scenario.json")
	if members != "" {
		members = "," + members
	}
	if err := os.WriteFile(scenario, fmt.Appendf(nil, `{"log":%q,"lifetime_ms":20000%s}`, s.log, members), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.CommandContext(t.Context(), os.Args[0], "stub", scenario)
	s.cmd.Stderr = s.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	return s
}

func (s *stub) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// line reads one line, without its newline.
func (s *stub) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("read: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// call calls a tool with id 1; args may be empty.
func (s *stub) call(name, args string) {
	s.t.Helper()
	if args == "" {
		args = "{}"
	}
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}}`, name, args))
}

// exit waits for the end and returns the status.
func (s *stub) exit() int {
	s.t.Helper()
	if err := s.cmd.Wait(); err != nil && s.cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// await waits until the log holds an event of this kind.
func (s *stub) await(kind string) Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	e, err := Await(ctx, s.log, func(e Event) bool { return e.Kind == kind })
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// want compares one line.
func (s *stub) want(want string) {
	s.t.Helper()
	if got := s.line(); got != want {
		s.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRawAnswers(t *testing.T) {
	s := run(t, `"name":"x","protocol":"2024-11-05","capabilities":{"tools":{}},
		"tools":{"pages":[{"items":[{"name":"a", "n":1e2}],"next":"8"},{"cursor":"8","items":[],"next":"8"}]},
		"calls":{"r":{"result":{"b":9007199254740993,
		  "a":"<&>"}},"e":{"error":{"code":-1,"message":"m","data":[1.0]}}}`)
	s.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	s.want(`{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1.0.0"}}}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a", "n":1e2}],"nextCursor":"8"}}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"8"}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"8"}}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`)
	s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: prompts/list"}}`)
	s.call("r", "")
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"b":9007199254740993,		  "a":"<&>"}}`)
	s.call("e", "")
	s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":[1.0]}}`)
	s.in.Close()
	if code := s.exit(); code != 0 {
		t.Errorf("exit status %d after EOF", code)
	}
	events, err := ReadLog(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-2:]; last[0].Kind != "eof" || last[1].Kind != "exit" || last[1].Text != "0" {
		t.Errorf("log ends in %v", last)
	}
}

func TestFraming(t *testing.T) {
	const reply = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"answer of t · 世界"}]}}`
	for way, want := range map[string]string{
		FrameLog:         "DEBUG working\n" + reply,
		FrameJSONLog:     `{"level":"debug","msg":"working","time":1}` + "\n" + reply,
		FrameScalar:      "42\n" + reply,
		FrameBlank:       "\n\n" + reply,
		FrameBOM:         "\uFEFF" + reply,
		FrameCRLF:        reply + "\r",
		FrameTrailing:    reply + " \t ",
		FrameTwo:         reply + logNotification,
		FrameTwice:       reply + "\n" + reply,
		FrameChunks:      reply,
		FrameStringID:    strings.Replace(reply, `"id":1`, `"id":"1"`, 1),
		FrameNullID:      strings.Replace(reply, `"id":1`, `"id":null`, 1),
		FrameNoVersion:   strings.Replace(reply, `"jsonrpc":"2.0",`, ``, 1),
		FrameInvalidUTF8: strings.Replace(reply, "answer of t · 世界", "bad \xff\xfe bytes", 1),
		FramePretty:      "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,",
	} {
		t.Run(way, func(t *testing.T) {
			s := run(t, fmt.Sprintf(`"calls":{"t":{"framing":[%q]}}`, way))
			s.call("t", "")
			var got []string
			for range strings.Count(want, "\n") + 1 {
				got = append(got, s.line())
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("got  %q\nwant %q", strings.Join(got, "\n"), want)
			}
		})
	}
}

func TestChunksCutACharacter(t *testing.T) {
	parts := chunks([]byte(`{"a":"xäx"}`))
	if len(parts) != 3 || !bytes.HasSuffix(parts[0], []byte{0xC3}) || len(parts[1]) == 0 || len(parts[2]) == 0 {
		t.Errorf("cut into %q", parts)
	}
}

func TestStrictAndBanner(t *testing.T) {
	s := run(t, `"strict":true,"banner":["Server v1.2 starting"],"on_initialized":[{"jsonrpc":"2.0","method":"notifications/x"}]`)
	s.want("Server v1.2 starting")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"server not initialized"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}`)
	s.send(`nonsense`)
	if got := s.line(); !strings.Contains(got, `"id":null,"error":{"code":-32700`) {
		t.Errorf("got %s", got)
	}
}

func TestInitializeExits(t *testing.T) {
	s := run(t, `"methods":{"initialize":{"exit":3,"stderr_text":"config missing: X\n","delay_ms":1}}`)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if _, err := s.out.ReadByte(); err != io.EOF {
		t.Errorf("something on stdout: %v", err)
	}
	if code := s.exit(); code != 3 || s.stderr.String() != "config missing: X\n" {
		t.Errorf("exit status %d, stderr %q", code, s.stderr)
	}
}

func TestUntilStartAndTimes(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	members := fmt.Sprintf(`"starts":%q,"calls":{"t":{"error":{"code":-9,"message":"first"},"until_start":1,"times":1}}`, starts)
	for i, want := range [][2]bool{{true, false}, {false, false}} {
		s := run(t, members)
		for j := range 2 {
			s.call("t", "")
			if got := strings.Contains(s.line(), "first"); got != want[j] {
				t.Errorf("start %d, call %d: scripted answer %t", i+1, j+1, got)
			}
		}
	}
	if n, err := Starts(starts); n != 2 || err != nil {
		t.Errorf("%d starts, %v", n, err)
	}
}

func TestBuiltins(t *testing.T) {
	s := run(t, "")
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(s.line()), &listed); err != nil || len(listed.Result.Tools) != len(builtins()) {
		t.Errorf("%d tools listed, %v", len(listed.Result.Tools), err)
	}
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo", "x":1e2}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"name\":\"echo\", \"x\":1e2}"}],"structuredContent":{"name":"echo", "x":1e2}}}`)
	s.call("inc", "")
	s.line()
	s.call("inc", "")
	if got := s.line(); !strings.Contains(got, fmt.Sprintf(`"structuredContent":{"n":2,"pid":%d}`, s.cmd.Process.Pid)) {
		t.Errorf("inc: %s", got)
	}
	s.call("progress", `{"n":2}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":2,"message":"step 1"}}`)
	s.line()
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`)
	s.call("roots", "")
	s.want(`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}`)
	s.send(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`)
	if got := s.line(); !strings.HasSuffix(got, `"structuredContent":{"error":{"code":-32601,"message":"no"}}}}`) {
		t.Errorf("roots: %s", got)
	}
	s.call("big", `{"bytes":70000}`)
	if got := len(s.line()); got < 70000 || got > 70200 {
		t.Errorf("big: a line of %d bytes", got)
	}
	s.call("stderr", `{"bytes":262144}`)
	s.line()
	s.call("addtool", `{"name":"new"}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`)
	s.line()
	s.call("droptool", `{"name":"echo"}`)
	s.line()
	s.line()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := s.line(); !strings.Contains(got, `"name":"new"`) || strings.Contains(got, `"name":"echo"`) {
		t.Errorf("list after changes: %s", got)
	}
	s.call("exit", `{"code":7}`)
	if code := s.exit(); code != 7 {
		t.Errorf("exit status %d", code)
	}
	if got := s.stderr.Len(); got != 262144 {
		t.Errorf("%d bytes on stderr", got)
	}
}

func TestCancelled(t *testing.T) {
	s := run(t, "")
	s.call("slow", `{"ms":15000}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if e := s.await("cancelled"); e.Text != "1" {
		t.Errorf("cancelled %q", e.Text)
	}
	s.call("fast", "")
	if got := s.line(); !strings.Contains(got, "fast") {
		t.Errorf("got %s", got)
	}
}

func TestStubbornEnd(t *testing.T) {
	s := run(t, `"ignore_eof":true,"ignore_term":true,"grandchild":{"ignore_term":true}`)
	grandchild := s.await("hold").PID
	t.Cleanup(func() { syscall.Kill(grandchild, syscall.SIGKILL) })
	s.await("start")
	s.in.Close()
	s.await("eof")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await("signal")
	s.cmd.Process.Kill()
	s.exit()
	if err := syscall.Kill(grandchild, 0); err != nil {
		t.Errorf("the grandchild ended: %v", err)
	}
}

func TestSignalEnds(t *testing.T) {
	s := run(t, "")
	s.call("fast", "")
	s.line()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.exit(); code != 128+15 {
		t.Errorf("exit status %d", code)
	}
}

func TestOddScenario(t *testing.T) {
	var stderr bytes.Buffer
	if code := Main([]string{`{"tols":[]}`}, strings.NewReader(""), io.Discard, &stderr); code != exitUsage {
		t.Errorf("exit status %d", code)
	}
	if !strings.Contains(stderr.String(), "tols") {
		t.Errorf("stderr %q", &stderr)
	}
}
