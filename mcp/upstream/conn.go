package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// cancelWait is how long a cancellation may take to be handed to an upstream.
const cancelWait = 2 * time.Second

// observer hears what an upstream says on its own account.
type observer interface {
	// listChanged is told that a list of the upstream has changed.
	listChanged(kind catalog.Kind)
	// resourceUpdated is told of an update of a subscribed resource.
	resourceUpdated(params json.RawMessage)
}

// conn is the JSON-RPC peer on one link: it gives requests ids of its own,
// brings answers and progress back to the session that asked, and takes the
// upstream's requests to a client. It is alive until its link is done.
type conn struct {
	server string
	// owner is the only session of a private connection; all that the upstream
	// says of itself goes there.
	owner    *wire.Session
	observer observer
	link     link

	ctx    context.Context // of requests to clients; ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	readings readings

	delivering atomic.Int32          // messages on their way to a client
	told       atomic.Pointer[hello] // by the hub, of the server's latest process; nil if it was not

	mu      sync.Mutex
	closed  bool
	last    int64
	pending map[int64]*pendingCall
	inbound map[string]context.CancelCauseFunc
	tokens  map[string]json.RawMessage // our progress token on the client's side -> the upstream's
}

// pendingCall is a request that the upstream has not answered yet; it stays
// after its caller has given up.
type pendingCall struct {
	session *wire.Session
	token   json.RawMessage // the client's progress token
	answer  chan wire.Message
	done    func(json.RawMessage, error) // instead of answer, for a started call
	timer   *time.Timer                  // of a started call
	sign    chan struct{}                // of life: one progress notification
	givenUp bool                         // nobody waits any more
}

