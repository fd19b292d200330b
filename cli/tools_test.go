package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/upstream"
	"mcpproxy/testdata/stub"
)

// withStub gives an invocation a home folder with one server "stub", a process
// that does what the scenario says, and real surroundings.
func withStub(t *testing.T, scenario string) func(*Env) {
	t.Helper()
	program, err := exec.LookPath("mcpproxy")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "scenario.json"), scenario)
	writeFile(t, filepath.Join(home, ".mcpproxy", "mcp_config.json"),
		fmt.Sprintf(`{"share_upstreams": false, "mcpServers": {"stub": {"command": "mcpstub", "args": [%q]}}}`, filepath.Join(home, "scenario.json")))
	return func(env *Env) {
		env.Home, env.Dir, env.Executable = home, home, program
		env.Environ = append(os.Environ(), "TERM=xterm")
		env.Now = time.Now
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestToolsOnTerminal checks what a person sees: a table, a description that is
// text, and nothing of a server that steers the terminal.
func TestToolsOnTerminal(t *testing.T) {
	const scenario = `{"tools": [
		{"name": "paint", "description": "Paints\u001b[2J a wall.\nIn \u202ered.", "inputSchema": {"type": "object", "properties": {"wall": {"type": "string"}}}},
		{"name": "look", "annotations": {"readOnlyHint": true}}],
		"calls": {"look": {"result": {"content": [{"type": "text", "text": "a\twall\r\n\u001b]0;title\u0007"}]}}}}`
	stub := withStub(t, scenario)
	terminal := func(env *Env) {
		stub(env)
		env.IsTerminal = terminals(Stdout)
		env.Environ = append(env.Environ, "NO_COLOR=1")
	}
	for _, test := range []struct{ line, want string }{
		{"tools list", "" +
			"TOOL   TIER         SERVER  DESCRIPTION\n" +
			"paint  destructive  stub    Paints\\x1b[2J a wall.\n" +
			"look   read         stub\n"},
		{"tools list --all", "" +
			"TOOL   TIER         STATE   SERVER  DESCRIPTION\n" +
			"paint  destructive  usable  stub    Paints\\x1b[2J a wall.\n" +
			"look   read         usable  stub\n"},
		{"tools show stub:paint", "" +
			"tool         paint\n" +
			"server       stub\n" +
			"public_name  stub__paint\n" +
			"tier         destructive\n" +
			"argument     wall (string)\n" +
			"\n" +
			"Paints\\x1b[2J a wall.\nIn \\u202ered.\n"},
		{"tools call stub:look", "a\twall\n\\x1b]0;title\\x07\n"},
	} {
		got := invokeWith(t, terminal, strings.Fields(test.line)...)
		if got.code != 0 || got.stderr != "" || got.stdout != test.want {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%s\n%q\nwant\n%q", test.line, got.code, got.stderr, got.stdout, got.stdout, test.want)
		}
	}
	// A pipe gets the bytes of the server.
	got := invokeWith(t, stub, "tools", "call", "stub:look")
	if want := "a\twall\r\n\x1b]0;title\x07\n"; got.stdout != want {
		t.Errorf("to a pipe: %q, want %q", got.stdout, want)
	}
}

// TestWatchedCall checks that a person sees progress after a while, and log
// messages, on stderr, and that nobody else gets a word.
func TestWatchedCall(t *testing.T) {
	watching := func(change func(*Env)) func(*Env) {
		return func(env *Env) {
			change(env)
			env.IsTerminal = terminals(Stderr)
		}
	}
	stub := withStub(t, `{}`)
	args := []string{"tools", "call", "stub:progress", "--args", `{"n": 2, "interval_ms": 400}`}
	got := invokeWith(t, watching(stub), args...)
	if want := "\r\x1b[Kstub 2/2 step 2\r\x1b[K"; got.code != 0 || got.stdout != "done\n" || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("exit code %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
	}
	for name, change := range map[string]func(*Env){
		"no terminal": stub,
		"dumb": func(env *Env) {
			watching(stub)(env)
			env.Environ = append(env.Environ, "TERM=dumb")
		},
	} {
		if got := invokeWith(t, change, args...); got.code != 0 || got.stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q", name, got.code, got.stderr)
		}
	}
	args = []string{"tools", "call", "stub:log", "--args", `{"level": "error", "data": "line\u001b[2J\nmcpproxy: hint: rm"}`}
	got = invokeWith(t, watching(stub), args...)
	if want := "mcpproxy: stub error: line\\x1b[2J\nmcpproxy: mcpproxy: hint: rm\n"; got.stderr != want {
		t.Errorf("log: %q, want %q", got.stderr, want)
	}
	if got := invokeWith(t, watching(stub), append([]string{"-q"}, args...)...); got.stderr != "" {
		t.Errorf("log with -q: %q", got.stderr)
	}
}

