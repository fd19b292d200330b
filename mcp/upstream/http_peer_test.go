package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/wire"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// arrival is one message that a link delivered.
type arrival struct {
	wire.Message
	during int64
}

// httpPeer drives a link by hand.
type httpPeer struct {
	t     *testing.T
	link  link
	inbox chan arrival
	last  int64
}

// dialPeer makes a link to url; nothing is sent yet unless the protocol is sse.
func dialPeer(t *testing.T, url string, change func(*httpOptions)) *httpPeer {
	t.Helper()
	p, err := tryPeer(t, url, change)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return p
}

func tryPeer(t *testing.T, url string, change func(*httpOptions)) (*httpPeer, error) {
	t.Helper()
	p := &httpPeer{t: t, inbox: make(chan arrival, 1000)}
	o := httpOptions{URL: url, Protocol: "streamable-http", Retry: 5 * time.Millisecond}
	if change != nil {
		change(&o)
	}
	l, err := dialHTTP(t.Context(), o, func(m wire.Message, during int64) { p.inbox <- arrival{m, during} })
	if err != nil {
		return nil, err
	}
	p.link = l
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = l.Close(ctx)
	})
	return p, nil
}

func (p *httpPeer) send(ctx context.Context, method, params string) (int64, error) {
	p.last++
	frame := wire.Request(p.last, method, []byte(params))
	return p.last, p.link.Send(ctx, outgoing{Frame: frame, ID: p.last, Method: method})
}

// next waits for the next message.
func (p *httpPeer) next() arrival {
	p.t.Helper()
	select {
	case a := <-p.inbox:
		return a
	case <-time.After(patience):
		p.t.Fatal("no message came")
		return arrival{}
	}
}

// answer waits for the response to id and returns what came before it.
func (p *httpPeer) answer(id int64) (arrival, []arrival) {
	p.t.Helper()
	var before []arrival
	for {
		a := p.next()
		if got, _ := wire.NumberID(a.ID); a.IsResponse() && got == id {
			return a, before
		}
		before = append(before, a)
	}
}

// call sends a request that must be accepted and waits for its answer.
func (p *httpPeer) call(method, params string) arrival {
	p.t.Helper()
	id, err := p.send(p.t.Context(), method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	a, _ := p.answer(id)
	return a
}

func (p *httpPeer) notify(method string) {
	p.t.Helper()
	m := outgoing{Frame: wire.Notification(method, nil), Method: method}
	if err := p.link.Send(p.t.Context(), m); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// handshake does what comes before the first request of a session.
func (p *httpPeer) handshake() {
	p.t.Helper()
	a := p.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}`)
	version, ok := wire.String(wire.Member(a.Result, "protocolVersion"))
	if !ok {
		p.t.Fatalf("initialize: %s%s", a.Result, a.Error)
	}
	if l, ok := p.link.(interface{ SetProtocol(string) }); ok {
		l.SetProtocol(version)
	}
	p.notify("notifications/initialized")
}

// wantError checks that the answer is one of our own errors with that text.
func (p *httpPeer) wantError(a arrival, text string) {
	p.t.Helper()
	e := wire.ParseError(a.Error)
	if a.Error == nil || a.Raw != nil || e.Code != wire.CodeUnavailable || !strings.Contains(e.Message, text) {
		p.t.Fatalf("answer is %s%s, want an error of ours with %q", a.Result, a.Error, text)
	}
}

// close closes the link and checks that it is quick.
func (p *httpPeer) close() error {
	p.t.Helper()
	start := time.Now()
	err := p.link.Close(p.t.Context())
	if took := time.Since(start); took > closeTimeout+500*time.Millisecond {
		p.t.Errorf("close took %v", took)
	}
	return err
}

// serve starts a server on loopback that ends with the test, whatever its
// handlers wait for.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// eventually waits until something holds, and reports whether it came to that.
func eventually(holds func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// rpc reads the message of a POST.
func rpc(r *http.Request) wire.Message {
	m, err := wire.NewReader(r.Body, 0, nil).Next()
	if err != nil {
		return wire.Message{}
	}
	return m
}

// stub is a server of streamable HTTP by hand: initialize gets a session, other
// requests go to call.
type stub struct {
	call func(w http.ResponseWriter, r *http.Request, m wire.Message)
	get  func(w http.ResponseWriter, r *http.Request)
	// deleted is told of the session that a DELETE names.
	deleted func(session string)
}

func (s stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		if s.get == nil {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		s.get(w, r)
	case http.MethodDelete:
		if s.deleted != nil {
			s.deleted(r.Header.Get("Mcp-Session-Id"))
		}
	case http.MethodPost:
		m := rpc(r)
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "session-1")
			reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"stub","version":"1"}}`)
		case !m.IsRequest():
			w.WriteHeader(http.StatusAccepted)
		default:
			s.call(w, r, m)
		}
	}
}

func reply(w http.ResponseWriter, m wire.Message, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(wire.Response(m.ID, []byte(result)))
}

// events starts an event stream and returns a function that writes to it.
func events(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, format, args...)
		_ = flusher.Flush()
	}
}

// cut breaks the connection of a response.
func cut() { panic(http.ErrAbortHandler) }