func newConn(ctx context.Context, server string, owner *wire.Session, o observer) *conn {
	c := &conn{
		server: server, owner: owner, observer: o,
		pending: map[int64]*pendingCall{},
		inbound: map[string]context.CancelCauseFunc{},
		tokens:  map[string]json.RawMessage{},
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// alive reports whether requests can still be sent.
func (c *conn) alive() bool {
	select {
	case <-c.link.Done():
		return false
	default:
		return true
	}
}

// close ends the link and waits for what the conn has started.
func (c *conn) close(ctx context.Context) error {
	c.cancel()
	err := c.link.Close(ctx)
	c.failStarted()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.tasks.Wait()
	return err
}

// errIdle is the cause of a call that heard nothing for its idle budget.
var errIdle = errors.New("silent for too long")

// errDied tells that the link ended before the answer came; the upstream may or
// may not have done its work.
var errDied = errors.New("connection lost")

// request sends a request for a session (nil for our own) and waits for the
// answer. An error object of the upstream comes back as *wire.Error, verbatim;
// other errors are ours: the link's, errDied, or the cause of ctx. idle limits
// the time without a sign of life, 0 for no limit.
func (c *conn) request(ctx context.Context, session *wire.Session, method string, params json.RawMessage, idle time.Duration) (json.RawMessage, error) {
	call := &pendingCall{session: session, answer: make(chan wire.Message, 1), sign: make(chan struct{}, 1)}
	if token := wire.Member(params, "_meta", "progressToken"); !wire.IsNull(token) {
		call.token = token
	}
	wantsProgress := call.token != nil || idle > 0 && session != nil
	c.mu.Lock()
	c.last++
	id := c.last
	c.pending[id] = call
	c.mu.Unlock()
	if wantsProgress {
		params = wire.SetMember(params, strconv.AppendInt(nil, id, 10), "_meta", "progressToken")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also ends the stream that the answer was to come on
	m, err := c.await(ctx, call, idle, c.send(ctx, outgoing{Frame: wire.Request(id, method, params), ID: id, Method: method}))
	switch {
	case err != nil && method == "initialize":
		// MCP, cancellation: this request must not be cancelled.
		c.forget(id)
		return nil, err
	case err != nil && (ctx.Err() != nil || errors.Is(err, errIdle)):
		c.abandon(ctx, id, err)
		return nil, err
	case err != nil:
		c.forget(id)
		return nil, err
	case m.Error != nil && m.Raw == nil:
		// The link's own word that no answer will come.
		return nil, fmt.Errorf("%w: %s", errDied, wire.ParseError(m.Error).Message)
	case m.Error != nil:
		return nil, c.failure(m.Error)
	}
	return m.Result, nil
}

// failure is an error that was the answer to a request.
func (c *conn) failure(raw json.RawMessage) error {
	e := wire.ParseError(raw)
	if _, hub := c.link.(*hubLink); !hub || string(wire.Member(e.Data, hubMark)) != "true" {
		return e
	}
	if string(wire.Member(e.Data, "died")) == "true" {
		return &diedError{e.Message}
	}
	return &wire.Error{Code: e.Code, Message: e.Message}
}

// send delivers a request and returns where it is told that this failed. Over
// HTTP it may take as long as the answer, so it does not hold the caller.
func (c *conn) send(ctx context.Context, m outgoing) <-chan error {
	failed := make(chan error, 1)
	if quick(c.link) {
		if err := c.link.Send(ctx, m); err != nil {
			failed <- err
		}
		return failed
	}
	if !c.spawn(func() {
		if err := c.link.Send(ctx, m); err != nil {
			failed <- err
		}
	}) {
		failed <- errHTTPClosed // not sent, so it can be sent again
	}
	return failed
}

func (c *conn) await(ctx context.Context, call *pendingCall, idle time.Duration, failed <-chan error) (wire.Message, error) {
	var silence <-chan time.Time
	var timer *time.Timer
	if idle > 0 {
		timer = time.NewTimer(idle)
		defer timer.Stop()
		silence = timer.C
	}
	for {
		select {
		case m := <-call.answer:
			return m, nil
		case <-call.sign:
			if timer != nil {
				timer.Reset(idle)
			}
		case err := <-failed:
			if ctx.Err() != nil {
				return wire.Message{}, context.Cause(ctx)
			}
			return wire.Message{}, err
		case <-ctx.Done():
			return wire.Message{}, context.Cause(ctx)
		case <-silence:
			return wire.Message{}, errIdle
		case <-c.link.Done():
			select {
			case err := <-failed:
				return wire.Message{}, err
			default:
				return c.lastAnswer(call)
			}
		}
	}
}

// lastAnswer takes an answer that came just before the link ended.
func (c *conn) lastAnswer(call *pendingCall) (wire.Message, error) {
	select {
	case m := <-call.answer:
		return m, nil
	default:
		return wire.Message{}, errDied
	}
}

func (c *conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// abandon tells the upstream that nobody waits any more. The call stays
// pending, since the upstream may still be working for its session; its
// progress is nobody's.
func (c *conn) abandon(ctx context.Context, id int64, cause error) {
	c.mu.Lock()
	if call := c.pending[id]; call != nil {
		call.token, call.givenUp = nil, true
		if c.owner != nil {
			delete(c.pending, id) // only a shared connection has to know whom it still works for
		}
	}
	c.mu.Unlock()
	params := fmt.Appendf(nil, `{"requestId":%d,"reason":%s}`, id, wire.Quote(cause.Error()))
	if cancelled := new(wire.ErrCancelled); errors.As(cause, &cancelled) {
		params = wire.SetMember(cancelled.Params, strconv.AppendInt(nil, id, 10), "requestId")
	}
	sendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer cancel()
	// If it cannot be sent the link is about to end, and the upstream with it.
	_ = c.notify(sendCtx, "notifications/cancelled", params)
}

// notify sends a notification.
func (c *conn) notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.link.Send(ctx, outgoing{Frame: wire.Notification(method, params), Method: method})
}

// receive takes every message of the link, in order; it never blocks.
func (c *conn) receive(m wire.Message, during int64) {
	c.delivering.Add(1)
	defer c.delivering.Add(-1)
	switch {
	case m.IsResponse():
		c.answered(m)
	case m.IsRequest():
		c.asked(m, during)
	case m.IsNotification():
		c.notified(m, during)
	}
}

func (c *conn) answered(m wire.Message) {
	id, ok := wire.NumberID(m.ID)
	if !ok {
		return
	}
	c.mu.Lock()
	call := c.pending[id]
	if call == nil {
		c.mu.Unlock()
		return
	}
	delete(c.pending, id)
	done := call.take()
	c.mu.Unlock()
	switch {
	case done != nil && m.Error != nil:
		done(nil, c.failure(m.Error))
	case done != nil:
		done(m.Result, nil)
	case call.answer != nil:
		call.answer <- m
	}
}

// garbage fails the call whose answer could not be read.
func (c *conn) garbage(g wire.Garbage) {
	if g.ID == nil || !g.Response {
		return
	}
	failure := wire.Errorf(wire.CodeInternal, "server %s sent an answer that cannot be read: %v", c.server, g.Why)
	c.answered(wire.Message{Raw: failure.JSON(), ID: g.ID, Error: failure.JSON()})
}

// target is the session that what the upstream says belongs to: the one whose
// call it comes with, the owner of a private connection, or the only one with
// a call in flight.
func (c *conn) target(during int64) *wire.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.pending[during]; call != nil && call.session != nil {
		return call.session
	}
	if c.owner != nil {
		return c.owner
	}
	var only *wire.Session
	for _, call := range c.pending {
		switch {
		case call.session == nil || call.session == only:
		case only != nil:
			return nil
		default:
			only = call.session
		}
	}
	return only
}
