package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// noteLink is a link that notes what is sent.
type noteLink struct {
	done chan struct{}

	mu   sync.Mutex
	sent []string
}

func (l *noteLink) Send(_ context.Context, m outgoing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, string(m.Frame))
	return nil
}

func (l *noteLink) Done() <-chan struct{} { return l.done }
func (l *noteLink) Err() error            { return errors.New("the link ended") }

func (l *noteLink) Close(context.Context) error {
	close(l.done)
	return nil
}

// take returns what was sent since the last time.
func (l *noteLink) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.sent
	l.sent = nil
	return sent
}

// noteObserver notes what it is told.
type noteObserver struct{ told []string }

func (o *noteObserver) listChanged(kind catalog.Kind) { o.told = append(o.told, string(kind)) }

func (o *noteObserver) resourceUpdated(params json.RawMessage) {
	o.told = append(o.told, string(params))
}

// notePeer is a client that notes what it is told and asked, and answers when
// the test says so.
type notePeer struct {
	answers chan string // raw results

	mu   sync.Mutex
	told []string
}

func (p *notePeer) note(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, method+" "+string(params))
}

func (p *notePeer) Notify(method string, params json.RawMessage) { p.note(method, params) }

func (p *notePeer) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	p.note(method, params)
	select {
	case a := <-p.answers:
		return json.RawMessage(a), nil
	case <-ctx.Done():
		return nil, wire.Errorf(wire.CodeTimeout, "%v", context.Cause(ctx))
	}
}

func (p *notePeer) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := p.told
	p.told = nil
	return told
}

// bench is a conn in a bubble, with its link.
type bench struct {
	t    *testing.T
	conn *conn
	link *noteLink
	seen *noteObserver
}

func newBench(t *testing.T, owner *wire.Session) *bench {
	b := &bench{t: t, link: &noteLink{done: make(chan struct{})}, seen: &noteObserver{}}
	b.conn = newConn(t.Context(), "s", owner, b.seen)
	b.conn.link = b.link
	t.Cleanup(func() {
		if err := b.conn.close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// says delivers a message of the upstream.
func (b *bench) says(raw string) {
	b.t.Helper()
	m, err := wire.Parse([]byte(raw))
	if err != nil {
		b.t.Fatalf("%s: %v", raw, err)
	}
	b.conn.receive(m, 0)
	synctest.Wait()
}

func (b *bench) sent(want ...string) {
	b.t.Helper()
	synctest.Wait()
	if got := b.link.take(); !slices.Equal(got, want) {
		b.t.Errorf("sent\ngot  %q\nwant %q", got, want)
	}
}

// ask makes a request and returns where its outcome will be.
func (b *bench) ask(ctx context.Context, s *wire.Session, params string) <-chan string {
	b.t.Helper()
	outcome := make(chan string, 1)
	go func() {
		result, err := b.conn.request(ctx, s, "tools/call", json.RawMessage(params), 0)
		outcome <- fmt.Sprintf("%s %v", result, err)
	}()
	synctest.Wait()
	return outcome
}

func sessionOf(capabilities string) (*wire.Session, *notePeer) {
	p := &notePeer{answers: make(chan string)}
	s := wire.NewSession("test", p)
	s.SetClient(wire.ClientInfo{Capabilities: json.RawMessage(capabilities)})
	return s, p
}

// TestConnProgress gives progress the caller's token, and drops it after the
// caller has given up or got the answer.
func TestConnProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := sessionOf(`{}`)
		b := newBench(t, s)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := b.ask(ctx, s, `{"_meta":{"progressToken":"p"}}`)
		second := b.ask(t.Context(), s, `{"_meta":{"progressToken":1}}`)
		b.sent(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2}}}`)
		progress := func(token string) {
			b.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":1.0,"progressToken":` + token + `}}`)
		}
		told := func(want ...string) {
			t.Helper()
			if got := peer.take(); !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		progress(`1`)
		progress(`"2"`)
		progress(`3`)
		progress(`"p"`)
		told(`notifications/progress {"x":1.0,"progressToken":"p"}`, `notifications/progress {"x":1.0,"progressToken":1}`)
		cancel(&wire.ErrCancelled{Params: json.RawMessage(`{"requestId":"client's","reason":"r"}`)})
		if got := <-first; !strings.Contains(got, "cancelled") {
			t.Errorf("the cancelled request returned %s", got)
		}
		b.sent(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}`)
		b.says(`{"jsonrpc":"2.0","id":2,"result":{"r":1.0},"error":null}`)
		if got := <-second; got != `{"r":1.0} <nil>` {
			t.Errorf("the other one returned %s", got)
		}
		progress(`1`)
		progress(`2`)
		told()
		b.says(`{"jsonrpc":"2.0","id":1,"result":{}}`) // too late
		b.says(`{"jsonrpc":"2.0","id":7,"result":{}}`) // never asked for
		b.says(`{"jsonrpc":"2.0","id":"x","result":{}}`)
		b.sent()
		told()
	})
}

// TestConnOwnRequests makes requests of ours: they carry no progress token, and
// initialize is not cancelled when it takes too long.
func TestConnOwnRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.conn.request(ctx, nil, "initialize", json.RawMessage(`{}`), time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("initialize returned %v", err)
		}
		b.sent(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		if _, err := b.conn.request(t.Context(), nil, "logging/setLevel", json.RawMessage(`{}`), time.Second); !errors.Is(err, errIdle) {
			t.Errorf("setLevel returned %v", err)
		}
		b.sent(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"silent for too long"}}`)
	})
}

