package upstream

import (
	"context"
	"sync"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// verifyPatience is how long the first uses over a connection wait for what the
// server offers now. One that takes longer, or does not say, is used by what is
// known of it.
const verifyPatience = 5 * time.Second

// readings tell which lists were read over a connection.
type readings struct {
	mu   sync.Mutex
	done map[catalog.Kind]chan struct{}
}

// of is closed when a list of that kind was read and taken over, or could not be
// read.
func (r *readings) of(kind catalog.Kind) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = map[catalog.Kind]chan struct{}{}
	}
	if r.done[kind] == nil {
		r.done[kind] = make(chan struct{})
	}
	return r.done[kind]
}

// read notes that a list was read.
func (r *readings) read(kind catalog.Kind) {
	c := r.of(kind)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// verified reports whether a request needs no further look at what the server
// offers.
func (c *conn) verified(r Request) bool {
	switch {
	case r.Verify == nil:
		return true
	case r.Unseen: // the lists may have been read since
		return false
	}
	select {
	case <-c.readings.of(r.Kind):
		return true
	default:
		return false
	}
}

// verify waits until it is known what the server offers over this connection,
// and has the request judged again if it had to wait, or was judged by a name alone:
// the server may have changed since somebody looked at it last.
func (c *conn) verify(ctx context.Context, r Request) *wire.Error {
	if c.verified(r) {
		return nil
	}
	late := time.NewTimer(verifyPatience)
	defer late.Stop()
	select {
	case <-c.readings.of(r.Kind):
	case <-late.C:
	case <-c.link.Done(): // the request finds out
	case <-ctx.Done():
	}
	return r.Verify(ctx)
}