// TestProgressDelay checks that progress is shown after a while only, in one
// line of the terminal, and goes away.
func TestProgressDelay(t *testing.T) {
	now := testNow()
	var stderr strings.Builder
	a := &app{Env: Env{Stderr: &stderr, IsTerminal: terminals(Stderr), Columns: func() int { return 24 }, Now: func() time.Time { return now }}}
	w := newWatcher(a, "stub")
	progress := func(params string) { w.Notify("notifications/progress", json.RawMessage(params)) }
	progress(`{"progress":1}`)
	now = now.Add(progressDelay)
	progress(`{"progress":1.5,"total":3,"message":"a long \u001b[2Jmessage"}`)
	progress(`{"progress":2,"total":null}`)
	w.Notify("notifications/message", json.RawMessage(`{"level":"info","data":{"a":1}}`))
	progress(`{"progress":3}`)
	w.end()
	progress(`{"progress":4}`)
	want := "\r\x1b[Kstub 1.5/3 a long \\x1b…" + "\r\x1b[Kstub 2" + "\r\x1b[K" + "mcpproxy: stub info: {\"a\":1}\n" + "\r\x1b[Kstub 3" + "\r\x1b[K"
	if got := stderr.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestCallIsAskedNothing checks that a server that asks its client is refused.
func TestCallIsAskedNothing(t *testing.T) {
	stub := withStub(t, `{}`)
	for _, tool := range []string{"sample", "elicit", "roots"} {
		got := invokeWith(t, stub, "tools", "call", "stub:"+tool)
		if !strings.Contains(got.stdout, "-32601") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", tool, got.code, got.stdout, got.stderr)
		}
	}
}

// TestInterruptedCall checks that Ctrl-C cancels the call at the server and
// leaves no process.
func TestInterruptedCall(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events")
	change := withStub(t, fmt.Sprintf(`{"log": %q}`, events))
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	env := Env{
		Args: []string{"tools", "call", "stub:slow", "--args", `{"ms": 60000}`}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		IsTerminal: terminals(), Columns: func() int { return 80 },
	}
	change(&env)
	var running sync.WaitGroup
	code := 0
	running.Go(func() { code = Main(ctx, env) })
	await := func(kind, text string) stub.Event {
		t.Helper()
		limit, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		e, err := stub.Await(limit, events, func(e stub.Event) bool { return e.Kind == kind && strings.Contains(e.Text, text) })
		if err != nil {
			t.Error(err)
		}
		return e
	}
	await("recv", `"tools/call"`)
	interrupt()
	await("cancelled", "")
	running.Wait()
	if code != exitInterrupted || stdout.Len()+stderr.Len() > 0 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	await("exit", "")
}

// TestRestart has a running instance start a server again.
func TestRestart(t *testing.T) {
	change := withStub(t, `{}`)
	var env Env
	change(&env)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cmd := exec.Command(env.Executable, "--mode", "direct")
	cmd.Dir, cmd.Stderr = env.Home, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+env.Home, "USERPROFILE="+env.Home)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	pid := func() string {
		t.Helper()
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "stub__pid"})
		if err != nil {
			t.Fatal(err)
		}
		if res.IsError {
			return "" // between the two
		}
		return textOf(res)
	}
	before := pid()
	if got := invokeWith(t, change, "restart", "stub"); got.code != 0 {
		t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
	}
	late := time.After(15 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for now := before; now == before || now == ""; now = pid() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the server was not started again")
		}
	}
}

