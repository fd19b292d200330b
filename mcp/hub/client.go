package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
)

// client is one connection of an instance: it routes what comes on it.
type client struct {
	hub     *hub
	session *wire.Session
	cancel  context.CancelCauseFunc
	work    work

	process  atomic.Pointer[process] // once hub/open has succeeded
	replaced atomic.Bool             // its server's entry has changed

	// Guarded by the hub's lock.
	times          *upstream.Times // as the instance last sent them; nil if it did not
	opening        bool
	stopping       bool
	instance, name string
}

// attend serves one connection to its end.
func (h *hub) attend(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	if err := checkPeer(conn, self()); err != nil {
		h.log(fmt.Sprintf("refused a connection: %v", err))
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	peer := wire.NewConn(conn, wire.Eager(conn), wire.ConnOptions{MaxFrame: h.options.MaxFrame})
	c := &client{hub: h, session: peer.Session(), cancel: cancel}
	h.mu.Lock()
	h.clients[c] = true
	over := h.over
	h.mu.Unlock()
	if over {
		return
	}
	// How it ended is of no interest: the session is over.
	_ = peer.Serve(ctx, c, nil)
	_ = conn.Close() // ends the reading
	c.leave()
}

// leave gives up all that the client has under way and its server.
func (c *client) leave() {
	c.work.finish()
	c.hub.set.Leave(c.session)
	c.hub.mu.Lock()
	delete(c.hub.clients, c)
	c.hub.mu.Unlock()
	if p := c.process.Load(); p != nil {
		c.hub.part(c, p, c.replaced.Load())
	}
}

// Routes implements wire.Router: all methods are.
func (c *client) Routes(string) bool { return true }

// Handle implements wire.Router.
func (c *client) Handle(ctx context.Context, _ *wire.Session, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	if !c.work.begin() {
		return nil, unavailable(errLeft)
	}
	defer c.work.end()
	switch method {
	case "ping":
		if !c.hub.accepting() && c.process.Load() == nil {
			return nil, unavailable(errEnding)
		}
		return json.RawMessage("{}"), nil
	case upstream.MethodOpen:
		return c.open(ctx, params)
	case methodStatus:
		return c.status()
	case methodStop:
		return c.stop(ctx)
	}
	p := c.process.Load()
	if p == nil {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "%s before %s", method, upstream.MethodOpen)
	}
	result, failure := c.relay(ctx, p, method, params)
	return result, upstream.Mark(failure)
}

// open answers hub/open: the server is started if it does not run.
func (c *client) open(ctx context.Context, params json.RawMessage) (json.RawMessage, *wire.Error) {
	var open upstream.OpenParams
	if err := json.Unmarshal(params, &open); err != nil || open.Entry.Name == "" || open.Entry.Command == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "%s: the entry of a server is missing or cannot be read", upstream.MethodOpen)
	}
	if !c.claim(open) {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "%s: a connection is for one session", upstream.MethodOpen)
	}
	hello, err := c.connect(ctx, open.Entry)
	if err != nil {
		c.hub.mu.Lock()
		c.opening, c.times = false, nil
		c.hub.mu.Unlock()
		return nil, unavailable(err)
	}
	result, err := json.Marshal(upstream.OpenResult{PID: hello.PID, Hub: c.hub.options.ID})
	if err != nil {
		return nil, wire.Errorf(wire.CodeInternal, "%s: %v", upstream.MethodOpen, err)
	}
	// Not encoded with the rest, which would change its bytes.
	return wire.SetMember(result, hello.Result, "initialize"), nil
}

// claim reserves the connection for a session.
func (c *client) claim(open upstream.OpenParams) bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.opening {
		return false
	}
	c.opening = true
	if c.times == nil { // else they came after the request, and were faster
		c.times = &open.Entry.Times
	}
	c.instance, c.name = open.Instance, open.Client.Name
	c.session.SetClient(wire.ClientInfo{Name: open.Client.Name, Version: open.Client.Version, Capabilities: open.Entry.Announced})
	return true
}

// connect makes the connection a session with a server.
func (c *client) connect(ctx context.Context, entry upstream.Entry) (upstream.Hello, error) {
	p, err := c.hub.join(ctx, c, entry)
	if err != nil {
		return upstream.Hello{}, err
	}
	c.hub.set.Host(p.id, entry)
	c.hub.hosted(p)
	c.hub.retime(p)
	hello, err := c.hub.set.Connect(ctx, p.id)
	if err != nil {
		c.hub.part(c, p, c.replaced.Load())
		return upstream.Hello{}, err
	}
	c.process.Store(p)
	c.hub.retime(p) // for times that came meanwhile
	return hello, nil
}

