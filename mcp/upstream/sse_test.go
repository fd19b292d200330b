package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/wire"
)

// oldServer is a server of protocol 2024-11-05 by hand: it names an endpoint
// and answers requests on its one stream.
type oldServer struct {
	endpoint string
	// post answers a POST; nil accepts it and lets the stream echo.
	post func(w http.ResponseWriter, m wire.Message)
	// stream writes what comes after the endpoint; its end is the stream's.
	stream func(w http.ResponseWriter, r *http.Request, posted <-chan wire.Message)
}

func (s oldServer) handler() http.Handler {
	posted := make(chan wire.Message, 10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			write := events(w)
			if s.endpoint != "" {
				write("event: endpoint\ndata: %s\n\n", s.endpoint)
			}
			if s.stream != nil {
				s.stream(w, r, posted)
				return
			}
			for {
				select {
				case <-r.Context().Done():
					return
				case m := <-posted:
					write("event: message\r\ndata: %s\r\n\r\n", wire.Response(m.ID, []byte(`{"protocolVersion":"2024-11-05"}`)))
				}
			}
		case r.URL.Query().Get("s") == "":
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
		case s.post != nil:
			s.post(w, rpc(r))
		default:
			if m := rpc(r); m.IsRequest() {
				posted <- m
			}
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "Accepted")
		}
	})
}

func TestSSEEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"/messages?s=1":          "",
		"?s=1":                   "",
		" messages/here?s=1 ":    "",
		"HOST/messages?s=1":      "",
		"http://other.example/m": "on another host: http://other.example/m",
		"//other.example/m?k=v":  "on another host: http://other.example/m?k=***",
		"http://[::1":            "did not name the endpoint",
	} {
		t.Run(endpoint, func(t *testing.T) {
			watchGoroutines(t)
			var h http.Handler
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
			h = oldServer{endpoint: strings.ReplaceAll(endpoint, "HOST", url)}.handler()
			p, err := tryPeer(t, url+"/sse", func(o *httpOptions) { o.Protocol = "sse" })
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("dial: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p.handshake()
			if err := p.close(); err != nil {
				t.Error(err)
			}
			if <-p.link.Done(); !errors.Is(p.link.Err(), errHTTPClosed) {
				t.Errorf("ended with %v", p.link.Err())
			}
		})
	}
}

// What is no stream with an endpoint is no server of that protocol.
func TestSSENotAServer(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"html":             {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), `no event stream but "text/html`},
		"login":            {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 401) }), "401"},
		"ends":             {oldServer{stream: func(http.ResponseWriter, *http.Request, <-chan wire.Message) {}}.handler(), errNoEndpoint.Error()},
		"cut":              {oldServer{stream: func(http.ResponseWriter, *http.Request, <-chan wire.Message) { cut() }}.handler(), "stream ended: unexpected EOF"},
		"too large":        {oldServer{endpoint: strings.Repeat("x", 2000)}.handler(), "larger than the limit of 1000 bytes"},
		"never says where": {oldServer{}.handler(), "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			watchGoroutines(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := newSSELink(ctx, httpOptions{URL: serve(t, c.handler), MaxFrame: 1000}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("dial: %v", err)
			}
			if errors.Is(err, errUnauthorized) != (name == "login") {
				t.Errorf("unauthorized: %v", err)
			}
		})
	}
}

// The link outlives the context it was opened with, and dies with its stream.
func TestSSEStreamEnds(t *testing.T) {
	watchGoroutines(t)
	finish := make(chan struct{})
	url := serve(t, oldServer{endpoint: "?s=1", stream: func(w http.ResponseWriter, r *http.Request, _ <-chan wire.Message) {
		fmt.Fprint(w, "data: junk\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-finish
	}}.handler())
	inbox := make(chan wire.Message, 1)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := newSSELink(ctx, httpOptions{URL: url}, func(m wire.Message, _ int64) { inbox <- m })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if m := <-inbox; m.Method != "notifications/x" || l.Err() != nil {
		t.Errorf("%s, %v", m.Raw, l.Err())
	}
	close(finish)
	<-l.Done()
	if !errors.Is(l.Err(), io.EOF) {
		t.Errorf("ended with %v", l.Err())
	}
	if err := l.Send(t.Context(), outgoing{Frame: wire.Notification("x", nil)}); !errors.Is(err, io.EOF) {
		t.Errorf("send: %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSSEPosts(t *testing.T) {
	for name, c := range map[string]struct {
		post func(http.ResponseWriter, wire.Message)
		want error // of Send
	}{
		"forgotten": {func(w http.ResponseWriter, _ wire.Message) { http.Error(w, "session not found", 404) }, errSessionExpired},
		"login":     {func(w http.ResponseWriter, _ wire.Message) { http.Error(w, "", 401) }, errUnauthorized},
		"hangs":     {func(_ http.ResponseWriter, m wire.Message) { time.Sleep(500 * time.Millisecond) }, context.DeadlineExceeded},
		"lost":      {func(http.ResponseWriter, wire.Message) { cut() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watchGoroutines(t)
			p := dialPeer(t, serve(t, oldServer{endpoint: "?s=1", post: c.post}.handler()), func(o *httpOptions) { o.Protocol = "sse" })
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			id, err := p.send(ctx, "tools/call", `{}`)
			if c.want == nil && err == nil {
				a, _ := p.answer(id)
				p.wantError(a, "connection lost before the answer")
				return
			}
			if c.want == nil || !errors.Is(err, c.want) {
				t.Errorf("send: %v", err)
			}
		})
	}
}

// Only what may mean the older protocol leads to it, and only with auto.
func TestHTTPFallback(t *testing.T) {
	watchGoroutines(t)
	for _, c := range []struct {
		protocol string
		status   int
		body     string
		gets     int
		want     string
	}{
		{protocol: "auto", status: 405, gets: 1, want: "405 Method Not Allowed; with the older HTTP+SSE: GET"},
		{protocol: "http", status: 404, gets: 1, want: "404 Not Found; with"},
		{protocol: "auto", status: 400, gets: 1, want: "400 Bad Request; with"},
		{protocol: "streamable-http", status: 405, want: "405"},
		{protocol: "auto", status: 401, want: "401"},
		{protocol: "auto", status: 403, want: "403"},
		{protocol: "auto", status: 500, want: "500"},
		{protocol: "auto", status: 503, want: "503"},
		{protocol: "auto", status: 400, body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"version"}}`},
	} {
		gets := 0
		p := dialPeer(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets++
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})), func(o *httpOptions) { o.Protocol = c.protocol })
		_, err := p.send(t.Context(), "initialize", `{}`)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %d: %v", c.protocol, c.status, err)
		case gets != c.gets:
			t.Errorf("%s %d: %d GETs", c.protocol, c.status, gets)
		case strings.Contains(fmt.Sprint(err), "SSE") != (gets > 0):
			t.Errorf("%s %d: %v", c.protocol, c.status, err)
		}
		if _, err := p.send(t.Context(), "tools/list", `{}`); err == nil && c.want != "" || gets != c.gets {
			t.Errorf("%s %d: then %v", c.protocol, c.status, err)
		}
	}
}