// TestContentOf tells texts from what has none.
func TestContentOf(t *testing.T) {
	for block, want := range map[string][2]string{
		`{"type":"text","text":"a"}`: {"a", ""},
		`{"type":"text"}`:            {"", ""},
		`{"type":"resource","resource":{"uri":"x:y","text":""}}`:     {"", ""},
		`{"type":"resource","resource":{"uri":"x:y","blob":"AA=="}}`: {"", "resource x:y"},
		`{"type":"resource_link","uri":"x:y"}`:                       {"x:y", ""},
		`{"type":"audio","mimeType":"audio/wav","data":"AAAA"}`:      {"", "audio audio/wav, 4 bytes of base64"},
		`{"type":"new","text":"a"}`:                                  {"", `content of type "new"`},
		`{}`:                                                         {"", `content of type ""`},
		`"text"`:                                                     {"", `content of type ""`},
	} {
		if text, other := contentOf(json.RawMessage(block)); text != want[0] || other != want[1] {
			t.Errorf("%s: %q, %q; want %q", block, text, other, want)
		}
	}
}

// TestUnreachable checks the exit code for each way of being unreachable.
func TestUnreachable(t *testing.T) {
	for state, want := range map[upstream.State]int{upstream.Unavailable: exitUnavailable, upstream.Idle: exitUnavailable, upstream.NeedsLogin: exitLogin} {
		err := unreachable(upstream.Status{Name: "s", State: state, Reason: "why"})
		if got := exitCode(t.Context(), err); got != want {
			t.Errorf("%s: %d, want %d", state, got, want)
		}
	}
}

// TestCheckOnTerminal checks the lines for a person and that a server that does
// not answer ends its own probe alone.
func TestCheckOnTerminal(t *testing.T) {
	change := withStub(t, `{"tools": [{"name": "a"}]}`)
	var env Env
	change(&env)
	writeFile(t, filepath.Join(env.Home, "mute.json"), `{"methods": {"initialize": {"never": true}}}`)
	writeFile(t, filepath.Join(env.Home, ".mcpproxy", "mcp_config.json"), `{"mcpServers": {
		"good": {"command": "mcpstub", "args": ["scenario.json"]},
		"mute": {"command": "mcpstub", "args": ["mute.json"], "init_timeout": "3s"},
		"off": {"command": "mcpstub", "disabled": true}}}`)
	got := invokeWith(t, func(env *Env) {
		change(env)
		env.IsTerminal = terminals(Stdout)
		env.Environ = append(env.Environ, "NO_COLOR=1")
		env.Now = testNow
	}, "list", "--check")
	want := "" +
		"NAME  STATE        TOOLS  TOOK   ERROR\n" +
		"off   disabled            0.0s\n" +
		"good  ready        1      0.0s\n" +
		"mute  unavailable         0.0s   not connected within 3s (init_timeout)\n"
	if got.code != exitUnavailable || got.stdout != want {
		t.Errorf("exit code %d, stderr %q, stdout\n%s\nwant\n%s", got.code, got.stderr, got.stdout, want)
	}
}

// TestProbeLimit checks that a probe ends with its time, whatever the server's
// own limits are.
func TestProbeLimit(t *testing.T) {
	change := withStub(t, `{"methods": {"initialize": {"never": true}}}`)
	env := Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, IsTerminal: terminals()}
	change(&env)
	a := &app{Env: env}
	cfg, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	core := a.hushed().compose(t.Context(), cfg, ofCommand())
	defer core.close(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s := standing{server: &cfg.Servers[0]}
	core.probe(ctx, a, &s)
	if s.state != stateUnavailable || s.err != "no answer within 30s" {
		t.Errorf("%s: %s", s.state, s.err)
	}
}
