package hub

import (
	"errors"
	"sync"
)

// errLeft is what becomes of the work for a client that has left.
var errLeft = errors.New("the session has ended")

// work is what a client has under way. The zero value is ready.
type work struct {
	handling sync.WaitGroup

	mu      sync.Mutex
	over    bool
	last    int64
	started map[int64]func(cause error) // how to cancel; nil until that is known
}

// begin counts a request that a goroutine handles until end; it reports false
// after finish.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.handling.Add(1)
	return true
}

func (w *work) end() { w.handling.Done() }

// add counts a started request until remove; it reports false after finish.
func (w *work) add() (id int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0, false
	}
	if w.started == nil {
		w.started = map[int64]func(cause error){}
	}
	w.last++
	w.started[w.last] = nil
	return w.last, true
}

func (w *work) remove(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.started, id)
}

// arm tells how a started request is cancelled; it may have ended before.
func (w *work) arm(id int64, cancel func(cause error)) {
	w.mu.Lock()
	over := w.over
	if _, there := w.started[id]; there {
		w.started[id] = cancel
	}
	w.mu.Unlock()
	if over {
		cancel(errLeft)
	}
}

// finish cancels what was started and waits for what is handled, whose context
// has ended.
func (w *work) finish() {
	w.mu.Lock()
	w.over = true
	started := w.started
	w.started = nil
	w.mu.Unlock()
	for _, cancel := range started {
		if cancel != nil {
			cancel(errLeft)
		}
	}
	w.handling.Wait()
}
