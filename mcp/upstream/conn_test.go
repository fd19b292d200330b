package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// fakeLink is a link whose upstream is the test.
type fakeLink struct {
	sent chan wire.Message
	done chan struct{}
	fail error // of Send

	once sync.Once
	err  error
}

func (l *fakeLink) Send(_ context.Context, m outgoing) error {
	if l.fail != nil {
		return l.fail
	}
	parsed, err := wire.Parse(m.Frame)
	if err != nil {
		return err
	}
	l.sent <- parsed
	return nil
}

func (l *fakeLink) Done() <-chan struct{} { return l.done }
func (l *fakeLink) Err() error            { return l.err }

func (l *fakeLink) Close(context.Context) error {
	l.die(errStopped)
	return nil
}

func (l *fakeLink) die(err error) {
	l.once.Do(func() { l.err = err; close(l.done) })
}

// fakeClient is a downstream client that is the test.
type fakeClient struct {
	told   chan wire.Message
	answer func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error)
}

func (c *fakeClient) Notify(method string, params json.RawMessage) {
	c.told <- wire.Message{Method: method, Params: params}
}

func (c *fakeClient) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	return c.answer(ctx, method, params)
}

// newClient returns a client with these capabilities, and its session.
func newClient(id, capabilities string) (*fakeClient, *wire.Session) {
	c := &fakeClient{told: make(chan wire.Message, 100)}
	s := wire.NewSession(id, c)
	s.SetClient(wire.ClientInfo{Capabilities: json.RawMessage(capabilities)})
	return c, s
}

// peer is a conn whose other end is the test.
type peer struct {
	*conn
	t     *testing.T
	link  *fakeLink
	lists []catalog.Kind
}

func (p *peer) listChanged(kind catalog.Kind)   { p.lists = append(p.lists, kind) }
func (p *peer) resourceUpdated(json.RawMessage) {}

func newPeer(t *testing.T, owner *wire.Session) *peer {
	p := &peer{t: t, link: &fakeLink{sent: make(chan wire.Message, 100), done: make(chan struct{})}}
	p.conn = newConn(t.Context(), "s", owner, p)
	p.conn.link = p.link
	return p
}

// hear has the conn receive a message of the upstream.
func (p *peer) hear(format string, args ...any) {
	p.t.Helper()
	m, err := wire.Parse(fmt.Appendf(nil, format, args...))
	if err != nil {
		p.t.Fatal(err)
	}
	p.receive(m, 0)
}

// outcome is what a request came to.
type outcome struct {
	result json.RawMessage
	err    error
	took   time.Duration
}

// begin makes a request and returns where its outcome will come, and the
// message as the upstream got it.
func (p *peer) begin(ctx context.Context, s *wire.Session, params string, idle time.Duration) (<-chan outcome, wire.Message) {
	p.t.Helper()
	done := make(chan outcome, 1)
	begun := time.Now()
	go func() {
		result, err := p.request(ctx, s, "tools/call", json.RawMessage(params), idle)
		done <- outcome{result, err, time.Since(begun)}
	}()
	return done, <-p.link.sent
}

