package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// testRouter answers every method "test/..." by what its name says.
type testRouter struct {
	notified chan string
	causes   chan error
}

func (r *testRouter) Routes(method string) bool { return strings.HasPrefix(method, "test/") }

func (r *testRouter) Handle(ctx context.Context, s *Session, method string, params json.RawMessage) (json.RawMessage, *Error) {
	switch method {
	case "test/panic":
		panic("on purpose")
	case "test/hang":
		r.notified <- method
		<-ctx.Done()
		r.causes <- context.Cause(ctx)
		return nil, Errorf(CodeInternal, "cancelled")
	case "test/soon":
		time.Sleep(50 * time.Millisecond)
	case "test/ask":
		result, failure := s.Call(ctx, "sampling/createMessage", params)
		if failure != nil {
			return nil, failure
		}
		return result, nil
	}
	if params == nil {
		params = json.RawMessage("null")
	}
	return params, nil
}

func (r *testRouter) Notified(_ *Session, method string, _ json.RawMessage) { r.notified <- method }

// harness is a client on the other end of a Conn.
type harness struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	router *testRouter
	served chan error
	conn   *Conn
}

func start(t *testing.T) *harness {
	t.Helper()
	clientIn, in := io.Pipe()
	out, clientOut := io.Pipe()
	h := &harness{t: t, in: in, out: bufio.NewReader(out), served: make(chan error, 1),
		router: &testRouter{notified: make(chan string, 100), causes: make(chan error, 100)}}
	h.conn = NewConn(clientIn, clientOut, ConnOptions{Drain: time.Second})
	server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ServerOptions{
		Logger: slog.New(slog.DiscardHandler), Capabilities: &mcp.ServerCapabilities{}})
	go func() { h.served <- h.conn.Serve(t.Context(), h.router, server) }()
	t.Cleanup(func() { in.Close(); out.Close(); clientOut.Close() })
	return h
}

func (h *harness) send(lines ...string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, strings.Join(lines, "\n")+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

// next returns the next line of the Conn, which has to be JSON.
func (h *harness) next() string {
	h.t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	if !json.Valid([]byte(line)) {
		h.t.Fatalf("line %q is no JSON", line)
	}
	return strings.TrimSpace(line)
}

func (h *harness) want(line string) {
	h.t.Helper()
	if got := h.next(); got != line {
		h.t.Fatalf("got  %s\nwant %s", got, line)
	}
}

const greeting = `{"jsonrpc":"2.0","id":"init-1","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"tester","version":"1"}}}`

func (h *harness) greet() {
	h.t.Helper()
	h.send(greeting, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := h.next(); !strings.Contains(got, `"id":"init-1"`) || !strings.Contains(got, `"protocolVersion":"2025-06-18"`) {
		h.t.Fatalf("initialize: %s", got)
	}
	if got := <-h.router.notified; got != "notifications/initialized" {
		h.t.Fatalf("notified %s", got)
	}
}

func TestConnKeepsIDs(t *testing.T) {
	h := start(t)
	h.greet()
	for _, id := range []string{`1`, `"1"`, `9007199254740993`, `1.5`, `"a\u0062"`} {
		h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"test/echo","params":{"x":1e2}}`)
		h.want(`{"jsonrpc":"2.0","id":` + id + `,"result":{"x":1e2}}`)
		h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		h.want(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
}

func TestConnAnswersGarbage(t *testing.T) {
	h := start(t)
	h.greet()
	h.send("hello", `{"jsonrpc":"2.0","id":2,"method":"test/echo"}`)
	if got := h.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`) {
		t.Fatalf("garbage: %s", got)
	}
	h.want(`{"jsonrpc":"2.0","id":2,"result":null}`)
}

func TestConnAnswersPipelinedRequestsInOrder(t *testing.T) {
	h := start(t)
	lines := greeting + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"test/echo"}` + "\n"
	go func() {
		// What cannot be written is missed below.
		_, _ = io.WriteString(h.in, lines)
	}()
	if got := h.next(); !strings.Contains(got, `"id":"init-1"`) {
		t.Fatalf("first came %s", got)
	}
	h.want(`{"jsonrpc":"2.0","id":2,"result":null}`)
}

func TestConnRefusesBeforeInitialize(t *testing.T) {
	h := start(t)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"test/echo"}`)
	if got := h.next(); !strings.Contains(got, `"code":-32600`) {
		t.Fatal(got)
	}
}

