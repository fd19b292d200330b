package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxConcurrent is how many requests of one client wait for something at once;
// more are refused.
const maxConcurrent = 1024

// lastWords is how long cancelled requests may take to answer, and the client to
// read what was written for it.
const lastWords = 300 * time.Millisecond

var errClientGone = errors.New("the client is gone")

// ErrCancelled is the cause of a request context that ended because whoever
// made the request cancelled it.
type ErrCancelled struct {
	// Params are the params of notifications/cancelled.
	Params json.RawMessage
}

// Error names the cause.
func (e *ErrCancelled) Error() string { return "cancelled by the one who asked" }

// Router answers the methods that do not belong to the session's lifecycle.
type Router interface {
	// Routes reports whether a request method is answered by Handle.
	Routes(method string) bool
	// Handle answers one request. It is called concurrently; ctx ends with the
	// request.
	Handle(ctx context.Context, s *Session, method string, params json.RawMessage) (json.RawMessage, *Error)
	// Notified takes a notification of the client, in order; it must not block.
	Notified(s *Session, method string, params json.RawMessage)
}

// ConnOptions say how a Conn treats its client.
type ConnOptions struct {
	// MaxFrame is the largest message in bytes, DefaultMaxFrame if 0.
	MaxFrame int
	// Drain is how long requests under way may go on after the client closed
	// its side.
	Drain time.Duration
	// Greeted is called once initialize has been answered; may be nil. It must
	// not block.
	Greeted func()
	// Garbage is told of input that is no message; may be nil.
	Garbage func(Garbage)
}

// Conn serves one client over a byte stream. Routed methods are answered by a
// Router on raw bytes; all others (initialize, ping, ...) go to an MCP SDK
// server, which sees the Conn as its mcp.Transport and mcp.Connection. Request
// ids are the client's own bytes: the SDK only ever sees substitutes.
type Conn struct {
	router  Router
	options ConnOptions
	in      *Reader
	out     *Outbox
	session *Session

	toSDK  chan jsonrpc.Message
	closed chan struct{}
	close  func()

	slots       chan struct{}
	requests    sync.WaitGroup
	initialized chan struct{} // closed once the initialize reply is written
	calls       calls

	mu         sync.Mutex
	greeted    bool
	inFlight   map[string]func(cause error) // how to cancel
	substitute int64
	sdkIDs     map[int64]sdkRequest
}

// sdkRequest is a request that the SDK works on.
type sdkRequest struct {
	id     json.RawMessage
	method string
	batch  *batch
}

// NewConn returns a Conn that reads r and writes w. Serve runs it.
func NewConn(r io.Reader, w io.Writer, options ConnOptions) *Conn {
	c := &Conn{
		options:     options,
		out:         NewOutbox(w),
		toSDK:       make(chan jsonrpc.Message, 1),
		closed:      make(chan struct{}),
		slots:       make(chan struct{}, maxConcurrent),
		initialized: make(chan struct{}),
		inFlight:    map[string]func(cause error){},
		sdkIDs:      map[int64]sdkRequest{},
	}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	c.in = NewReader(r, options.MaxFrame, c.garbage)
	c.session = NewSession("stdio", c)
	return c
}

// Session is the client's session.
func (c *Conn) Session() *Session { return c.session }

// Serve answers the client until it closes its side (nil), the output breaks,
// or ctx ends. The server is an SDK server without tools of its own; it is
// connected before the first byte is read. Without one (nil) the router answers
// all methods, and no initialize is waited for. Serve is called once.
func (c *Conn) Serve(ctx context.Context, router Router, server *mcp.Server) error {
	c.router = router
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.close()
	if server == nil {
		c.greeted = true
		close(c.initialized)
	} else if _, err := server.Connect(ctx, c, nil); err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	// Reading a standard stream cannot be interrupted, so it has a goroutine of
	// its own, which is left behind when the process ends for another reason.
	read := make(chan error, 1)
	go c.read(ctx, read)
	var err error
	select {
	case err = <-read:
		// Whoever closed the stream may be waiting for this process to end, so
		// requests under way get a limited time, and what is still open then has
		// a moment to answer that it was cut short.
		if !c.idle(c.options.Drain) {
			cancel(errClientGone)
			c.cancelAll(errClientGone)
			c.idle(lastWords)
		}
	case <-c.out.Failed():
		err = fmt.Errorf("write to client: %w", c.out.Err())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	cancel(errClientGone)
	c.cancelAll(errClientGone)
	c.calls.fail(Errorf(CodeUnavailable, "the client is gone"))
	c.out.Drain(lastWords)
	return err
}

// cancelAll cancels what is under way; requests that were started have no context
// to end.
func (c *Conn) cancelAll(cause error) {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.inFlight))
	c.mu.Unlock()
	for _, cancel := range all {
		cancel(cause)
	}
}

