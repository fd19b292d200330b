package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/wire"
)

// sdkServer is a server of the official SDK with a tool for each thing that a
// transport has to carry.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	add := func(name string, handler mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("big", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("0123456789abcdef", 1<<20/16)), nil
	})
	add("progress", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			n := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}
			if err := r.Session.NotifyProgress(ctx, n); err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	add("ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{
			Message:         string(r.Params.Arguments),
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		})
		if err != nil {
			return nil, err
		}
		return text(answer.Action), nil
	})
	add("grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add("grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text(""), nil })
		return text("ok"), nil
	})
	add("leave", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 30 * time.Millisecond})
		return text("back"), nil
	})
	return s
}

func streamable(o mcp.StreamableHTTPOptions) http.Handler {
	s := sdkServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
}

func firstText(a arrival) string {
	for item := range wire.Elements(wire.Member(a.Result, "content")) {
		s, _ := wire.String(wire.Member(item, "text"))
		return s
	}
	return "no content: " + string(a.Result) + string(a.Error)
}

func TestSDKServers(t *testing.T) {
	t.Parallel()
	old := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil)
	for _, c := range []struct {
		name, protocol string
		handler        http.Handler
		kind           string // of the link that is in use afterwards
	}{
		{"stateful", "streamable-http", streamable(mcp.StreamableHTTPOptions{}), "http"},
		{"stateless", "streamable-http", streamable(mcp.StreamableHTTPOptions{Stateless: true}), "http"},
		{"json", "http", streamable(mcp.StreamableHTTPOptions{JSONResponse: true}), "http"},
		{"stateless json", "auto", streamable(mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), "http"},
		{"resumable", "auto", streamable(mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}), "http"},
		{"sse", "sse", old, "sse"},
		{"sse behind auto", "auto", old, "sse"},
		{"sse behind http", "http", old, "sse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchGoroutines(t)
			p := dialPeer(t, serve(t, c.handler), func(o *httpOptions) { o.Protocol = c.protocol })
			p.handshake()
			tools := p.call("tools/list", `{}`)
			if !strings.Contains(string(tools.Result), `"progress"`) {
				t.Fatalf("tools/list: %s%s", tools.Result, tools.Error)
			}
			if got := firstText(p.call("tools/call", `{"name":"echo","arguments":{"n":9007199254740993}}`)); got != `{"n":9007199254740993}` {
				t.Errorf("echo: %s", got)
			}
			if got := firstText(p.call("tools/call", `{"name":"big"}`)); got != strings.Repeat("0123456789abcdef", 1<<20/16) {
				t.Errorf("big: %d bytes", len(got))
			}
			if e := p.call("tools/call", `{"name":"none"}`).Error; e == nil {
				t.Error("an unknown tool is no error")
			}
			l := p.link
			if f, ok := l.(*fallbackLink); ok {
				l = f.current()
			}
			if _, sse := l.(*sseLink); sse != (c.kind == "sse") {
				t.Errorf("link is %T", l)
			}
			if err := p.close(); err != nil {
				t.Errorf("close: %v", err)
			}
			<-p.link.Done()
			if p.link.Err() == nil {
				t.Error("no reason after close")
			}
			if _, err := p.send(t.Context(), "tools/list", `{}`); err == nil {
				t.Error("sent over a closed link")
			}
		})
	}
}

// Messages that come with a call carry its id; others carry none.
func TestSDKAttribution(t *testing.T) {
	watchGoroutines(t)
	p := dialPeer(t, serve(t, streamable(mcp.StreamableHTTPOptions{})), nil)
	p.handshake()

	id, err := p.send(t.Context(), "tools/call", `{"name":"progress","_meta":{"progressToken":"p"}}`)
	if err != nil {
		t.Fatal(err)
	}
	_, before := p.answer(id)
	if len(before) != 3 {
		t.Fatalf("%d messages came before the answer", len(before))
	}
	for i, a := range before {
		if got := string(wire.Member(a.Params, "progress")); a.during != id || got != string(rune('0'+i)) {
			t.Errorf("progress %d: during %d, %s", i, a.during, a.Params)
		}
	}

	asked := map[int64]string{}
	for _, who := range []string{"a", "b", "c"} {
		id, err := p.send(t.Context(), "tools/call", `{"name":"ask","arguments":{"who":"`+who+`"}}`)
		if err != nil {
			t.Fatal(err)
		}
		asked[id] = who
	}
	for answers := 0; answers < 3; {
		a := p.next()
		if a.IsResponse() {
			answers++
			if got := firstText(a); got != "decline" {
				t.Errorf("ask: %s", got)
			}
			continue
		}
		message, _ := wire.String(wire.Member(a.Params, "message"))
		if a.Method != "elicitation/create" || message != `{"who":"`+asked[a.during]+`"}` {
			t.Errorf("during %d (%s) came %s %s", a.during, asked[a.during], a.Method, a.Params)
		}
		frame := wire.Response(a.ID, []byte(`{"action":"decline"}`))
		if err := p.link.Send(t.Context(), outgoing{Frame: frame}); err != nil {
			t.Errorf("reply: %v", err)
		}
	}

	p.call("tools/call", `{"name":"grow"}`)
	if a := p.next(); a.Method != "notifications/tools/list_changed" || a.during != 0 {
		t.Errorf("on the listening stream came %s during %d", a.Method, a.during)
	}
}

// A server may end a stream before the answer and be asked for the rest.
func TestSDKResumption(t *testing.T) {
	watchGoroutines(t)
	p := dialPeer(t, serve(t, streamable(mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})), nil)
	p.handshake()
	start := time.Now()
	a := p.call("tools/call", `{"name":"leave"}`)
	if firstText(a) != "back" || a.during != p.last {
		t.Errorf("during %d: %s%s", a.during, a.Result, a.Error)
	}
	if time.Since(start) < 30*time.Millisecond {
		t.Error("came back before the server asked to")
	}
}

// One connection serves many calls at once and is used again.
func TestSDKConcurrentCalls(t *testing.T) {
	watchGoroutines(t)
	var mu sync.Mutex
	connections := map[string]bool{}
	sdk := streamable(mcp.StreamableHTTPOptions{})
	p := dialPeer(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.RemoteAddr] = true
		mu.Unlock()
		sdk.ServeHTTP(w, r)
	})), nil)
	p.handshake()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		id, err := p.send(ctx, "tools/call", `{"name":"echo","arguments":{}}`)
		if err != nil {
			t.Fatal(err)
		}
		p.answer(id)
		cancel()
	}
	mu.Lock()
	// One for the calls, one for the listening stream, and what the end of a
	// response that has not quite come may cost.
	if n := len(connections); n > 10 {
		t.Errorf("50 calls in a row took %d connections", n)
	}
	mu.Unlock()
	var all sync.WaitGroup
	for n := range int64(100) {
		all.Go(func() {
			id := 1000 + n
			frame := wire.Request(id, "tools/call", []byte(`{"name":"echo","arguments":{}}`))
			if err := p.link.Send(t.Context(), outgoing{Frame: frame, ID: id, Method: "tools/call"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for range 100 {
		a := p.next()
		seen[string(a.ID)] = true
		if firstText(a) != "{}" {
			t.Errorf("%s%s", a.Result, a.Error)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d different answers", len(seen))
	}
}
