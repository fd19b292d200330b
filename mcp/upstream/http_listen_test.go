package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"mcpproxy/mcp/wire"
)

// listenStub counts the listening streams that were asked for and serves them
// by a list; what comes after it is held open.
func listenStub(t *testing.T, streams ...func(http.ResponseWriter, *http.Request)) (*httpPeer, <-chan string) {
	t.Helper()
	watchGoroutines(t)
	asked := make(chan string, 100)
	var count atomic.Int32 // one stream at a time, each on a goroutine of its own
	p := dialPeer(t, serve(t, stub{
		call: func(w http.ResponseWriter, _ *http.Request, m wire.Message) { reply(w, m, `{}`) },
		get: func(w http.ResponseWriter, r *http.Request) {
			n := int(count.Add(1))
			asked <- r.Header.Get("Last-Event-ID")
			if n <= len(streams) {
				streams[n-1](w, r)
				return
			}
			events(w)(": waiting\n\n")
			<-r.Context().Done()
		},
	}), nil)
	return p, asked
}

func TestHTTPListens(t *testing.T) {
	p, asked := listenStub(t,
		func(w http.ResponseWriter, _ *http.Request) {
			events(w)("retry: 1\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"}\n\n")
		},
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) },
		func(http.ResponseWriter, *http.Request) { cut() },
		func(w http.ResponseWriter, r *http.Request) {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"ping\"}\n\n")
			<-r.Context().Done()
		},
	)
	select {
	case <-asked:
		t.Error("listening before the handshake")
	default:
	}
	p.handshake()
	p.notify("notifications/initialized")
	for _, want := range []string{"notifications/a", "ping"} {
		if a := p.next(); a.Method != want || a.during != 0 {
			t.Errorf("came %s during %d, want %s", a.Method, a.during, want)
		}
	}
	got := fmt.Sprint(<-asked, <-asked, <-asked, <-asked)
	if want := fmt.Sprint("", "7", "7", "7"); got != want {
		t.Errorf("resumed from %s, want %s", got, want)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if len(asked) > 0 {
		t.Error("more than one listening stream at a time")
	}
}

// Servers say in several ways that they offer no listening stream; they are
// asked once and calls go on.
func TestHTTPListenRefused(t *testing.T) {
	for name, refusal := range map[string]func(http.ResponseWriter, *http.Request){
		"405":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 405) },
		"404":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "session not found", 404) },
		"401":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 401) },
		"html": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome</html>") },
		"202":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
		"302":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", 302) },
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := listenStub(t, refusal)
			p.handshake()
			<-asked
			l := p.link.(*httpLink)
			if !eventually(func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.active == 0 }) {
				t.Error("still listening")
			}
			p.call("tools/call", `{}`)
			if len(asked) > 0 {
				t.Error("asked again")
			}
		})
	}
}

// A session that is forgotten while nobody calls is noticed.
func TestHTTPListenSessionForgotten(t *testing.T) {
	p, asked := listenStub(t,
		func(w http.ResponseWriter, _ *http.Request) { events(w)("retry: 1\n\n") },
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "session not found", 404) },
	)
	p.handshake()
	<-asked
	<-asked
	l := p.link.(*httpLink)
	if !eventually(func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.expired }) {
		t.Error("not noticed")
	}
	if _, err := p.send(t.Context(), "tools/call", `{}`); !errors.Is(err, errSessionExpired) {
		t.Errorf("call: %v", err)
	}
}