func TestConnSurvivesPanics(t *testing.T) {
	h := start(t)
	h.greet()
	h.send(`{"jsonrpc":"2.0","id":1,"method":"test/panic"}`)
	if got := h.next(); !strings.Contains(got, `"code":-32603`) {
		t.Fatal(got)
	}
	h.send(`{"jsonrpc":"2.0","id":2,"method":"test/echo"}`)
	h.want(`{"jsonrpc":"2.0","id":2,"result":null}`)
}

func TestConnCancels(t *testing.T) {
	h := start(t)
	h.greet()
	h.send(`{"jsonrpc":"2.0","id":101,"method":"test/hang"}`)
	<-h.router.notified
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101,"reason":"enough"}}`)
	cause := <-h.router.causes
	if byClient, ok := cause.(*ErrCancelled); !ok || !strings.Contains(string(byClient.Params), "enough") {
		t.Fatalf("cause %v", cause)
	}
	// No answer comes for 101.
	h.send(`{"jsonrpc":"2.0","id":102,"method":"test/echo"}`)
	h.want(`{"jsonrpc":"2.0","id":102,"result":null}`)
}

func TestConnAsksTheClient(t *testing.T) {
	h := start(t)
	h.greet()
	h.send(`{"jsonrpc":"2.0","id":1,"method":"test/ask","params":{"q":1}}`)
	h.want(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"q":1}}`)
	h.send(`{"jsonrpc":"2.0","id":1,"result":{"big":9007199254740993}}`)
	h.want(`{"jsonrpc":"2.0","id":1,"result":{"big":9007199254740993}}`)
}

func TestConnAnswersBatches(t *testing.T) {
	h := start(t)
	h.greet()
	h.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"test/soon"}]`)
	h.want(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":null}]`)
}

func TestConnDrainsAtEOF(t *testing.T) {
	h := start(t)
	go func() {
		h.send(greeting, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"test/soon"}`)
		h.in.Close()
	}()
	h.next()
	h.want(`{"jsonrpc":"2.0","id":2,"result":null}`)
	if err := <-h.served; err != nil {
		t.Fatalf("serve: %v", err)
	}
}

func TestConnEndsWhenTheClientStopsReading(t *testing.T) {
	clientIn, in := io.Pipe()
	defer in.Close()
	out, clientOut := io.Pipe()
	out.Close()
	conn := NewConn(clientIn, clientOut, ConnOptions{})
	server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	go io.WriteString(in, greeting+"\n")
	if err := conn.Serve(t.Context(), &testRouter{}, server); err == nil {
		t.Fatal("no error")
	}
}

func TestConnTakesRandomParams(t *testing.T) {
	h := start(t)
	h.greet()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		params := randomJSON(random, 4)
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/echo","params":%s}`, i, params))
		h.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i, params))
	}
}

func randomJSON(r *rand.Rand, depth int) string {
	switch r.IntN(6 + min(depth, 1)*2) {
	case 0:
		return "null"
	case 1:
		return "-1.50e+3"
	case 2:
		return `"\ud83d\ude00 <&> \\"`
	case 3:
		return "12345678901234567890"
	case 4:
		return "{}"
	case 5:
		return "[ ]"
	case 6:
		return `{"k":` + randomJSON(r, depth-1) + `,"k": ` + randomJSON(r, depth-1) + `}`
	}
	return `[` + randomJSON(r, depth-1) + ` ,` + randomJSON(r, depth-1) + `]`
}
