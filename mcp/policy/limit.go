package policy

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"mcpproxy/mcp/wire"
)

// Limit bounds concurrent uses; the zero value is no limit.
type Limit struct {
	Concurrent int           // 0 = no limit
	Queue      int           // how many more may wait
	Timeout    time.Duration // how long one may wait; 0 = as long as it lives
}

// slots are what a Limit has to give.
type slots struct {
	limit  Limit
	taken  chan struct{}
	queued chan struct{}
}

// newSlots returns nil for no limit.
func newSlots(l Limit) *slots {
	if l.Concurrent <= 0 {
		return nil
	}
	return &slots{limit: l, taken: make(chan struct{}, l.Concurrent), queued: make(chan struct{}, l.Queue)}
}

// under returns the same slots if they are those of the limit, else new ones.
func (s *slots) under(l Limit) *slots {
	if s != nil && s.limit == l {
		return s
	}
	return newSlots(l)
}

// take waits for a slot within the queue's bounds.
func (s *slots) take(ctx context.Context) bool {
	if s == nil {
		return true
	}
	select {
	case s.taken <- struct{}{}:
		return true
	default:
	}
	select {
	case s.queued <- struct{}{}:
		defer func() { <-s.queued }()
	default:
		return false
	}
	if s.limit.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit.Timeout)
		defer cancel()
	}
	select {
	case s.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeNow takes a slot if one is free.
func (s *slots) takeNow() bool {
	if s == nil {
		return true
	}
	select {
	case s.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slots) give() {
	if s != nil {
		<-s.taken
	}
}

// retryAfter is what a shed caller is told, in seconds.
const retryAfter = 1

// admit takes a slot of the server and one of the whole, and returns how to
// give them back.
func (g *Gate) admit(ctx context.Context, server string) (release func(), busy *wire.Error) {
	law := g.law.Load()
	own, total := law.perServer[server], law.total
	if !own.take(ctx) {
		return nil, shed("server "+server, own.limit)
	}
	if !total.take(ctx) {
		own.give()
		return nil, shed("mcpproxy", total.limit)
	}
	return func() { total.give(); own.give() }, nil
}

// admitNow is admit without waiting.
func (g *Gate) admitNow(server string) (release func(), free bool) {
	law := g.law.Load()
	own, total := law.perServer[server], law.total
	if !own.takeNow() {
		return nil, false
	}
	if !total.takeNow() {
		own.give()
		return nil, false
	}
	return func() { total.give(); own.give() }, true
}

func shed(what string, l Limit) *wire.Error {
	e := wire.Errorf(wire.CodeBusy, "%s is busy: %d calls under way (max_concurrent_requests) and %d waiting (queue_size); try again in %d s",
		what, l.Concurrent, l.Queue, retryAfter)
	e.Data = fmt.Appendf(nil, `{"retryAfterSeconds":%s}`, strconv.Itoa(retryAfter))
	return e
}
