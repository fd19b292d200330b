package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

// maxQueued is how many bytes may wait for a peer that does not read; beyond
// it the peer counts as gone.
const maxQueued = 64 << 20

// keptBuffer is how much memory is kept for the next frame, in bytes.
const keptBuffer = 64 << 10

// ErrStalled tells that a peer stopped reading for too long.
var ErrStalled = errors.New("peer does not read what waits for it")

// Outbox is the one writer of a byte stream. Frames are written whole, in the
// order in which Send and Post were called, each with a newline; what gathers
// while a write is under way goes out in one write. After an error all is
// dropped.
type Outbox struct {
	w io.Writer

	mu      sync.Mutex
	waiting []byte
	busy    bool
	err     error
	failed  chan struct{}
	idle    *sync.Cond
}

// NewOutbox returns an Outbox that writes to w.
func NewOutbox(w io.Writer) *Outbox {
	o := &Outbox{w: w, failed: make(chan struct{})}
	o.idle = sync.NewCond(&o.mu)
	return o
}

// tryWriter is a stream that can take what it has room for without blocking.
type tryWriter interface{ TryWrite(b []byte) (int, error) }

// Send writes the frame. Where nobody is writing it does so itself, which
// saves a switch to another goroutine. It may then block as long as the peer
// does not read, except on a stream with a TryWrite method: there the rest is
// left to a goroutine.
func (o *Outbox) Send(frame []byte) error {
	w, tries := o.w.(tryWriter)
	if len(frame) > keptBuffer && !tries && o.seize() {
		o.write(append(frame, '\n'))
		o.flush()
		return o.Err()
	}
	writer, err := o.enqueue(frame)
	switch {
	case err != nil || !writer:
		return err
	case !tries:
		o.flush()
		return o.Err()
	}
	left, err := o.try(w)
	if left {
		go o.flush()
	}
	return err
}

// try writes what the stream takes at once. left tells that more waits to be
// written; err is that of this write, not of a later one by somebody else.
func (o *Outbox) try(w tryWriter) (left bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		o.busy = false
		return false, o.err
	}
	n, err := w.TryWrite(o.waiting)
	if err != nil {
		o.busy = false
		o.fail(err)
		return false, err
	}
	if n < len(o.waiting) {
		o.waiting = o.waiting[n:]
		return true, nil
	}
	if o.waiting = o.waiting[:0]; cap(o.waiting) > keptBuffer {
		o.waiting = nil
	}
	o.busy = false
	o.idle.Broadcast()
	return false, nil
}

// Post queues the frame and never blocks.
func (o *Outbox) Post(frame []byte) {
	// What cannot be queued is dropped: the stream has failed.
	if writer, _ := o.enqueue(frame); writer {
		go o.flush()
	}
}

// enqueue adds the frame and reports whether the caller has to see to the
// writing. An error means that the frame was not taken.
func (o *Outbox) enqueue(frame []byte) (writer bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return false, o.err
	}
	if len(o.waiting)+len(frame) > maxQueued && len(o.waiting) > 0 {
		o.fail(ErrStalled)
		return false, ErrStalled
	}
	o.waiting = append(append(o.waiting, frame...), '\n')
	if o.busy {
		return false, nil
	}
	o.busy = true
	return true, nil
}

// seize makes the caller the writer if nobody is and nothing waits; it then has
// to flush. A large frame can so be written without being copied.
func (o *Outbox) seize() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.busy {
		return false
	}
	o.busy = true
	return true
}

// flush writes until nothing waits.
func (o *Outbox) flush() {
	for {
		o.mu.Lock()
		out := o.waiting
		o.waiting = nil
		if len(out) == 0 || o.err != nil {
			o.busy = false
			o.idle.Broadcast()
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		o.write(out)
	}
}

func (o *Outbox) write(out []byte) {
	if _, err := o.w.Write(out); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.fail(err)
		}
	}
}

func (o *Outbox) fail(err error) {
	o.err = err
	o.waiting = nil
	close(o.failed)
	o.idle.Broadcast()
}

// Drain waits until all is written or the stream has failed, which it has when
// that takes longer than the limit.
func (o *Outbox) Drain(limit time.Duration) {
	late := time.AfterFunc(limit, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.busy && o.err == nil {
			o.fail(ErrStalled)
		}
	})
	defer late.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.busy && o.err == nil {
		o.idle.Wait()
	}
}

// Failed is closed after a write failed.
func (o *Outbox) Failed() <-chan struct{} { return o.failed }

// Err returns the first write error.
func (o *Outbox) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