// idle waits until no request is under way, at most for d.
func (c *Conn) idle(d time.Duration) bool {
	done := make(chan struct{})
	go func() { c.requests.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// read reads messages until the end of the stream, which it reports to ended.
// The goroutine that has read a routed request answers it, and leaves reading on
// to a new one: the answer is what somebody waits for, and this way it does not
// wait for another thread to wake up.
func (c *Conn) read(ctx context.Context, ended chan<- error) {
	for {
		m, err := c.in.Next()
		if errors.Is(err, io.EOF) {
			ended <- nil
			return
		}
		if err != nil {
			ended <- fmt.Errorf("read from client: %w", err)
			return
		}
		answer := c.dispatch(ctx, m)
		if answer == nil {
			continue
		}
		go c.read(ctx, ended)
		answer()
		return
	}
}

// dispatch takes one message; where that may take time, it returns the rest of
// the work.
func (c *Conn) dispatch(ctx context.Context, m Message) (answer func()) {
	switch {
	case m.IsRequest():
		return c.request(ctx, m)
	case m.IsNotification():
		c.notification(m)
	case m.IsResponse():
		c.calls.answer(m)
	default:
		c.out.Post(ErrorResponse(nil, Errorf(CodeInvalidRequest, "not a JSON-RPC request, notification or response")))
	}
	return nil
}

func (c *Conn) request(ctx context.Context, m Message) (answer func()) {
	if !c.router.Routes(m.Method) {
		c.forward(m)
		return nil
	}
	c.mu.Lock()
	greeted := c.greeted
	c.mu.Unlock()
	if !greeted {
		c.reply(m.batch, ErrorResponse(m.ID, Errorf(CodeInvalidRequest, "%s before initialize", m.Method)))
		return nil
	}
	if c.start(m) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if !c.begin(m.ID, cancel) {
		cancel(nil)
		c.reply(m.batch, ErrorResponse(m.ID, Errorf(CodeInvalidRequest, "request id %s is in use", m.ID)))
		return nil
	}
	select {
	case c.slots <- struct{}{}:
	default:
		// Waiting here would leave cancellations unread.
		c.end(m.ID)
		cancel(nil)
		c.reply(m.batch, ErrorResponse(m.ID, Errorf(CodeBusy, "%d requests are under way; try again when some have ended", maxConcurrent)))
		return nil
	}
	c.requests.Add(1)
	return func() {
		defer c.requests.Done()
		defer func() { <-c.slots }()
		frame := c.handle(ctx, m)
		c.end(m.ID)
		cancel(nil)
		c.reply(m.batch, frame)
	}
}

// handle returns the answer, nil for a request that the client cancelled.
func (c *Conn) handle(ctx context.Context, m Message) (frame []byte) {
	defer func() {
		if p := recover(); p != nil {
			c.complain(Garbage{Why: fmt.Errorf("panic in %s: %v\n%s", m.Method, p, debug.Stack())})
			frame = ErrorResponse(m.ID, Errorf(CodeInternal, "internal error in %s", m.Method))
		}
	}()
	select {
	case <-c.initialized:
	case <-ctx.Done():
		return nil
	}
	result, failure := c.router.Handle(withRequestID(ctx, m.ID), c.session, m.Method, m.Params)
	if cancelled := new(ErrCancelled); errors.As(context.Cause(ctx), &cancelled) {
		return nil
	}
	return answerFrame(m.ID, result, failure)
}

func (c *Conn) begin(id json.RawMessage, cancel func(cause error)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.inFlight[string(id)]; taken {
		return false
	}
	c.inFlight[string(id)] = cancel
	return true
}

func (c *Conn) end(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, string(id))
}

// reply sends an answer, by way of its batch if it came in one.
func (c *Conn) reply(b *batch, frame []byte) {
	if b != nil {
		frame = b.answer(frame)
	}
	if frame != nil {
		// A failed write ends Serve by itself.
		_ = c.out.Send(frame)
	}
}

func (c *Conn) notification(m Message) {
	switch m.Method {
	case "notifications/cancelled":
		c.mu.Lock()
		cancel := c.inFlight[string(Member(m.Params, "requestId"))]
		c.mu.Unlock()
		if cancel != nil {
			cancel(&ErrCancelled{Params: m.Params})
		}
	case "notifications/initialized":
		c.forward(m)
		c.router.Notified(c.session, m.Method, m.Params)
	default:
		c.router.Notified(c.session, m.Method, m.Params)
	}
}

// forward hands a message to the SDK, under a substitute id.
func (c *Conn) forward(m Message) {
	request := &jsonrpc.Request{Method: m.Method, Params: m.Params}
	if m.IsRequest() {
		c.mu.Lock()
		c.substitute++
		n := c.substitute
		c.sdkIDs[n] = sdkRequest{m.ID, m.Method, m.batch}
		if m.Method == "initialize" {
			c.greeted = true
			c.session.SetClient(clientInfo(m.Params))
		}
		c.mu.Unlock()
		c.requests.Add(1)
		// A number is always a valid id.
		request.ID, _ = jsonrpc.MakeID(float64(n))
	}
	select {
	case c.toSDK <- request:
	case <-c.closed:
	}
}

func clientInfo(params json.RawMessage) ClientInfo {
	var info ClientInfo
	info.Name, _ = String(Member(params, "clientInfo", "name"))
	info.Version, _ = String(Member(params, "clientInfo", "version"))
	info.Protocol, _ = String(Member(params, "protocolVersion"))
	info.Capabilities = Member(params, "capabilities")
	return info
}

// garbage answers a line of the client that is no message.
func (c *Conn) garbage(g Garbage) {
	c.complain(g)
	id := json.RawMessage(nil)
	if !g.Response {
		id = g.ID
	}
	c.out.Post(ErrorResponse(id, Errorf(CodeParse, "parse error: %v; messages are JSON objects, one per line", g.Why)))
}

func (c *Conn) complain(g Garbage) {
	if c.options.Garbage != nil {
		c.options.Garbage(g)
	}
}

// Notify implements Peer.
func (c *Conn) Notify(method string, params json.RawMessage) {
	c.out.Post(Notification(method, params))
}

// Call implements Peer.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *Error) {
	id, answer := c.calls.open()
	defer c.calls.forget(id)
	c.out.Post(Request(id, method, params))
	select {
	case a := <-answer:
		return a.result, a.failure
	case <-ctx.Done():
		cause := context.Cause(ctx)
		params := fmt.Appendf(nil, `{"requestId":%d,"reason":%s}`, id, Quote(cause.Error()))
		if cancelled := new(ErrCancelled); errors.As(cause, &cancelled) {
			params = SetMember(cancelled.Params, strconv.AppendInt(nil, id, 10), "requestId")
		}
		c.Notify("notifications/cancelled", params)
		return nil, Errorf(CodeTimeout, "%s: %v", method, cause)
	}
}

