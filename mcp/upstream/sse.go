package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpproxy/mcp/wire"
)

// endpointTimeout is how long the first event of a stream may take. A server
// of another protocol may accept the GET and never send it.
const endpointTimeout = 10 * time.Second

var errNoEndpoint = errors.New("stream did not name the endpoint for messages")

// sseLink is a link of protocol 2024-11-05: one stream, opened by GET, brings
// everything from the server, first of all where messages are to be posted.
// The link lives as long as the stream; requests that are open when it dies
// are not answered.
type sseLink struct {
	*httpEndpoint
	recv  receiver
	life  context.Context // ends with Close and with the stream
	end   context.CancelCauseFunc
	done  chan struct{} // closed when the reading goroutine has ended
	ready chan struct{} // closed when post is known
	post  *url.URL      // written before ready is closed
}

// newSSELink opens the stream and waits for the server to name its endpoint.
// ctx bounds that, not the life of the link.
func newSSELink(ctx context.Context, o httpOptions, recv receiver) (*sseLink, error) {
	e, err := newHTTPEndpoint(o)
	if err != nil {
		return nil, err
	}
	l := &sseLink{httpEndpoint: e, recv: recv, done: make(chan struct{}), ready: make(chan struct{})}
	l.life, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
	defer detach()
	patience := time.AfterFunc(endpointTimeout, func() { l.end(errNoEndpoint) })
	defer patience.Stop()
	resp, err := l.do(l.life, httpCall{method: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}}})
	if err == nil && !eventStream(resp) {
		resp.Body.Close()
		err = e.fault("GET "+shownURL(e.url), fmt.Errorf("no event stream but %q", resp.Header.Get("Content-Type")))
	}
	if err != nil {
		l.end(err)
		l.close()
		return nil, err
	}
	go l.read(resp)
	select {
	case <-l.ready:
		if detach() && patience.Stop() {
			return l, nil
		}
		// One of both has fired meanwhile and ends the stream.
		<-l.done
	case <-l.done:
	}
	l.close()
	return nil, e.fault("GET "+shownURL(e.url), l.Err())
}

// read delivers what the stream brings until it ends.
func (l *sseLink) read(resp *http.Response) {
	defer close(l.done)
	defer resp.Body.Close()
	err := l.readEvents(resp)
	if err == nil {
		err = io.EOF
	}
	// Close and the caller's ctx may have given the reason before.
	l.end(fmt.Errorf("stream ended: %w", err))
}

func (l *sseLink) readEvents(resp *http.Response) error {
	// After a redirect relative endpoints are meant from there.
	base := resp.Request.URL
	for event, err := range newSSEReader(resp.Body, l.max).events() {
		switch {
		case err != nil:
			return err
		case event.Type == "endpoint" && l.post == nil:
			if l.post, err = l.resolve(base, event.Data); err != nil {
				return err
			}
			close(l.ready)
		case event.Data != "" && (event.Type == "" || event.Type == "message"):
			decode([]byte(event.Data), l.max, func(g wire.Garbage) { l.ignore(g) }, func(m wire.Message) { l.recv(m, 0) })
		}
	}
	if l.post == nil {
		return errNoEndpoint
	}
	return nil
}

// resolve reads the endpoint for messages, which has to be of the origin that
// was configured: it gets our headers.
func (l *sseLink) resolve(base *url.URL, endpoint string) (*url.URL, error) {
	u, err := base.Parse(strings.TrimSpace(endpoint))
	if err != nil {
		return nil, errNoEndpoint
	}
	if !sameOrigin(u, l.url) {
		return nil, fmt.Errorf("endpoint for messages is on another host: %s", shownURL(u))
	}
	u.User = l.url.User
	return u, nil
}

// Send posts one message; the answer, if any, comes on the stream. The error
// is or wraps *statusError, errUnauthorized or errSessionExpired, the cause of
// ctx's end or the link's, or a failure of the network.
func (l *sseLink) Send(ctx context.Context, m outgoing) error {
	post, cancel := context.WithCancelCause(l.life)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	resp, err := l.do(post, httpCall{
		method: http.MethodPost,
		to:     l.post,
		body:   m.Frame,
		header: http.Header{"Content-Type": {"application/json"}},
	})
	if err == nil {
		// Nothing in it is of use, but a body read to its end frees the connection.
		io.CopyN(io.Discard, resp.Body, maxErrorBody)
		resp.Body.Close()
		return nil
	}
	var status *statusError
	switch {
	case errors.Is(err, errLost) && m.ID != 0:
		l.recv(unanswered(m.ID, err.Error()), 0)
		return nil
	case errors.As(err, &status) && forgotSession(status):
		// The session is part of the endpoint.
		return fmt.Errorf("%w: %w", errSessionExpired, err)
	}
	return err
}

// Done is closed when the stream has ended.
func (l *sseLink) Done() <-chan struct{} { return l.done }

// Err tells why the stream ended; it is nil before.
func (l *sseLink) Err() error {
	select {
	case <-l.done:
		return context.Cause(l.life)
	default:
		return nil
	}
}

// Close ends the stream and waits for it, 2 s at most.
func (l *sseLink) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	l.end(errHTTPClosed)
	defer l.close()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the stream to end: %w", context.Cause(ctx))
	}
}
