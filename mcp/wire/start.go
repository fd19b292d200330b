package wire

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
)

// Starter is a Router that can answer some requests without holding a
// goroutine while it waits: the goroutine that read the request hands it on, and
// the one that read the answer writes it. Each switch to another goroutine that
// is saved is a wake-up of a thread, which is most of what a small call costs.
type Starter interface {
	// Start begins a request if that takes no waiting, and otherwise does nothing
	// and reports false. It calls done exactly once, from any goroutine, perhaps
	// before it returns. cancel makes done be called soon. id is the client's.
	Start(s *Session, id json.RawMessage, method string, params json.RawMessage, done func(json.RawMessage, *Error)) (cancel func(cause error), started bool)
}

// start begins a request on its router's fast path, if there is one and the
// session is past initialize.
func (c *Conn) start(m Message) (started bool) {
	starter, ok := c.router.(Starter)
	if !ok || m.batch != nil {
		return false
	}
	select {
	case <-c.initialized:
	default:
		return false
	}
	f := &flight{}
	if !c.begin(m.ID, f.cancelled) {
		return false
	}
	c.requests.Add(1)
	finish := sync.OnceFunc(func() { c.requests.Done() })
	defer func() {
		if p := recover(); p != nil {
			c.complain(Garbage{Why: fmt.Errorf("panic in %s: %v\n%s", m.Method, p, debug.Stack())})
			c.end(m.ID)
			c.reply(nil, ErrorResponse(m.ID, Errorf(CodeInternal, "internal error in %s", m.Method)))
			finish()
			started = true
		}
	}()
	cancel, started := starter.Start(c.session, m.ID, m.Method, m.Params, func(result json.RawMessage, failure *Error) {
		c.end(m.ID)
		if !f.isCancelled() {
			c.reply(nil, answerFrame(m.ID, result, failure))
		}
		finish()
	})
	if !started {
		c.end(m.ID)
		finish()
		return false
	}
	f.arm(cancel)
	return true
}

func answerFrame(id, result json.RawMessage, failure *Error) []byte {
	if failure != nil {
		return ErrorResponse(id, failure)
	}
	return Response(id, result)
}

// flight is a started request that may be cancelled.
type flight struct {
	mu     sync.Mutex
	cancel func(cause error)
	cause  error
}

// cancelled is called when the client cancels the request.
func (f *flight) cancelled(cause error) {
	f.mu.Lock()
	f.cause = cause
	cancel := f.cancel
	f.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// arm tells how the request is cancelled, which may have been asked before.
func (f *flight) arm(cancel func(cause error)) {
	f.mu.Lock()
	f.cancel = cancel
	cause := f.cause
	f.mu.Unlock()
	if cause != nil {
		cancel(cause)
	}
}

func (f *flight) isCancelled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause != nil
}
