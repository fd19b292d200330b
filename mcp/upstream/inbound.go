package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// notified takes a notification of the upstream.
func (c *conn) notified(m wire.Message, during int64) {
	switch m.Method {
	case "notifications/progress":
		c.progress(m)
	case "notifications/message":
		if s := c.target(during); s != nil && wanted(s.LogLevel(), m.Params) {
			s.Notify(m.Method, m.Params)
		}
	case "notifications/cancelled":
		c.mu.Lock()
		cancel := c.inbound[string(wire.Member(m.Params, "requestId"))]
		c.mu.Unlock()
		if cancel != nil {
			cancel(&wire.ErrCancelled{Params: m.Params})
		}
	case "notifications/resources/updated":
		c.observer.resourceUpdated(m.Params)
	case "notifications/tools/list_changed":
		c.observer.listChanged(catalog.Tool)
	case "notifications/prompts/list_changed":
		c.observer.listChanged(catalog.Prompt)
	case "notifications/resources/list_changed":
		c.observer.listChanged(catalog.Resource)
		c.observer.listChanged(catalog.Template)
	case MethodHello: // is for the hub to say, see fromHub
	default:
		if s := c.target(during); s != nil {
			s.Notify(m.Method, m.Params)
		}
	}
}

// progress goes to the caller under the token that the caller gave.
func (c *conn) progress(m wire.Message) {
	id, ok := wire.NumberID(wire.Member(m.Params, "progressToken"))
	if !ok {
		return
	}
	c.mu.Lock()
	call := c.pending[id]
	var token json.RawMessage
	if call != nil {
		token = call.token
	}
	c.mu.Unlock()
	if call == nil {
		return
	}
	select {
	case call.sign <- struct{}{}:
	default:
	}
	if token == nil || call.session == nil {
		return
	}
	call.session.Notify(m.Method, wire.SetMember(m.Params, token, "progressToken"))
}

// logLevels are in rising order of severity (RFC 5424).
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// wanted reports whether a log message reaches the level that a client set. A
// client that set none gets all, and every client those of levels that are not
// known.
func wanted(level string, params json.RawMessage) bool {
	if level == "" {
		return true
	}
	got, _ := wire.String(wire.Member(params, "level"))
	at := slices.Index(logLevels(), got)
	return at < 0 || at >= slices.Index(logLevels(), level)
}

