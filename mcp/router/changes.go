package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// changeGap is the least time between two list_changed notifications.
const changeGap = 250 * time.Millisecond

// shown remembers what the client knows of each list, and that something may
// have changed since.
type shown struct {
	nudge   chan struct{}
	changes atomic.Int64 // of the catalog so far

	mu   sync.Mutex
	sums map[catalog.Kind][]byte
}

func newShown() *shown {
	return &shown{nudge: make(chan struct{}, 1), sums: map[catalog.Kind][]byte{}}
}

func (s *shown) remember(kind catalog.Kind, body []byte) {
	sum := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[kind] = sum[:]
}

// differs reports whether the client listed this kind and saw something else;
// the new list counts as known from then on.
func (s *shown) differs(kind catalog.Kind, body func() []byte) bool {
	s.mu.Lock()
	old := s.sums[kind]
	s.mu.Unlock()
	if old == nil {
		return false
	}
	sum := sha256.Sum256(body())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[kind] = sum[:]
	return !bytes.Equal(old, sum[:])
}

// Changed tells the router that the catalog has changed. It never blocks.
func (r *Router) Changed() {
	r.shown.changes.Add(1)
	r.shown.look()
}

// look makes Run compare what the client knows with what there is.
func (s *shown) look() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Run sends list_changed notifications to the session, at most every 250 ms and
// only for lists that differ from what the client was shown, until ctx ends.
func (r *Router) Run(ctx context.Context, s *wire.Session) {
	for {
		select {
		case <-r.shown.nudge:
		case <-ctx.Done():
			return
		}
		r.announce(ctx, s)
		select {
		case <-time.After(changeGap):
		case <-ctx.Done():
			return
		}
	}
}

func (r *Router) announce(ctx context.Context, s *wire.Session) {
	if r.warm.Load() {
		// Calls go by what was judged last, also those of a client that lists
		// nothing.
		r.options.Gate.Catalog(ctx)
	}
	r.Recheck(ctx)
	a, refusal := r.asker(ctx, s)
	if refusal != nil {
		return // the client hears why when it asks for something
	}
	told := map[string]bool{}
	for _, kind := range catalog.Kinds() {
		differs := r.shown.differs(kind, func() []byte { return r.render(ctx, a, kind) })
		if method := kind.ChangedMethod(); differs && !told[method] {
			told[method] = true
			s.Notify(method, nil)
		}
	}
}