// TestConnIdle lets progress keep a call alive, whether the client asked for it
// or not.
func TestConnIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := sessionOf(`{}`)
		b := newBench(t, s)
		outcome := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := b.conn.request(t.Context(), s, "tools/call", json.RawMessage(`{"name":"t"}`), time.Second)
			outcome <- err
		}()
		b.sent(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}`)
		for range 3 {
			time.Sleep(900 * time.Millisecond)
			b.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`)
		}
		if err := <-outcome; !errors.Is(err, errIdle) || time.Since(began) != 3700*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if told := peer.take(); len(told) > 0 {
			t.Errorf("the client, which gave no token, was told %q", told)
		}
	})
}

// TestConnTarget is the table of whom a question of the upstream goes to.
func TestConnTarget(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"m":1.0}}`
	const asked = `elicitation/create {"m":1.0}`
	for _, c := range []struct {
		name    string
		private bool // owned by the first session
		calls   []int
		want    int // -1 is nobody
		says    string
	}{
		{"private", true, nil, 0, ""},
		{"private with calls", true, []int{0, 0}, 0, ""},
		{"shared, nobody calls", false, nil, -1, "no single client to ask"},
		{"shared, one calls", false, []int{1}, 1, ""},
		{"shared, one calls twice", false, []int{1, 1}, 1, ""},
		{"shared, two call", false, []int{0, 1}, -1, "no single client to ask"},
		{"shared, one that cannot be asked", false, []int{2}, -1, `did not announce the capability "elicitation"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sessions []*wire.Session
				var peers []*notePeer
				for _, capabilities := range []string{`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`, `{"elicitation":null}`} {
					s, p := sessionOf(capabilities)
					sessions, peers = append(sessions, s), append(peers, p)
				}
				var owner *wire.Session
				if c.private {
					owner = sessions[0]
				}
				b := newBench(t, owner)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for _, i := range c.calls {
					b.ask(ctx, sessions[i], `{}`)
				}
				b.link.take()
				b.says(question)
				for i, p := range peers {
					if got := p.take(); i == c.want && !slices.Equal(got, []string{asked}) || i != c.want && len(got) > 0 {
						t.Errorf("session %d got %q", i, got)
					}
				}
				if c.want >= 0 {
					peers[c.want].answers <- `{"action":"accept","n":1.0}`
					b.sent(`{"jsonrpc":"2.0","id":"q","result":{"action":"accept","n":1.0}}`)
					return
				}
				sent := b.link.take()
				if len(sent) != 1 {
					t.Fatalf("the upstream got %q", sent)
				}
				reply, err := wire.Parse([]byte(sent[0]))
				if err != nil || string(reply.ID) != `"q"` {
					t.Fatalf("the upstream got %s: %v", sent[0], err)
				}
				if e := wire.ParseError(reply.Error); e.Code != wire.CodeMethodNotFound || !strings.Contains(e.Message, c.says) {
					t.Errorf("the upstream got %v", e)
				}
			})
		})
	}
}

// TestConnWithdrawnQuestion ends a question that the upstream cancels, without
// an answer to it.
func TestConnWithdrawnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := sessionOf(`{"sampling":{}}`)
		b := newBench(t, s)
		b.says(`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage"}`)
		b.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}`)
		b.says(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		if n := len(b.conn.inbound); n != 1 {
			t.Errorf("%d questions are open", n)
		}
		b.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		if n := len(b.conn.inbound); n != 0 {
			t.Errorf("%d questions are open", n)
		}
		b.sent()
		if got := peer.take(); len(got) != 1 {
			t.Errorf("the client got %q", got)
		}
	})
}

// TestConnNotifications sorts what the upstream says of itself.
func TestConnNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := sessionOf(`{}`)
		b := newBench(t, s)
		s.SetLogLevel("warning")
		for _, method := range []string{"tools/list_changed", "prompts/list_changed", "resources/list_changed"} {
			b.says(`{"jsonrpc":"2.0","method":"notifications/` + method + `"}`)
		}
		b.says(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
		for _, level := range []string{`"info"`, `"warning"`, `"error"`, `"trace"`} {
			b.says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":` + level + `}}`)
		}
		b.says(`{"jsonrpc":"2.0","method":"notifications/odd"}`)
		b.says(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		if want := []string{"tool", "prompt", "resource", "template", `{"uri":"x:1"}`}; !slices.Equal(b.seen.told, want) {
			t.Errorf("the server was told %q", b.seen.told)
		}
		if got, want := peer.take(), []string{`notifications/message {"level":"warning"}`, `notifications/message {"level":"error"}`,
			`notifications/message {"level":"trace"}`, `notifications/odd `}; !slices.Equal(got, want) {
			t.Errorf("the client was told %q", got)
		}
		b.sent(`{"jsonrpc":"2.0","id":9,"result":{}}`)
	})
}

// TestConnLinkEnds fails what is under way when the link ends.
func TestConnLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := sessionOf(`{}`)
		b := newBench(t, s)
		b.link.done = make(chan struct{})
		outcome := b.ask(t.Context(), s, `{}`)
		close(b.link.done)
		if got := <-outcome; !strings.Contains(got, errDied.Error()) || b.conn.alive() {
			t.Errorf("the request returned %s", got)
		}
		if n := len(b.conn.pending); n != 0 {
			t.Errorf("%d calls are pending", n)
		}
		b.link.done = make(chan struct{})
	})
}
