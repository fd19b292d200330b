package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// dialHTTP makes the link that o.Protocol names. "sse" opens its stream at
// once; "streamable-http" sends nothing before the first Send; with "auto" it is
// the first initialize that decides between both. ctx bounds the opening, not
// the life of the link.
func dialHTTP(ctx context.Context, o httpOptions, recv receiver) (link, error) {
	if o.Protocol == "sse" {
		l, err := newSSELink(ctx, o, recv)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	l, err := newHTTPLink(ctx, o, recv)
	switch {
	case err != nil:
		return nil, err
	case o.Protocol == "streamable-http":
		return l, nil
	}
	f := &fallbackLink{options: o, recv: recv, done: make(chan struct{})}
	f.use(l)
	return f, nil
}

// fallbackLink is streamable HTTP until a server turns out to speak only
// HTTP+SSE (2024-11-05).
type fallbackLink struct {
	options httpOptions
	recv    receiver
	done    chan struct{} // the link in use is done
	watches sync.WaitGroup

	mu   sync.Mutex
	link link
}

// use makes l the link in use; the end of an earlier one no longer counts.
func (f *fallbackLink) use(l link) {
	f.mu.Lock()
	f.link = l
	f.mu.Unlock()
	f.watches.Go(func() {
		<-l.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.link == l {
			close(f.done)
		}
	})
}

func (f *fallbackLink) current() link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.link
}

// Send sends over the present link. Where initialize shows that it is the wrong
// one, it is sent again over the other; if that fails too, the error tells and
// wraps both failures.
func (f *fallbackLink) Send(ctx context.Context, m outgoing) error {
	present := f.current()
	err := present.Send(ctx, m)
	if _, streamable := present.(*httpLink); !streamable || m.Method != "initialize" || !speaksOldProtocol(err) {
		return err
	}
	old, oldErr := newSSELink(ctx, f.options, f.recv)
	if oldErr == nil {
		if oldErr = old.Send(ctx, m); oldErr != nil {
			// It never carried anything; what counts is why.
			_ = old.Close(ctx)
		}
	}
	if oldErr != nil {
		return fmt.Errorf("%w; with the older HTTP+SSE: %w", err, oldErr)
	}
	f.use(old)
	// There is no session to take leave of, so nothing can go wrong.
	return present.Close(ctx)
}

// SetProtocol tells the negotiated version to a link that has to send it.
func (f *fallbackLink) SetProtocol(version string) {
	if l, ok := f.current().(*httpLink); ok {
		l.SetProtocol(version)
	}
}

// Done implements link.
func (f *fallbackLink) Done() <-chan struct{} { return f.done }

// Err is the present link's.
func (f *fallbackLink) Err() error { return f.current().Err() }

// Close closes the present link.
func (f *fallbackLink) Close(ctx context.Context) error {
	err := f.current().Close(ctx)
	f.watches.Wait()
	return err
}

// speaksOldProtocol reports whether a POST of initialize failed in a way in
// which servers of protocol 2024-11-05 fail, which expect a GET there. These
// are the statuses that the specification names under backwards compatibility:
// 405 (only GET is routed), 404 (no such route for POST) and 400 (the URL also
// takes messages, but wants the session in it). A server that answers 400 with
// a JSON-RPC error for the request does not come here: it was answered. All
// else (refused login, overload, no connection) would be no different there.
func speaksOldProtocol(err error) bool {
	var status *statusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}
