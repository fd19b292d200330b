package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// maxPending bounds the writes that wait, maxGroup those in one
	// transaction.
	maxPending = 1024
	maxGroup   = 128
	// maxTries is how often a transaction is begun that meets a locked file.
	// Each try waits for writeWait.
	maxTries = 4
)

// ErrFull means that too many writes wait already, ErrClosed that the DB was
// closed.
var (
	ErrFull   = errors.New("store: too many writes are waiting")
	ErrClosed = errors.New("store: closed")
)

// Later has op run soon, off the caller's path, in a transaction with others
// that wait. Ops run in the order they came. An op that fails is undone alone
// and its error goes to OnError. At most 1,024 wait: the error is [ErrFull] or
// [ErrClosed] and op will not run. On a nil DB op does not run either, and
// there is no error.
func (db *DB) Later(op Op) error {
	if db == nil {
		return nil
	}
	return db.queue.add(entry{op: op}, maxPending)
}

// Flush returns when everything given to Later before has been written, or has
// failed; the error is that of ctx.
func (db *DB) Flush(ctx context.Context) error {
	if db == nil {
		return nil
	}
	flushed := make(chan struct{})
	_ = db.queue.add(entry{flushed: flushed}, math.MaxInt) // ErrClosed: done tells
	select {
	case <-flushed:
	case <-db.queue.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// entry is a write that waits, or somebody who waits for the writes before.
type entry struct {
	op      Op
	flushed chan struct{}
}

// queue is the DB's one goroutine and what waits for it.
type queue struct {
	db      *DB
	onError func(error)
	stop    context.CancelFunc
	wake    chan struct{} // holds one
	done    chan struct{}

	mu      sync.Mutex
	pending []entry
	closed  bool
}

// newQueue starts the goroutine. The end of ctx does not stop it: what waits
// then is to be written still.
func newQueue(ctx context.Context, db *DB, onError func(error)) *queue {
	if onError == nil {
		onError = func(error) {}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &queue{db: db, onError: onError, stop: stop, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run(ctx)
	return q
}

// end writes what waits, for closeWait at most, and returns when the goroutine
// has ended.
func (q *queue) end() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.nudge()
	timer := time.AfterFunc(closeWait, q.stop)
	defer timer.Stop()
	<-q.done
	q.stop()
}

func (q *queue) add(e entry, limit int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(q.pending) >= limit:
		return ErrFull
	}
	q.pending = append(q.pending, e)
	q.nudge()
	return nil
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the entries of the next transaction. last is true when there
// will be no others.
func (q *queue) take() (group []entry, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.pending), maxGroup)
	group = q.pending[:n:n]
	if q.pending = q.pending[n:]; len(q.pending) == 0 {
		q.pending = nil // lets go of the ops
	}
	return group, n == 0 && q.closed
}

func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	for {
		group, last := q.take()
		switch {
		case last:
			q.db.shrink(ctx, logKeep)
			return
		case len(group) == 0:
			<-q.wake
		default:
			q.write(ctx, group)
		}
	}
}

// write makes one transaction of group. Where that cannot be, by the fault of
// one of them perhaps, it makes one of each.
func (q *queue) write(ctx context.Context, group []entry) {
	failures, err := q.transact(ctx, group)
	switch {
	case err == nil:
	case len(group) == 1 || ctx.Err() != nil || code(err) == sqlite3.SQLITE_BUSY:
		failures = []error{fmt.Errorf("%d writes were lost: %w", len(group), err)}
	default:
		failures = nil
		for i := range group {
			failed, err := q.transact(ctx, group[i:i+1])
			if err != nil {
				failed = []error{fmt.Errorf("a write was lost: %w", err)}
			}
			failures = append(failures, failed...)
		}
	}
	for _, err := range failures {
		q.onError(err)
	}
	for _, e := range group {
		if e.flushed != nil {
			close(e.flushed)
		}
	}
}

// transact runs the ops of group in one transaction and returns why some of
// them failed, which undid them alone; err means that none has been kept. While
// another process keeps the file locked it tries again.
func (q *queue) transact(ctx context.Context, group []entry) (failures []error, err error) {
	for try := 1; ; try++ {
		failures = failures[:0]
		err = q.db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			for _, e := range group {
				if e.op == nil {
					continue
				}
				failed, lost := tx.part(ctx, e.op)
				if lost != nil {
					return lost
				}
				if failed != nil {
					failures = append(failures, failed)
				}
			}
			return nil
		})
		if code(err) != sqlite3.SQLITE_BUSY || try == maxTries || ctx.Err() != nil {
			return failures, err
		}
	}
}