// asked takes a request of the upstream to a client and the answer back. A
// request that no client can be asked is refused at once.
func (c *conn) asked(m wire.Message, during int64) {
	if m.Method == "ping" {
		c.spawn(func() { c.reply(m.ID, json.RawMessage("{}"), nil) })
		return
	}
	session := c.target(during)
	if refusal := refuse(session, m.Method); refusal != nil {
		c.spawn(func() { c.reply(m.ID, nil, refusal) })
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	params, token := c.clientToken(m)
	c.mu.Lock()
	c.inbound[string(m.ID)] = cancel
	c.mu.Unlock()
	c.spawn(func() {
		defer cancel(nil)
		result, failure := session.Call(ctx, m.Method, params)
		c.mu.Lock()
		delete(c.inbound, string(m.ID))
		delete(c.tokens, token)
		c.mu.Unlock()
		if cancelled := new(wire.ErrCancelled); errors.As(context.Cause(ctx), &cancelled) {
			return // nobody waits for the answer
		}
		c.reply(m.ID, result, failure)
	})
}

// spawn runs a task that close waits for; it reports false after close.
func (c *conn) spawn(task func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks.Go(task)
	return true
}

// refuse says why a session cannot be asked, nil if it can.
func refuse(session *wire.Session, method string) *wire.Error {
	if session == nil {
		return wire.Errorf(wire.CodeMethodNotFound, "%s: no single client to ask: none or several have a call under way", method)
	}
	capability := map[string]string{
		"sampling/createMessage": "sampling",
		"elicitation/create":     "elicitation",
		"roots/list":             "roots",
	}[method]
	if capability != "" && !session.Has(capability) {
		return wire.Errorf(wire.CodeMethodNotFound, "%s: the client did not announce the capability %q", method, capability)
	}
	return nil
}

// clientToken gives a request of the upstream that wants progress a token that
// no other upstream uses.
func (c *conn) clientToken(m wire.Message) (params json.RawMessage, token string) {
	theirs := wire.Member(m.Params, "_meta", "progressToken")
	if theirs == nil {
		return m.Params, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = c.server + "/" + strconv.FormatInt(c.last, 10)
	c.tokens[token] = theirs
	return wire.SetMember(m.Params, wire.Quote(token), "_meta", "progressToken"), token
}

// clientProgress returns what to tell this upstream of a client's progress, nil
// when its token is none that this upstream gave.
func (c *conn) clientProgress(params json.RawMessage) json.RawMessage {
	token, ok := wire.String(wire.Member(params, "progressToken"))
	if !ok {
		return nil
	}
	c.mu.Lock()
	theirs := c.tokens[token]
	c.mu.Unlock()
	if theirs == nil {
		return nil
	}
	return wire.SetMember(params, theirs, "progressToken")
}

func (c *conn) reply(id, result json.RawMessage, failure *wire.Error) {
	frame := wire.Response(id, result)
	if failure != nil {
		frame = wire.ErrorResponse(id, failure)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), cancelWait)
	defer cancel()
	// If it cannot be sent the link is about to end.
	_ = c.link.Send(ctx, outgoing{Frame: frame})
}

// hello is what an upstream answered to initialize.
type hello struct {
	result       json.RawMessage // all of it
	protocol     string
	capabilities json.RawMessage
	serverInfo   json.RawMessage
	instructions string
}

// offers reports whether the upstream announced the capability.
func (h *hello) offers(path ...string) bool {
	v := wire.Member(h.capabilities, path...)
	return !wire.IsNull(v) && string(v) != "false"
}

// describe tells the catalog what the upstream said of itself.
func (h *hello) describe(server *catalog.Server) {
	server.Completions, server.HasResources = h.offers("completions"), h.offers("resources")
	var about []string
	for _, member := range []string{"title", "description"} {
		if text, _ := wire.String(wire.Member(h.serverInfo, member)); text != "" {
			about = append(about, text)
		}
	}
	if h.instructions != "" {
		about = append(about, h.instructions)
	}
	server.About = strings.Join(about, "\n")
}

// newestProtocol is what upstreams are offered.
const newestProtocol = "2025-11-25"

// initialize does the handshake; announced is the raw capabilities object.
func (c *conn) initialize(ctx context.Context, version string, announced json.RawMessage) (*hello, error) {
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"mcpproxy","title":"mcpproxy","version":%s}}`,
		newestProtocol, announced, wire.Quote(version))
	result, err := c.request(ctx, nil, "initialize", params, 0)
	if err != nil {
		return nil, err
	}
	h, err := parseHello(result)
	if err != nil {
		return nil, err
	}
	if l, ok := c.link.(interface{ SetProtocol(string) }); ok {
		l.SetProtocol(h.protocol)
	}
	if err := c.notify(ctx, "notifications/initialized", nil); err != nil {
		return nil, err
	}
	return h, nil
}

// parseHello reads the result of initialize.
func parseHello(result json.RawMessage) (*hello, error) {
	h := &hello{result: result, capabilities: wire.Member(result, "capabilities"), serverInfo: wire.Member(result, "serverInfo")}
	h.protocol, _ = wire.String(wire.Member(result, "protocolVersion"))
	h.instructions, _ = wire.String(wire.Member(result, "instructions"))
	if !slices.Contains(protocols(), h.protocol) {
		return nil, &protocolError{answered: h.protocol}
	}
	return h, nil
}

// protocols lists the revisions that are understood.
func protocols() []string {
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// protocolError tells that an upstream speaks no revision that we do.
type protocolError struct{ answered string }

// Error names what it answered.
func (e *protocolError) Error() string {
	return fmt.Sprintf("the server answered protocol version %q, understood are %v", e.answered, protocols())
}
