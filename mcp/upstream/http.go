package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// closeTimeout bounds taking leave of a server.
const closeTimeout = 2 * time.Second

// httpLink is a link over streamable HTTP (protocol 2025-03-26 to 2025-11-25):
// each message is a POST, whose response is the answer or a stream that leads
// to it; one more stream, opened by GET, carries what belongs to no request.
//
//	Send ──POST──> 202                    notifications, replies
//	          └──> JSON | event stream ──> receiver, during = the request's id
//	listen ─GET──> event stream ─────────> receiver, during = 0
//
// Every request for which Send returned nil is answered through the receiver,
// by the link itself with code -32000 where the server fails to (see
// unanswered); that may happen before Send returns. A server that cannot be
// reached does not end the link: only Close does.
type httpLink struct {
	*httpEndpoint
	recv receiver
	life context.Context // ends with Close
	end  context.CancelCauseFunc
	done chan struct{} // closed when life ends
	idle chan struct{} // closed when the last exchange after that has ended

	mu        sync.Mutex
	closed    bool
	listening bool
	expired   bool // the server forgot the session
	gone      bool // ... and said so with 404
	active    int  // exchanges under way
	session   string
	protocol  string
}

// newHTTPLink makes a link and sends nothing. ctx lends it its values; its end
// does not end the link.
func newHTTPLink(ctx context.Context, o httpOptions, recv receiver) (*httpLink, error) {
	e, err := newHTTPEndpoint(o)
	if err != nil {
		return nil, err
	}
	l := &httpLink{httpEndpoint: e, recv: recv, done: make(chan struct{}), idle: make(chan struct{})}
	l.life, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return l, nil
}

// SetProtocol tells the negotiated protocol version, which is sent with all
// that follows. It is to be called before notifications/initialized is sent.
func (l *httpLink) SetProtocol(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.protocol = version
}

// Done is closed by Close.
func (l *httpLink) Done() <-chan struct{} { return l.done }

// Err is errHTTPClosed after Close, nil before.
func (l *httpLink) Err() error {
	if l.life.Err() == nil {
		return nil
	}
	return context.Cause(l.life)
}

// httpExchange is one message of ours with all the responses that belong to
// it, or the listening stream. It is used by one goroutine at a time.
type httpExchange struct {
	ctx      context.Context // ends with the caller's, with the link, or by cancel
	cancel   context.CancelCauseFunc
	detach   func() bool // frees ctx from the caller's
	id       int64       // our request id, 0 if no answer is expected
	answered bool
	lastID   string        // of the last event that had one
	retry    time.Duration // what the server asked for; negative if nothing
	heard    bool          // something new has come since this was cleared
	odd      string        // what came instead of an answer
}

// begin opens an exchange; end has to be called.
func (l *httpLink) begin(ctx context.Context, id int64) (*httpExchange, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errHTTPClosed
	}
	l.active++
	x := &httpExchange{id: id, retry: -1}
	x.ctx, x.cancel = context.WithCancelCause(l.life)
	x.detach = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	return x, nil
}

func (l *httpLink) finish(x *httpExchange) {
	x.detach()
	x.cancel(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if l.closed && l.active == 0 {
		close(l.idle)
	}
}

// Send posts one message and returns when the server has accepted it, which
// for a request may be as late as its answer. m.Frame must stay unchanged from
// then on. The end of ctx ends the request's stream too. The error is or wraps
// *statusError, errUnauthorized or errSessionExpired, the cause of ctx's end,
// or a failure of the network (see transientHTTP).
func (l *httpLink) Send(ctx context.Context, m outgoing) error {
	x, err := l.begin(ctx, m.ID)
	if err != nil {
		return err
	}
	resp, err := l.post(x, m)
	if err != nil {
		l.finish(x)
		return err
	}
	if resp == nil {
		l.finish(x)
	} else {
		go l.consume(x, resp)
	}
	if m.Method == "notifications/initialized" {
		l.listenOnce()
	}
	return nil
}

// post sends m. A nil response with a nil error means that there is nothing
// more to come.
func (l *httpLink) post(x *httpExchange, m outgoing) (*http.Response, error) {
	initialize := m.Method == "initialize"
	header, session, err := l.head(initialize)
	if err != nil {
		return nil, err
	}
	header["Content-Type"] = []string{"application/json"}
	header["Accept"] = []string{"application/json, text/event-stream"}
	resp, err := l.do(x.ctx, httpCall{method: http.MethodPost, body: m.Frame, header: header})
	if err == nil {
		if id := resp.Header.Get("Mcp-Session-Id"); initialize && id != "" {
			l.mu.Lock()
			l.session = id
			l.mu.Unlock()
		}
		if m.ID == 0 && resp.Body == http.NoBody {
			return nil, nil
		}
		return resp, nil
	}
	var status *statusError
	switch {
	case errors.Is(err, errLost) && m.ID != 0:
		l.refuse(x, err.Error())
		return nil, nil
	case !errors.As(err, &status):
		return nil, err
	case session != "" && forgotSession(status):
		l.expire(session, status.Code == http.StatusNotFound)
		return nil, fmt.Errorf("%w: %w", errSessionExpired, err)
	case status.Code != http.StatusUnauthorized && l.answeredBy(x, status.full):
		return nil, nil
	}
	return nil, err
}

// head returns the headers of the protocol and the session they name.
func (l *httpLink) head(initialize bool) (http.Header, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := http.Header{}
	if initialize {
		return h, "", nil
	}
	if l.expired {
		return nil, "", errSessionExpired
	}
	if l.session != "" {
		h.Set("Mcp-Session-Id", l.session)
	}
	if l.protocol != "" {
		h.Set("MCP-Protocol-Version", l.protocol)
	}
	return h, l.session, nil
}

// expire notes that the server has forgotten the session; whatever is sent
// afterwards fails without asking it.
func (l *httpLink) expire(session string, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session {
		l.expired = true
		l.gone = l.gone || gone
	}
}

// Close ends all streams, says goodbye to the server if there is a session,
// and waits for both, 2 s at most.
func (l *httpLink) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	leave := first && l.session != "" && !l.gone
	if first && l.active == 0 {
		close(l.idle)
	}
	l.mu.Unlock()
	if first {
		l.end(errHTTPClosed)
		close(l.done)
	}
	var err error
	if leave {
		err = l.leave(ctx)
	}
	select {
	case <-l.idle:
	case <-ctx.Done():
		err = fmt.Errorf("wait for streams to end: %w", context.Cause(ctx))
	}
	l.close()
	return err
}

// leave ends the session on the server, which need not support it.
func (l *httpLink) leave(ctx context.Context) error {
	l.mu.Lock()
	header := http.Header{"Mcp-Session-Id": {l.session}}
	if l.protocol != "" {
		header.Set("MCP-Protocol-Version", l.protocol)
	}
	l.mu.Unlock()
	resp, err := l.do(ctx, httpCall{method: http.MethodDelete, header: header})
	var status *statusError
	if errors.As(err, &status) {
		return nil
	}
	if err == nil {
		resp.Body.Close()
	}
	return err
}
