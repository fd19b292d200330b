package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// answerTime bounds the wait for one message; it only matters to a test that
	// fails.
	answerTime = 20 * time.Second
	// leaveTime is how long the program may take to end after its client left.
	leaveTime = 6 * time.Second
)

// message is one JSON-RPC message as it came over the pipe; the raw members are
// verbatim, nil when absent.
type message struct {
	Raw    json.RawMessage `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	At     time.Time       `json:"-"`
}

// code is the error code of an answer, 0 when it is no error.
func (m message) code() int {
	var e struct{ Code int }
	_ = json.Unmarshal(m.Error, &e)
	return e.Code
}

// errorText is the message of an error answer.
func (m message) errorText() string {
	var e struct{ Message string }
	_ = json.Unmarshal(m.Error, &e)
	return e.Message
}

// isError reports whether the answer is a tool result that tells of a failure.
func (m message) isError() bool { return string(at(m.Result, "isError")) == "true" }

// text is the text of the first content block of a tool result.
func (m message) text() string { return stringAt(m.Result, "content", "0", "text") }

// proxy is the program serving one client, which is the test, over pipes. A
// test uses it from one goroutine.
type proxy struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // holds mcp_config.json, data and home
	stdin  io.WriteCloser
	lastID int
	inbox  []message // read, and not yet taken
	exited chan struct{}

	mu     sync.Mutex
	queue  []message
	ended  bool // stdout is at its end
	arrive chan struct{}
	stderr bytes.Buffer
	spoke  chan struct{} // stderr has more
}

// startProxy runs the program in direct mode with this configuration, in a
// folder and a home of its own. When the test ends the program must leave by
// itself, and must not have panicked.
func startProxy(t *testing.T, config string, args ...string) *proxy {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	return startProxyIn(t, dir, config, args...)
}

// startProxyIn is startProxy in the folder of another instance, whose data it
// shares; an empty config keeps the file that is there.
func startProxyIn(t *testing.T, dir, config string, args ...string) *proxy {
	t.Helper()
	return startProxyWith(t, dir, config, nil, args...)
}

// startProxyWith is startProxyIn with more environment variables, NAME=VALUE.
func startProxyWith(t *testing.T, dir, config string, environ []string, args ...string) *proxy {
	t.Helper()
	if config != "" {
		if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startProgram(t, "mcpproxy", dir, environ, args...)
}

// startProgram starts a program that is some mcpproxy in such a folder.
func startProgram(t *testing.T, program, dir string, environ []string, args ...string) *proxy {
	t.Helper()
	p := &proxy{t: t, dir: dir, arrive: make(chan struct{}, 1), spoke: make(chan struct{}, 1), exited: make(chan struct{})}
	p.cmd = exec.Command(program, append([]string{"--mode", "direct", "--config", filepath.Join(dir, "mcp_config.json"), "--data-dir", filepath.Join(dir, "data")}, args...)...)
	p.cmd.Dir = dir
	// The race detector would make every process take a second to end.
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "USERPROFILE=" + filepath.Join(dir, "home"), "GORACE=atexit_sleep_ms=0"}
	p.cmd.Env = append(p.cmd.Env, environ...)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { p.readStdout(stdout) })
	pumps.Go(func() { p.readStderr(stderr) })
	go func() {
		pumps.Wait()
		_ = p.cmd.Wait() // the status is in ProcessState
		close(p.exited)
	}()
	t.Cleanup(p.finish)
	return p
}

func (p *proxy) readStdout(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			m := message{Raw: line, At: time.Now()}
			if err := json.Unmarshal(line, &m); err != nil && line[0] != '[' {
				m.Method = "no JSON: " + err.Error()
			}
			p.mu.Lock()
			p.queue = append(p.queue, m)
			p.mu.Unlock()
		}
		if err != nil {
			p.mu.Lock()
			p.ended = true
			p.mu.Unlock()
		}
		nudge(p.arrive)
		if err != nil {
			return
		}
	}
}

func (p *proxy) readStderr(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.mu.Lock()
		p.stderr.Write(buf[:n])
		p.mu.Unlock()
		nudge(p.spoke)
		if err != nil {
			return
		}
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// finish ends a program that the test did not close itself.
func (p *proxy) finish() {
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(leaveTime):
		p.t.Errorf("the program is there %v after its client left", leaveTime)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.awaitHub()
	text := p.stderrText()
	if strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
		p.t.Errorf("stderr: %s", text)
	} else if p.t.Failed() {
		p.t.Logf("stderr: %s", text)
	}
}

// awaitHub waits until the hub has left, if this was its last instance: it would
// still write into the folder while that is removed.
func (p *proxy) awaitHub() {
	for end := time.Now().Add(hubIdle + endOfAll); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if p.count("mcpproxy", "hub-run") == 0 || p.count("mcpproxy", "--mode") > 0 {
			return
		}
	}
}

// close leaves as clients do, by closing the program's stdin, and returns its
// exit status.
func (p *proxy) close() int {
	p.t.Helper()
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(leaveTime):
		p.t.Fatalf("the program is there %v after its client left", leaveTime)
	}
	return p.cmd.ProcessState.ExitCode()
}

// command runs another command of the program on the same files and returns
// what it prints.
func (p *proxy) command(args ...string) []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mcpproxy", append(args, "--config", filepath.Join(p.dir, "mcp_config.json"), "--data-dir", filepath.Join(p.dir, "data"))...)
	cmd.Dir, cmd.Env = p.dir, p.cmd.Env
	out, err := cmd.Output()
	if err != nil {
		p.t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

// stderrText is what the program has said so far.
func (p *proxy) stderrText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// awaitStderr waits until the program has said that.
func (p *proxy) awaitStderr(part string) {
	p.t.Helper()
	end := time.After(answerTime)
	for !strings.Contains(p.stderrText(), part) {
		select {
		case <-p.spoke:
		case <-end:
			p.t.Fatalf("%q is not on stderr: %s", part, p.stderrText())
		}
	}
}

// send writes one line.
func (p *proxy) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("write to the program: %v\nstderr: %s", err, p.stderrText())
	}
}

// errSilent and errEnded say why there is no message.
var (
	errSilent = errors.New("no message in time")
	errEnded  = errors.New("stdout is at its end")
)

// read moves the next message into the inbox.
func (p *proxy) read(end <-chan time.Time) error {
	for {
		p.mu.Lock()
		queue, ended := p.queue, p.ended
		p.queue = nil
		p.mu.Unlock()
		if len(queue) > 0 {
			p.inbox = append(p.inbox, queue...)
			return nil
		}
		if ended {
			return errEnded
		}
		select {
		case <-p.arrive:
		case <-end:
			return errSilent
		}
	}
}

// take waits for a message that matches and takes it out of the inbox; others
// stay there in order.
func (p *proxy) take(timeout time.Duration, match func(message) bool) (message, error) {
	end := time.After(timeout)
	for seen := 0; ; {
		for ; seen < len(p.inbox); seen++ {
			if m := p.inbox[seen]; match(m) {
				p.inbox = append(p.inbox[:seen:seen], p.inbox[seen+1:]...)
				return m, nil
			}
		}
		if err := p.read(end); err != nil {
			return message{}, err
		}
	}
}

// next takes the next message, whatever it is; none within the timeout fails
// the test.
func (p *proxy) next(timeout time.Duration) message {
	p.t.Helper()
	m, err := p.take(timeout, func(message) bool { return true })
	if err != nil {
		p.t.Fatalf("%v\nstderr: %s", err, p.stderrText())
	}
	return m
}

// await takes the next message that asks or tells with this method.
func (p *proxy) await(method string) message {
	p.t.Helper()
	m, err := p.take(answerTime, func(m message) bool { return m.Method == method })
	if err != nil {
		p.t.Fatalf("%s: %v\nstderr: %s", method, err, p.stderrText())
	}
	return m
}

// taken takes all messages of this method that have arrived. Whoever wants to
// be sure that none is missing makes a request first: what was sent before its
// answer is there.
func (p *proxy) taken(method string) []message {
	var all []message
	for {
		m, err := p.take(0, func(m message) bool { return m.Method == method })
		if err != nil {
			return all
		}
		all = append(all, m)
	}
}

// start sends a request and returns its id.
func (p *proxy) start(method, params string) int {
	p.t.Helper()
	p.lastID++
	if params != "" {
		params = `,"params":` + params
	}
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, p.lastID, method, params))
	return p.lastID
}

// wait takes the answer to the request with this id.
func (p *proxy) wait(id int) message {
	p.t.Helper()
	return p.waitRaw(fmt.Sprint(id))
}

// waitRaw is wait for an id in raw JSON.
func (p *proxy) waitRaw(id string) message {
	p.t.Helper()
	m, err := p.take(answerTime, func(m message) bool { return m.Method == "" && string(m.ID) == id })
	if err != nil {
		p.t.Fatalf("answer to request %s: %v\nstderr: %s", id, err, p.stderrText())
	}
	return m
}

// call makes a request and waits for its answer; params may be empty.
func (p *proxy) call(method, params string) message {
	p.t.Helper()
	return p.wait(p.start(method, params))
}

// tool calls a tool and waits for its answer; an empty arguments is {}.
func (p *proxy) tool(name, arguments string) message {
	p.t.Helper()
	return p.wait(p.startTool(name, arguments))
}

// startTool sends the call of a tool and returns its id.
func (p *proxy) startTool(name, arguments string) int {
	p.t.Helper()
	if arguments == "" {
		arguments = "{}"
	}
	return p.start("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// answer answers a request of the program; outcome is `"result":...` or
// `"error":...`.
func (p *proxy) answer(m message, outcome string) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, outcome))
}

// initialize does the handshake of protocol 2025-11-25 as a client that no
// table knows and returns the answer; empty capabilities are {}.
func (p *proxy) initialize(capabilities string) message {
	p.t.Helper()
	return p.initializeAs("test", "2025-11-25", capabilities)
}

// initializeAs does the handshake with a client name and a protocol version.
func (p *proxy) initializeAs(client, version, capabilities string) message {
	p.t.Helper()
	if capabilities == "" {
		capabilities = "{}"
	}
	m := p.call("initialize", fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":%q,"version":"1.0.0"}}`, version, capabilities, client))
	if m.Error != nil {
		p.t.Fatalf("initialize: %s", m.Error)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// list returns the raw items of a list by their names (tools, prompts), or URIs
// (resources, resourceTemplates), and the names in order.
func (p *proxy) list(member string) (map[string]json.RawMessage, []string) {
	p.t.Helper()
	method, key := member+"/list", "name"
	switch member {
	case "resources":
		key = "uri"
	case "resourceTemplates":
		method, key = "resources/templates/list", "uriTemplate"
	}
	m := p.call(method, "")
	if m.Error != nil {
		p.t.Fatalf("%s: %s", method, m.Error)
	}
	var result map[string]json.RawMessage
	var items []json.RawMessage
	if err := json.Unmarshal(m.Result, &result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	if err := json.Unmarshal(result[member], &items); err != nil || items == nil {
		p.t.Fatalf("%s: %v in %s", method, err, m.Result)
	}
	all := map[string]json.RawMessage{}
	var names []string
	for _, item := range items {
		name := stringAt(item, key)
		if all[name] != nil && key == "name" {
			p.t.Errorf("%s: %q is listed twice", method, name)
		}
		all[name] = item
		names = append(names, name)
	}
	return all, names
}