// adjust takes over the times that the instance sends; before there is a session
// they are kept for it.
func (c *client) adjust(times upstream.Times) {
	c.hub.mu.Lock()
	c.times = &times
	c.hub.mu.Unlock()
	if p := c.process.Load(); p != nil {
		c.hub.retime(p)
	}
}

// unavailable is the answer where a server, or the hub, cannot be used now.
func unavailable(err error) *wire.Error {
	failure := wire.Errorf(wire.CodeUnavailable, "%v", err)
	failure.Data = fmt.Appendf(nil, `{"permanent":%t,"ending":%t}`, upstream.Permanent(err), errors.Is(err, errEnding))
	return failure
}

// status answers hub/status.
func (c *client) status() (json.RawMessage, *wire.Error) {
	raw, err := json.Marshal(c.hub.report())
	if err != nil {
		return nil, wire.Errorf(wire.CodeInternal, "%s: %v", methodStatus, err)
	}
	return raw, nil
}

// stop answers hub/stop, after all servers have been stopped.
func (c *client) stop(ctx context.Context) (json.RawMessage, *wire.Error) {
	c.hub.mu.Lock()
	c.stopping = true
	c.hub.mu.Unlock()
	c.hub.end(errStopped)
	select {
	case <-c.hub.stopped:
		return json.RawMessage("{}"), nil
	case <-ctx.Done():
		return nil, unavailable(context.Cause(ctx))
	}
}

// Notified implements wire.Router.
func (c *client) Notified(_ *wire.Session, method string, params json.RawMessage) {
	p := c.process.Load()
	switch {
	case method == upstream.MethodLeave:
		c.replaced.Store(string(wire.Member(params, "replaced")) == "true")
	case method == upstream.MethodAdjust:
		var times upstream.Times
		if err := json.Unmarshal(params, &times); err == nil {
			c.adjust(times)
		}
	case p != nil:
		c.hub.set.NotifiedBy(p.id, method, params)
	}
}

// relay answers a request of the session.
func (c *client) relay(ctx context.Context, p *process, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	if kind, ok := listed(method); ok {
		elements, err := c.hub.set.Listed(ctx, p.id, kind)
		if refused := new(wire.Error); errors.As(err, &refused) {
			return nil, refused
		}
		if err != nil {
			return nil, wire.Errorf(wire.CodeUnavailable, "%v", err) // without data, for Mark
		}
		return page(kind, elements), nil
	}
	request := c.request(p, method, params)
	switch method {
	case "initialize":
		return nil, wire.Errorf(wire.CodeInvalidRequest, "initialize: the session was begun with %s", upstream.MethodOpen)
	case "logging/setLevel":
		return c.setLevel(params)
	case "resources/subscribe", "resources/unsubscribe":
		uri, ok := wire.String(wire.Member(params, "uri"))
		if !ok {
			return nil, wire.Errorf(wire.CodeInvalidParams, "%s: parameter \"uri\" is missing or no text", method)
		}
		if method == "resources/subscribe" {
			return c.hub.set.Subscribe(ctx, request, uri)
		}
		return c.hub.set.Unsubscribe(ctx, request, uri)
	}
	return c.hub.set.Do(ctx, request)
}

// request is a request as it goes to the server. Whether a call may be made
// again is for the instance to say, whose user has a word in it.
func (c *client) request(p *process, method string, params json.RawMessage) upstream.Request {
	return upstream.Request{
		Session: c.session, Server: p.id, Method: method, Params: params,
		Repeatable: method != "tools/call",
	}
}

// Start implements wire.Starter for what goes to the server as it is.
func (c *client) Start(_ *wire.Session, _ json.RawMessage, method string, params json.RawMessage, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	p := c.process.Load()
	if p == nil || !relayed(method) {
		return nil, false
	}
	id, ok := c.work.add()
	if !ok {
		return nil, false
	}
	cancel, started = c.hub.set.Start(c.request(p, method, params), func(result json.RawMessage, failure *wire.Error) {
		c.work.remove(id)
		done(result, upstream.Mark(failure))
	})
	if !started {
		c.work.remove(id)
		return nil, false
	}
	c.work.arm(id, cancel)
	return cancel, true
}

// relayed reports whether requests of a method go to the server as they are.
func relayed(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
		return true
	}
	return false
}

// setLevel answers logging/setLevel; what the server is asked for depends on its
// other sessions too.
func (c *client) setLevel(params json.RawMessage) (json.RawMessage, *wire.Error) {
	level, _ := wire.String(wire.Member(params, "level"))
	if !slices.Contains(logLevels(), level) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "logging/setLevel: level %q is none of %v", level, logLevels())
	}
	c.session.SetLogLevel(level)
	c.hub.look()
	return json.RawMessage("{}"), nil
}
