package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
)

// Methods of the conversation with the hub, before and beside MCP.
const (
	// MethodOpen is the first request on a connection to the hub. It names a
	// server; after the answer the connection belongs to a session with it.
	MethodOpen = "hub/open"
	// MethodLeave is a notification: nobody else is going to need the server as
	// it was configured.
	MethodLeave = "notifications/hub/leave"
	// MethodAdjust is a notification with the Times of the server as they are now.
	MethodAdjust = "notifications/hub/adjust"
	// MethodHello is a notification of the hub: its params are what the server,
	// started again, answered to initialize, if that is not what it had answered
	// before.
	MethodHello = "notifications/hub/hello"
)

// hubMark is the member of an error's data that tells an error of the hub from
// one of the server, which is passed on as it is.
const hubMark = "hub"

// Mark prepares an error for the way from the hub to an instance.
func Mark(e *wire.Error) *wire.Error {
	if e == nil || e.Raw != nil || e.Data != nil {
		return e
	}
	return &wire.Error{Code: e.Code, Message: e.Message, Data: json.RawMessage(`{"` + hubMark + `":true}`)}
}

// diedData marks an error of the hub that tells of the end of a server while it
// worked on a call. Whether the call is made again is for the instance to say.
const diedData = `{"` + hubMark + `":true,"died":true}`

// diedError is such an error at the instance; it is an errDied.
type diedError struct{ message string }

// Error is the hub's text.
func (e *diedError) Error() string { return e.message }

// Is implements the interface of errors.Is.
func (e *diedError) Is(target error) bool { return target == errDied }

// hubGrace is how long what was written to the hub may take to be sent.
const hubGrace = 300 * time.Millisecond

// errHubGone tells that the connection to the hub ended.
var errHubGone = errors.New("the process that runs the shared servers ended")

// errRefusedForGood tells that the hub could not start the server and that
// trying again would tell nothing new.
var errRefusedForGood = errors.New("not started")

// hubLink is a session with a shared server, through the hub.
type hubLink struct {
	socket net.Conn
	out    *wire.Outbox
	done   chan struct{}
	read   sync.WaitGroup
	end    func(error)

	mu  sync.Mutex
	err error
}

// newHubLink takes the socket over. Messages go to recv until Done.
func newHubLink(socket net.Conn, maxFrame int, recv receiver, garbage func(wire.Garbage)) *hubLink {
	l := &hubLink{socket: socket, out: wire.NewOutbox(socketWriter(socket)), done: make(chan struct{})}
	var once sync.Once
	l.end = func(err error) {
		once.Do(func() {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			close(l.done)
		})
	}
	l.read.Go(func() {
		in := wire.NewReader(socket, maxFrame, garbage)
		for {
			m, err := in.Next()
			if err != nil {
				l.end(errHubGone)
				return
			}
			recv(m, 0)
		}
	})
	return l
}

// socketWriter writes to a socket, without waiting where the system allows it.
func socketWriter(socket net.Conn) io.Writer {
	if s, ok := socket.(wire.Stream); ok {
		return wire.Eager(s)
	}
	return socket
}

func (l *hubLink) stream() {}

// Send implements link.
func (l *hubLink) Send(_ context.Context, m outgoing) error {
	if err := l.out.Send(m.Frame); err != nil {
		l.end(errHubGone)
		return fmt.Errorf("write to the hub: %w", err)
	}
	return nil
}

// Done implements link.
func (l *hubLink) Done() <-chan struct{} { return l.done }

// Err implements link.
func (l *hubLink) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close implements link. The server goes on for the other sessions.
func (l *hubLink) Close(context.Context) error {
	l.end(errStopped)
	l.out.Drain(hubGrace)
	err := l.socket.Close()
	// It may be handing an answer to a client that does not read.
	waitAtMost(&l.read, killGrace)
	return err
}

// leave tells the hub that the server is not going to be needed as it was
// configured.
func (l *hubLink) leave() {
	l.out.Post(wire.Notification(MethodLeave, json.RawMessage(`{"replaced":true}`)))
}