// TestAnswers brings answers back to who asked, whatever their order and
// however the id is written.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		first, m1 := p.begin(t.Context(), nil, `{}`, 0)
		second, m2 := p.begin(t.Context(), nil, `{}`, 0)
		third, m3 := p.begin(t.Context(), nil, `{}`, 0)
		p.hear(`{"jsonrpc":"2.0","id":"%s","result":{"n":2}}`, m2.ID)
		p.hear(`{"jsonrpc":"2.0","id":999,"result":{"n":9}}`)
		p.hear(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"whose?"}}`)
		p.hear(`{"jsonrpc":"2.0","id":"x","result":{}}`)
		p.hear(`{"jsonrpc":"2.0","id":%s,"result":{"n":1}}`, m1.ID)
		p.hear(`{"jsonrpc":"2.0","id":%s,"result":{"n":1,"again":true}}`, m1.ID)
		p.hear(`{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"no","odd":1}}`, m3.ID)
		if o := <-first; string(o.result) != `{"n":1}` || o.err != nil {
			t.Errorf("%s, %v", o.result, o.err)
		}
		if o := <-second; string(o.result) != `{"n":2}` || o.err != nil {
			t.Errorf("%s, %v", o.result, o.err)
		}
		var theirs *wire.Error
		if o := <-third; !errors.As(o.err, &theirs) || string(theirs.Raw) != `{"code":-5,"message":"no","odd":1}` {
			t.Errorf("%s, %v", o.result, o.err)
		}
		if len(p.pending) != 0 {
			t.Errorf("%d requests are still open", len(p.pending))
		}
	})
}

// TestIdleBudget ends a call that shows no sign of life; progress is one, other
// calls' progress is none.
func TestIdleBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, session := newClient("a", "{}")
		p := newPeer(t, session)
		done, m := p.begin(t.Context(), session, `{"_meta":{"progressToken":"mine"}}`, 10*time.Second)
		token := wire.Member(m.Params, "_meta", "progressToken")
		for range 3 {
			time.Sleep(9 * time.Second)
			p.hear(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
			if told := <-client.told; string(wire.Member(told.Params, "progressToken")) != `"mine"` {
				t.Errorf("the client was told %s", told.Params)
			}
		}
		p.hear(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}`)
		o := <-done
		if !errors.Is(o.err, errIdle) || o.took != 37*time.Second {
			t.Errorf("%v after %s", o.err, o.took)
		}
		if cancelled := <-p.link.sent; cancelled.Method != "notifications/cancelled" || string(wire.Member(cancelled.Params, "requestId")) != string(m.ID) {
			t.Errorf("the upstream was told %s", cancelled.Raw)
		}
		// What comes too late is nobody's.
		p.hear(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2}}`, token)
		p.hear(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		if len(client.told) != 0 || len(p.pending) != 0 {
			t.Errorf("%d messages to the client, %d requests open", len(client.told), len(p.pending))
		}
	})
}

// TestDeadline ends a call whose time is up, tells the upstream, and takes a
// late answer without a word.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, &timeoutError{time.Minute})
		defer cancel()
		done, m := p.begin(ctx, nil, `{}`, 0)
		o := <-done
		if late := new(timeoutError); !errors.As(o.err, &late) || o.took != time.Minute {
			t.Errorf("%v after %s", o.err, o.took)
		}
		told := <-p.link.sent
		if told.Method != "notifications/cancelled" || string(wire.Member(told.Params, "requestId")) != string(m.ID) ||
			!strings.Contains(string(told.Params), "no answer within 1m0s") {
			t.Errorf("the upstream was told %s", told.Raw)
		}
		p.hear(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	})
}

// TestCancelledByClient hands the client's cancellation on with the id that the
// upstream knows.
func TestCancelledByClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		done, m := p.begin(ctx, nil, `{}`, 0)
		cancel(&wire.ErrCancelled{Params: json.RawMessage(`{"requestId":"theirs","reason":"changed my mind","x":1}`)})
		<-done
		if told := <-p.link.sent; string(told.Params) != fmt.Sprintf(`{"requestId":%s,"reason":"changed my mind","x":1}`, m.ID) {
			t.Errorf("the upstream was told %s", told.Raw)
		}
	})
}

// TestLinkDies fails what is under way, but not what was answered just before.
func TestLinkDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		first, m := p.begin(t.Context(), nil, `{}`, 0)
		second, _ := p.begin(t.Context(), nil, `{}`, 0)
		p.hear(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		p.link.die(errors.New("gone"))
		if o := <-first; o.err != nil {
			t.Errorf("answered: %v", o.err)
		}
		if o := <-second; !errors.Is(o.err, errDied) {
			t.Errorf("open: %v", o.err)
		}
		if len(p.pending) != 0 {
			t.Errorf("%d requests are still open", len(p.pending))
		}
	})
}

// TestSendFails returns the link's own error and keeps nothing.
func TestSendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		p.link.fail = errors.New("broken")
		if _, err := p.request(t.Context(), nil, "tools/call", nil, 0); !errors.Is(err, p.link.fail) {
			t.Error(err)
		}
		if len(p.pending) != 0 {
			t.Errorf("%d requests are still open", len(p.pending))
		}
	})
}

// TestTokens gives the upstream tokens of ours, and the client its own.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, sessionA := newClient("a", "{}")
		b, sessionB := newClient("b", "{}")
		p := newPeer(t, nil)
		doneA, m1 := p.begin(t.Context(), sessionA, `{"_meta":{"progressToken":1}}`, 0)
		doneB, m2 := p.begin(t.Context(), sessionB, `{"_meta":{"progressToken":1}}`, 0)
		for m, client := range map[*wire.Message]*fakeClient{&m1: a, &m2: b} {
			p.hear(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.5,"progressToken":%s}}`, wire.Member(m.Params, "_meta", "progressToken"))
			if told := <-client.told; string(told.Params) != `{"progress":0.5,"progressToken":1}` {
				t.Errorf("the client was told %s", told.Params)
			}
			p.hear(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
		<-doneA
		<-doneB
		if len(a.told)+len(b.told) != 0 {
			t.Error("somebody was told more")
		}
	})
}

