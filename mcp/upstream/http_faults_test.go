package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/mcp/wire"
)

// stubPeer is a peer past its handshake with a server that answers by call.
func stubPeer(t *testing.T, call func(http.ResponseWriter, *http.Request, wire.Message)) *httpPeer {
	t.Helper()
	watchGoroutines(t)
	p := dialPeer(t, serve(t, stub{call: call}), nil)
	p.handshake()
	return p
}

// A status without success is an error of Send that tells what to do about it.
func TestHTTPStatus(t *testing.T) {
	for _, c := range []struct {
		name       string
		code       int
		body       string
		want       error // nil: only *statusError
		transient  bool
		text       string
		answerText string // the error came as the answer to the request
	}{
		{name: "login", code: 401, body: "who are you", want: errUnauthorized, text: "401 Unauthorized: who are you"},
		{name: "login, JSON-RPC", code: 401, body: `{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m"}}`, want: errUnauthorized},
		{name: "scope", code: 403, body: "no", text: "403 Forbidden: no"},
		{name: "session", code: 404, body: "session not found", want: errSessionExpired},
		{name: "session, JSON-RPC", code: 404, body: `{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}`, want: errSessionExpired},
		{name: "session as 400", code: 400, body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, want: errSessionExpired},
		{name: "session as vendor error", code: 400, body: `{"jsonrpc":"2.0","id":2,"error":{"code":-30001,"message":"The provided SessionId was not found or has expired, please re-initialize"}}`, want: errSessionExpired},
		{name: "bad request", code: 400, body: "malformed", text: "400 Bad Request: malformed"},
		{name: "answer with 400", code: 400, body: `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"bad","data":{"x":1}}}`, answerText: `{"code":-32602,"message":"bad","data":{"x":1}}`},
		{name: "answer with 404", code: 404, body: `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such method"}}`, answerText: `{"code":-32601,"message":"no such method"}`},
		{name: "too large", code: 413, body: "<html>\nlong</html>", text: "server answered 413 Request Entity Too Large"},
		{name: "overload", code: 429, transient: true, text: "429"},
		{name: "internal", code: 500, body: "oops\nstack", transient: true, text: "500 Internal Server Error: oops"},
		{name: "down", code: 503, transient: true, text: "503"},
		{name: "redirect to GET", code: 303, text: "303 See Other to http://elsewhere.example/p?k=***, which is not followed"},
		{name: "redirect elsewhere", code: 307, text: "307 Temporary Redirect to http://elsewhere.example/p?k=***, which is not followed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := stubPeer(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				if string(m.ID) == "3" {
					reply(w, m, `"fine"`)
					return
				}
				w.Header().Set("WWW-Authenticate", `Bearer realm="x"`)
				if c.code < 400 {
					w.Header().Set("Location", "http://elsewhere.example/p?k=v#f")
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			id, err := p.send(t.Context(), "tools/call", `{}`)
			if c.answerText != "" {
				if err != nil {
					t.Fatal(err)
				}
				if a, _ := p.answer(id); string(a.Error) != c.answerText {
					t.Errorf("answer: %s", a.Error)
				}
				return
			}
			var status *statusError
			if !errors.As(err, &status) {
				t.Fatalf("error is %v", err)
			}
			if status.Code != c.code || status.WWWAuthenticate != `Bearer realm="x"` || status.Body != c.body {
				t.Errorf("status %+v", status)
			}
			for _, sentinel := range []error{errUnauthorized, errSessionExpired} {
				if errors.Is(err, sentinel) != (sentinel == c.want) {
					t.Errorf("%v is %v: %v", err, sentinel, sentinel != c.want)
				}
			}
			if transientHTTP(err) != c.transient {
				t.Errorf("transient: %v", !c.transient)
			}
			if !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "session expired: "), "POST http://127.0.0.1:") {
				t.Errorf("text is %q", err)
			}
			_, err = p.send(t.Context(), "tools/call", `{}`)
			if expired := c.want == errSessionExpired; errors.Is(err, errSessionExpired) != expired || !expired && err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// A session that the server forgets has to be made anew; the new link works.
func TestHTTPSessionForgotten(t *testing.T) {
	watchGoroutines(t)
	var sessions, calls, deleted atomic.Int64
	used := map[string]bool{}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := rpc(r)
		switch {
		case r.Method == http.MethodDelete:
			deleted.Add(1)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", string(rune('a'+sessions.Add(1))))
			reply(w, m, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
		case !m.IsRequest():
			w.WriteHeader(http.StatusAccepted)
		case used[r.Header.Get("Mcp-Session-Id")]:
			http.Error(w, "session not found", http.StatusNotFound)
		default:
			used[r.Header.Get("Mcp-Session-Id")] = true
			if v := r.Header.Get("MCP-Protocol-Version"); v != "2025-06-18" {
				t.Errorf("protocol version %q", v)
			}
			calls.Add(1)
			reply(w, m, `{}`)
		}
	}))
	for range 3 {
		p := dialPeer(t, url, nil)
		p.handshake()
		p.call("tools/call", `{}`)
		if _, err := p.send(t.Context(), "tools/call", `{}`); !errors.Is(err, errSessionExpired) {
			t.Fatalf("second call: %v", err)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 3 || sessions.Load() != 3 || deleted.Load() != 0 {
		t.Errorf("%d calls in %d sessions, %d deleted", calls.Load(), sessions.Load(), deleted.Load())
	}
}

func TestHTTPCloseLeavesSession(t *testing.T) {
	watchGoroutines(t)
	left := make(chan string, 2)
	p := dialPeer(t, serve(t, stub{deleted: func(s string) { left <- s }}), nil)
	p.handshake()
	for range 2 {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
	if got := <-left; got != "session-1" || len(left) > 0 {
		t.Errorf("left %q and %d more", got, len(left))
	}
}

// A server that accepts connections and says nothing costs what the caller
// allows, and two seconds at the end.
func TestHTTPBlackHole(t *testing.T) {
	watchGoroutines(t)
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	for _, protocol := range []string{"auto", "streamable-http"} {
		p := dialPeer(t, "http://"+hole.Addr().String(), func(o *httpOptions) { o.Protocol = protocol })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err = p.send(ctx, "initialize", `{}`)
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
			t.Errorf("%s: %v after %v", protocol, err, took)
		}
		if transientHTTP(err) {
			t.Error("the caller's deadline is no failure of the server")
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = newSSELink(ctx, httpOptions{URL: "http://" + hole.Addr().String()}, nil)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
		t.Errorf("sse: %v after %v", err, took)
	}
}

// A server that hangs does not hold up Close, and no call hangs.
func TestHTTPCloseWithHungServer(t *testing.T) {
	watchGoroutines(t)
	release := make(chan struct{})
	hung := stub{call: func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if m.Method == "stream" {
			events(w)(": hello\n\n")
		}
		<-release
	}, deleted: func(string) { <-release }}
	p := dialPeer(t, serve(t, hung), nil)
	t.Cleanup(func() { close(release) })
	p.handshake()
	id, err := p.send(t.Context(), "stream", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	silent := make(chan error, 1)
	go func() {
		frame := wire.Request(99, "silent", nil)
		silent <- p.link.Send(t.Context(), outgoing{Frame: frame, ID: 99, Method: "silent"})
	}()
	if err := p.close(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	a, _ := p.answer(id)
	p.wantError(a, "connection closed")
	if err := <-silent; !errors.Is(err, errHTTPClosed) {
		t.Errorf("send: %v", err)
	}
}

func TestHTTPUnreachable(t *testing.T) {
	watchGoroutines(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, protocol := range []string{"auto", "http", "streamable-http", "sse"} {
		p, err := tryPeer(t, "http://"+gone.Addr().String(), func(o *httpOptions) { o.Protocol = protocol })
		if err == nil {
			_, err = p.send(t.Context(), "initialize", `{}`)
		}
		if err == nil || !transientHTTP(err) || strings.Contains(err.Error(), "SSE") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// What breaks off before the answer is answered by the link, and what the
// server numbers is asked for again.
func TestHTTPBrokenStreams(t *testing.T) {
	const last = `data: {"jsonrpc":"2.0","id":2,"result":{"ok":true}}` + "\n\n"
	for _, c := range []struct {
		name  string
		first func(http.ResponseWriter)
		again []func(http.ResponseWriter, *http.Request)
		want  string // of our error; empty: the answer came
	}{
		{name: "connection lost before headers", first: func(http.ResponseWriter) { cut() }, want: "connection lost before the answer"},
		{name: "cut without ids", first: func(w http.ResponseWriter) {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: {\"js")
			cut()
		}, want: "read stream: unexpected EOF"},
		{name: "ended without ids", first: func(w http.ResponseWriter) { events(w)(": nothing\n\n") }, want: "stream ended before the answer"},
		{name: "cut in JSON", first: func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jsonrpc"`)
			_ = http.NewResponseController(w).Flush()
			cut()
		}, want: "read answer: unexpected EOF"},
		{name: "half an answer", first: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":2,"result":{`) }, want: "answer cannot be read"},
		{name: "no JSON", first: func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>\n<b>hi</b></html>") }, want: `server sent no answer but "<html>"`},
		{name: "another's answer", first: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":77,"result":{}}`) }, want: "stream ended before the answer"},
		{name: "200 without content", first: func(http.ResponseWriter) {}, want: "server answered 200 without content"},
		{name: "202", first: func(w http.ResponseWriter) { w.WriteHeader(202) }, want: "server answered 202 without content"},
		{name: "204", first: func(w http.ResponseWriter) { w.WriteHeader(204) }, want: "server answered 204 without content"},
		{name: "garbage in the stream", first: func(w http.ResponseWriter) { events(w)("data: loading...\n\n") }, want: `before the answer; it held "loading..."`},
		{
			name:  "resumed",
			first: func(w http.ResponseWriter) { events(w)("id: e1\ndata:\n\n"); cut() },
			again: []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, r *http.Request) {
				if id := r.Header.Get("Last-Event-ID"); id != "e1" {
					http.Error(w, "resumed from "+id, 400)
					return
				}
				events(w)(last)
			}},
		},
		{
			name:  "resumed on the fourth try",
			first: func(w http.ResponseWriter) { events(w)("retry: 1\nid: e1\ndata:\n\n") },
			again: []func(http.ResponseWriter, *http.Request){
				func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 503) },
				func(w http.ResponseWriter, _ *http.Request) { events(w)("id: e2\ndata:\n\n"); cut() },
				func(http.ResponseWriter, *http.Request) { cut() },
				func(w http.ResponseWriter, r *http.Request) {
					if id := r.Header.Get("Last-Event-ID"); id == "e2" {
						events(w)(last)
					}
				},
			},
		},
		{name: "half an answer in an event", first: func(w http.ResponseWriter) {
			events(w)("id: e1\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\n\n")
		}, want: "answer cannot be read"},
		{name: "resumption refused", first: func(w http.ResponseWriter) { events(w)("id: e1\ndata:\n\n"); cut() }, want: "resume stream: GET"},
		{
			name:  "never anything new",
			first: func(w http.ResponseWriter) { events(w)("retry: 1\nid: e1\ndata:\n\n") },
			again: make([]func(http.ResponseWriter, *http.Request), 100),
			want:  "stream broke 6 times in a row",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchGoroutines(t)
			var gets atomic.Int64
			url := serve(t, stub{
				call: func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { c.first(w) },
				get: func(w http.ResponseWriter, r *http.Request) {
					n := int(gets.Add(1)) - 1
					switch {
					case r.Header.Get("Last-Event-ID") == "":
						gets.Add(-1) // the listening stream
						http.Error(w, "", 405)
					case n >= len(c.again):
						http.Error(w, "", 405)
					case c.again[n] != nil:
						c.again[n](w, r)
					default:
						events(w)
					}
				},
			})
			p := dialPeer(t, url, nil)
			p.handshake()
			id, err := p.send(t.Context(), "tools/call", `{}`)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := p.answer(id)
			switch {
			case a.during != id:
				t.Errorf("came during %d", a.during)
			case c.want != "":
				p.wantError(a, c.want)
			case string(a.Result) != `{"ok":true}`:
				t.Errorf("answer %s%s", a.Result, a.Error)
			}
		})
	}
}

// The end of the caller's context ends the stream of its call and no other.
func TestHTTPCallerGivesUp(t *testing.T) {
	ended := make(chan string, 2)
	p := stubPeer(t, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		if m.Method == "quick" {
			reply(w, m, `{}`)
			return
		}
		events(w)(": on\n\n")
		<-r.Context().Done()
		ended <- m.Method
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	id, err := p.send(ctx, "slow", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.send(t.Context(), "other", `{}`); err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("had enough"))
	a, _ := p.answer(id)
	p.wantError(a, "had enough")
	if got := <-ended; got != "slow" {
		t.Errorf("ended: %s", got)
	}
	p.call("quick", `{}`)
	if len(ended) > 0 {
		t.Error("the other call's stream ended too")
	}
}

// Nobody waits for a stream to be resumed whose caller is gone.
func TestHTTPCallerGivesUpBetweenStreams(t *testing.T) {
	p := stubPeer(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		events(w)("retry: 100000\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	id, err := p.send(ctx, "tools/call", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if a := p.next(); a.Method != "notifications/x" || a.during != id {
		t.Fatalf("came %s during %d", a.Raw, a.during)
	}
	cancel(errors.New("had enough"))
	a, _ := p.answer(id)
	p.wantError(a, "had enough")
}

// Answers come in many forms, whatever they are labelled.
func TestHTTPForms(t *testing.T) {
	const result = `{"jsonrpc":"2.0","id":2,"result":{"a":"<é\u0000>","n":1.0,"n":1}}`
	const want = `{"a":"<é\u0000>","n":1.0,"n":1}`
	for name, c := range map[string]struct{ kind, body, want string }{
		"plain":              {"application/json", result, want},
		"charset":            {"application/json; charset=utf-8", result, want},
		"byte order mark":    {"application/json", "\xef\xbb\xbf" + result, want},
		"pretty":             {"application/json", "\r\n {\n\t\"jsonrpc\": \"2.0\",\r\n\"id\": 2, \"result\": " + want + " }\r\n\r\n", want},
		"no type":            {"", result, want},
		"wrong type":         {"text/plain", result, want},
		"events, no type":    {"", "data: " + result + "\n\n", want},
		"events, wrong type": {"text/plain", ": hi\n\nevent: message\ndata: " + result + "\n\n", want},
		"batch":              {"application/json", `[{"jsonrpc":"2.0","method":"notifications/x"},` + result + `]`, want},
		"batch in event":     {"text/event-stream", "data: [" + result + "]\n\n", want},
		"two in a line":      {"application/json", `{"jsonrpc":"2.0","method":"notifications/x"}` + result, want},
		"invalid UTF-8":      {"application/json", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"a\xffb\"}", `"a` + "\uFFFD" + `b"`},
		"id as string":       {"application/json", `{"jsonrpc":"2.0","id":"2","result":7}`, "7"},
		"no version":         {"application/json", `{"id":2,"result":7}`, "7"},
		"error without id":   {"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, `{"code":-32700,"message":"no"}`},
		"CRLF":               {"text/event-stream", "event: message\r\ndata: " + result + "\r\n\r\n", want},
		"CR":                 {"text/event-stream", "event: message\rdata: " + result + "\r\r", want},
		"several data lines": {"text/event-stream", "data: {\"jsonrpc\":\"2.0\",\ndata:\"id\":2,\ndata: \"result\":7}\n\n", "7"},
		"other events":       {"text/event-stream", ": c\n:\n\nevent: ping\ndata: {}\n\nid: 1\n\nfoo: bar\ndata: " + result + "\n\n", want},
		"junk, then answer":  {"text/event-stream", "data: starting\n\ndata:\n\ndata: " + result + "\n\n", want},
	} {
		t.Run(name, func(t *testing.T) {
			p := stubPeer(t, func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
				w.Header()["Content-Type"] = nil
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				_, _ = io.WriteString(w, c.body)
			})
			a := p.call("tools/call", `{}`)
			if got := string(a.Result) + string(a.Error); got != c.want || string(a.ID) != "2" {
				t.Errorf("id %s: %s\nwant %s", a.ID, got, c.want)
			}
		})
	}
}

// A stream whose headers come late, and whose end never comes.
func TestHTTPSlowServer(t *testing.T) {
	release := make(chan struct{})
	p := stubPeer(t, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		if m.Method == "late" {
			time.Sleep(100 * time.Millisecond)
		}
		events(w)("data: %s\n\n", wire.Response(m.ID, []byte(`{}`)))
		<-r.Context().Done()
	})
	defer close(release)
	for _, method := range []string{"late", "endless"} {
		if a := p.call(method, `{}`); string(a.Result) != `{}` {
			t.Errorf("%s: %s", method, a.Error)
		}
	}
}

// Large results come byte for byte, up to the limit.
func TestHTTPLargeResults(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		stream bool
		max    int
		want   string
	}{
		{"5 MB", 5 << 20, false, 0, ""},
		{"5 MB in an event", 5 << 20, true, 0, ""},
		{"20 MB", 20 << 20, false, 0, ""},
		{"20 MB in an event", 20 << 20, true, 0, ""},
		{"over the limit", 2 << 20, false, 1 << 20, "larger than the limit of 1048576 bytes"},
		{"over the limit in an event", 2 << 20, true, 1 << 20, "larger than the limit of 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchGoroutines(t)
			result := append(append([]byte(`{ "text" : "`), bytes.Repeat([]byte(`äö\u00fc<&>\/ 12345678`), c.size/22)...), `"}`...)
			p := dialPeer(t, serve(t, stub{call: func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				if c.stream {
					events(w)("id: 1\ndata: %s\n\n", wire.Response(m.ID, result))
					return
				}
				reply(w, m, string(result))
			}}), func(o *httpOptions) { o.MaxFrame = c.max })
			p.handshake()
			a := p.call("tools/call", `{}`)
			switch {
			case c.want != "":
				p.wantError(a, c.want)
			case !bytes.Equal(a.Result, result):
				t.Errorf("%d bytes came of %d: %s", len(a.Result), len(result), a.Error)
			}
		})
	}
}