// adjust tells the hub that the times of the server have changed.
func (l *hubLink) adjust(times Times) {
	params, err := json.Marshal(times)
	if err != nil {
		panic(err) // numbers can always be marshalled
	}
	l.out.Post(wire.Notification(MethodAdjust, params))
}

// OpenParams are the params of MethodOpen.
type OpenParams struct {
	Instance string `json:"instance"`
	Client   Client `json:"client"`
	Entry    Entry  `json:"entry"`
}

// Client is the client behind an instance.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// OpenResult is the result of MethodOpen.
type OpenResult struct {
	Initialize json.RawMessage `json:"initialize"` // the server's own result
	PID        int             `json:"pid"`
	Hub        string          `json:"hub"`
}

// errHubEnding tells that the hub is on its way out; there will be another.
var errHubEnding = errors.New("the hub is ending")

// hubTries is how many hubs on their way out are met before it is a failure.
const hubTries = 3

// openShared opens a session with the server at the hub. Without an error and a
// connection there is no hub.
func (s *server) openShared(ctx context.Context, resolved config.Resolved) (*conn, *hello, error) {
	for try := 1; ; try++ {
		socket, err := s.set.options.Hub(ctx)
		if err != nil || socket == nil {
			return nil, nil, err
		}
		c := newConn(s.set.ctx, s.name, s.owner(), s)
		c.link = newHubLink(socket, s.set.options.MaxFrame, func(m wire.Message, _ int64) { s.fromHub(c, m) }, c.garbage)
		h, err := s.enter(ctx, c, resolved)
		if err == nil {
			return c, h, nil
		}
		gone := errors.Is(err, errHubEnding) || !c.alive()
		closeErr := c.close(context.WithoutCancel(ctx))
		if !gone || try == hubTries {
			return nil, nil, errors.Join(err, closeErr)
		}
	}
}

// fromHub takes every message of the hub, in order.
func (s *server) fromHub(c *conn, m wire.Message) {
	if !m.IsNotification() || m.Method != MethodHello {
		c.receive(m, 0)
		return
	}
	h, err := parseHello(m.Params)
	if err != nil {
		return // the hub has parsed it too
	}
	// It counts more than the answer to MethodOpen, whichever comes first: there
	// is one for every change.
	c.told.Store(h)
	s.mu.Lock()
	open, level := s.conn == c, s.level
	if open {
		s.hello = h
	}
	s.mu.Unlock()
	if !open {
		return // what follows happens when it is
	}
	if level != "" {
		s.wantLevel(level)
	}
	s.refresh(catalog.Kinds()...)
}

// portable reports whether the hub gets to know exactly what is to be run; what
// is no UTF-8 would arrive as something else.
func portable(r config.Resolved) bool {
	return utf8.ValidString(r.Command) && utf8.ValidString(r.Dir) &&
		!slices.ContainsFunc(slices.Concat(r.Args, r.Env), func(v string) bool { return !utf8.ValidString(v) })
}

func (s *server) enter(ctx context.Context, c *conn, resolved config.Resolved) (*hello, error) {
	open := OpenParams{Instance: s.set.options.Instance, Entry: s.entry(resolved)}
	if session := s.set.options.Session; session != nil {
		client := session.Client()
		open.Client = Client{client.Name, client.Version}
	}
	params, err := json.Marshal(open)
	if err != nil {
		return nil, fmt.Errorf("describe the server to the hub: %w", err)
	}
	result, err := c.request(ctx, nil, MethodOpen, params, 0)
	if refused := new(wire.Error); errors.As(err, &refused) {
		if string(wire.Member(refused.Data, "ending")) == "true" {
			return nil, errHubEnding
		}
		if string(wire.Member(refused.Data, "permanent")) == "true" {
			return nil, fmt.Errorf("%w: %s", errRefusedForGood, refused.Message)
		}
		return nil, errors.New(refused.Message)
	}
	if err != nil {
		return nil, err
	}
	if s.set.options.Joined != nil {
		id, _ := wire.String(wire.Member(result, "hub"))
		s.set.options.Joined(id)
	}
	return parseHello(wire.Member(result, "initialize"))
}