// TestTarget decides whom a request of the upstream goes to.
func TestTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := newClient("a", `{"sampling":{}}`)
		_, b := newClient("b", `{"sampling":{}}`)
		p := newPeer(t, nil)
		if s := p.target(0); s != nil {
			t.Error("nobody has a call under way")
		}
		first, m1 := p.begin(t.Context(), a, `{}`, 0)
		if s := p.target(0); s != a {
			t.Error("only a has a call under way")
		}
		second, m2 := p.begin(t.Context(), a, `{}`, 0)
		if s := p.target(0); s != a {
			t.Error("only a has calls under way")
		}
		third, m3 := p.begin(t.Context(), b, `{}`, 0)
		if s := p.target(0); s != nil {
			t.Error("a and b have calls under way")
		}
		id, _ := wire.NumberID(m3.ID)
		if s := p.target(id); s != b {
			t.Error("it came with a call of b")
		}
		for _, m := range []wire.Message{m1, m2, m3} {
			p.hear(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
		<-first
		<-second
		<-third
		private := newPeer(t, b)
		if s := private.target(0); s != b {
			t.Error("all that is said on a private connection is for its owner")
		}
	})
}

// TestRefusals answers at once what no client can be asked.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, able := newClient("a", `{"elicitation":{}}`)
		nobody, private := newPeer(t, nil), newPeer(t, able)
		for _, test := range []struct {
			peer   *peer
			method string
			part   string
		}{
			{nobody, "sampling/createMessage", "no single client"},
			{private, "sampling/createMessage", `did not announce the capability \"sampling\"`},
			{private, "roots/list", `did not announce the capability \"roots\"`},
		} {
			test.peer.hear(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{}}`, test.method)
			m := <-test.peer.link.sent
			if string(m.ID) != `"q"` || m.Error == nil || !strings.Contains(string(m.Error), test.part) {
				t.Errorf("%s: %s", test.method, m.Raw)
			}
		}
		private.hear(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		if m := <-private.link.sent; string(m.Raw) != `{"jsonrpc":"2.0","id":7,"result":{}}` {
			t.Errorf("ping: %s", m.Raw)
		}
	})
}

// TestAskedClient takes a request to the client and the answer back, and ends
// it when the upstream cancels, or with the connection.
func TestAskedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, session := newClient("a", `{"elicitation":{}}`)
		asked := make(chan json.RawMessage, 10)
		ended := make(chan error, 10)
		client.answer = func(ctx context.Context, _ string, params json.RawMessage) (json.RawMessage, *wire.Error) {
			asked <- params
			if string(wire.Member(params, "wait")) == "true" {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, wire.Errorf(wire.CodeTimeout, "cancelled")
			}
			return json.RawMessage(`{"action":"accept"}`), nil
		}
		p := newPeer(t, session)
		p.hear(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`)
		<-asked
		if m := <-p.link.sent; string(m.Raw) != `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}` {
			t.Errorf("%s", m.Raw)
		}
		p.hear(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"wait":true}}`)
		<-asked
		p.hear(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		<-ended
		p.hear(`{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"wait":true}}`)
		<-asked
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended
		if len(p.inbound) != 0 {
			t.Errorf("%d requests are still open", len(p.inbound))
		}
	})
}

// TestUnreadableAnswer fails the one call whose answer could not be read.
func TestUnreadableAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, nil)
		done, m := p.begin(t.Context(), nil, `{}`, 0)
		p.garbage(wire.Garbage{Line: []byte("banner"), Why: errors.New("no JSON")})
		p.garbage(wire.Garbage{ID: m.ID, Why: errors.New("a request with that id")})
		p.garbage(wire.Garbage{ID: m.ID, Response: true, Why: errors.New("too large")})
		if o := <-done; o.err == nil || !strings.Contains(o.err.Error(), "server s sent an answer that cannot be read: too large") {
			t.Errorf("%s, %v", o.result, o.err)
		}
	})
}

// TestListNotifications are passed on by kind; resources stand for templates
// too.
func TestListNotifications(t *testing.T) {
	p := newPeer(t, nil)
	for _, what := range []string{"tools", "prompts", "resources"} {
		p.hear(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, what)
	}
	if got := fmt.Sprint(p.lists); got != "[tool prompt resource template]" {
		t.Error(got)
	}
}
