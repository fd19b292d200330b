package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"mcpproxy/mcp/wire"
)

// Start is Do for a call that can be sent at once: to a running child, without
// an idle budget. Otherwise it does nothing and reports false. done is called
// once, by the goroutine that read the answer; cancel gives the call up.
func (s *Set) Start(r Request, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	server := s.server(r.Server)
	if server == nil || server.spec().CallIdleTimeout > 0 {
		return nil, false
	}
	server.mu.Lock()
	c := server.conn
	server.mu.Unlock()
	if c == nil || !c.alive() || !c.verified(r) {
		return nil, false
	}
	return c.start(r, server.spec().CallToolTimeout, func(result json.RawMessage, err error) {
		theirs := new(wire.Error)
		switch {
		case err == nil:
			done(result, nil)
		case errors.As(err, &theirs):
			done(nil, theirs)
		case errors.Is(err, errDied) && r.Repeatable && s.spawn(func(ctx context.Context) { done(s.Do(ctx, r)) }):
		default:
			done(nil, server.callFailure(c, r.Method, err))
		}
	})
}

// start sends a request whose answer is given to done; see request for the
// errors. budget limits the time, 0 for no limit.
func (c *conn) start(r Request, budget time.Duration, done func(json.RawMessage, error)) (cancel func(cause error), started bool) {
	if !quick(c.link) {
		return nil, false
	}
	call := &pendingCall{session: r.Session, done: done}
	params := r.Params
	wantsProgress := false
	if token := wire.Member(params, "_meta", "progressToken"); !wire.IsNull(token) {
		call.token, wantsProgress = token, true
	}
	c.mu.Lock()
	c.last++
	id := c.last
	c.pending[id] = call
	if budget > 0 {
		call.timer = time.AfterFunc(budget, func() { c.giveUp(id, &timeoutError{budget}) })
	}
	c.mu.Unlock()
	if wantsProgress {
		params = wire.SetMember(params, strconv.AppendInt(nil, id, 10), "_meta", "progressToken")
	}
	err := c.link.Send(c.ctx, outgoing{Frame: wire.Request(id, r.Method, params), ID: id, Method: r.Method})
	if err != nil {
		if c.takeDone(id) != nil {
			c.forget(id)
			return nil, false
		}
		// The end of the link was noticed meanwhile, and done was told.
		return func(error) {}, true
	}
	if !c.alive() {
		// The link may have ended before the call was among those to be failed.
		c.failStarted()
	}
	return func(cause error) { c.giveUp(id, cause) }, true
}

// takeDone returns what waits for a started call, once.
func (c *conn) takeDone(id int64) func(json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.pending[id]
	if call == nil {
		return nil
	}
	return call.take()
}

// take is takeDone with the lock held.
func (p *pendingCall) take() func(json.RawMessage, error) {
	done := p.done
	p.done = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	return done
}

// giveUp ends a started call without an answer; the upstream is told. It stays
// pending, since the upstream may still be working for its session.
func (c *conn) giveUp(id int64, cause error) {
	done := c.takeDone(id)
	if done == nil {
		return
	}
	c.spawn(func() { c.abandon(c.ctx, id, cause) })
	done(nil, cause)
}

// failStarted ends all started calls after the link has ended.
func (c *conn) failStarted() {
	c.mu.Lock()
	var all []func(json.RawMessage, error)
	for id, call := range c.pending {
		if done := call.take(); done != nil {
			all = append(all, done)
			delete(c.pending, id)
		}
	}
	c.mu.Unlock()
	for _, done := range all {
		done(nil, errDied)
	}
}