// Connect implements mcp.Transport.
func (c *Conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read implements mcp.Connection.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.toSDK:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection: it puts the client's id back.
func (c *Conn) Write(_ context.Context, m jsonrpc.Message) error {
	response, ok := m.(*jsonrpc.Response)
	if !ok {
		frame, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		c.out.Post(frame)
		return nil
	}
	n, _ := strconv.ParseInt(fmt.Sprint(response.ID.Raw()), 10, 64)
	c.mu.Lock()
	request, ok := c.sdkIDs[n]
	delete(c.sdkIDs, n)
	c.mu.Unlock()
	if !ok {
		return nil
	}
	defer c.requests.Done()
	if response.Error != nil {
		c.reply(request.batch, ErrorResponse(request.id, sdkError(response.Error)))
	} else {
		c.reply(request.batch, Response(request.id, response.Result))
	}
	if request.method == "initialize" {
		select {
		case <-c.initialized:
		default:
			close(c.initialized)
			if c.options.Greeted != nil {
				c.options.Greeted()
			}
		}
	}
	return nil
}

// sdkError gives every error a negative code; the SDK's default is 0.
func sdkError(err error) *Error {
	if e := new(jsonrpc.Error); errors.As(err, &e) && e.Code != 0 {
		return &Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return Errorf(CodeInvalidRequest, "%v", err)
}

// Close implements mcp.Connection.
func (c *Conn) Close() error {
	c.close()
	return nil
}

// SessionID implements mcp.Connection; a stream has none.
func (c *Conn) SessionID() string { return "" }
