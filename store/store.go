// Package store keeps what the instances on one machine share in one SQLite
// file: the snapshot of what servers offer, their last known state, replies
// rendered before. It knows tables, not what MCP means by them.
//
// A [DB] is owned by whoever opened it and ended by Close. Any number of
// processes may have the same file open. A file that cannot be used is left as
// it is, or moved aside where [Options] allow it, and never destroyed. Where
// there is no other it is reported as [*UnusableError]; the program then runs
// on with a nil *DB, on which every method is allowed: reads find nothing,
// writes vanish, and no error is returned.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// busyTimeout is how long a statement waits for a lock of another process.
	busyTimeout = 5 * time.Second
	// maxConns leaves room for a few readers. The connections that write and
	// that answer DataVersion are not among them.
	maxConns = 3
	// closeWait is how long Close lets the queue write what is waiting.
	closeWait = 2 * time.Second
)

// Options are what a DB is opened with. The zero value is usable.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OnError is told of every write given to Later that failed. It is called
	// from the queue's goroutine and must not call the DB's Flush or Close. nil
	// drops the errors.
	OnError func(error)
	// Mended is told in words for a person, without a full stop, what was done
	// about a file: one that is no database, or a damaged one, was moved aside
	// when it was opened, and is kept; one that was removed or replaced while in
	// use was exchanged for the one that is there now. It may be called from any
	// method and must not call one. Where it is nil no file is moved aside: it is
	// an [*UnusableError].
	Mended func(what string)
}

// DB is an open store. All methods may be called from several goroutines and
// on a nil *DB, where they do nothing and return zero values.
type DB struct {
	path    string
	seat    atomic.Pointer[seat] // what the connections lead to
	moving  chan struct{}        // holds one: who changes the seat
	pool    *sql.DB              // reads
	writer  *sql.DB              // its one connection writes
	watch   *sql.DB              // its one connection answers DataVersion
	writing chan struct{}        // holds one: who has the writer, and logMost
	logMost int64                // bytes of log beyond which a write empties it first
	now     func() time.Time
	mended  func(string)
	queue   *queue
	close   func() error
}

// Open opens the file at path and makes it, with mode 0600 in folders of mode
// 0700, where it is missing. Every spelling of a path leads to the same file:
// links are resolved. On a file of the current schema it costs one query.
//
// The error is an [*UnusableError] unless ctx ended.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	file, err := place(path)
	if err != nil {
		return nil, err
	}
	db := &DB{path: file, now: opts.Now, mended: opts.Mended, logMost: logMost}
	db.moving, db.writing = make(chan struct{}, 1), make(chan struct{}, 1)
	if db.now == nil {
		db.now = time.Now
	}
	if db.pool, err = db.settle(ctx, &db.seat, maxConns); err != nil {
		return nil, err
	}
	if db.writer, err = connections(file, &db.seat, 1, writerBusy); err == nil {
		db.watch, err = connections(file, &db.seat, 1, busyTimeout)
	}
	if err != nil { // the first of its kind would have failed
		return nil, errors.Join(unusable(file, err), db.pool.Close())
	}
	db.queue = newQueue(ctx, db, opts.OnError)
	db.close = sync.OnceValue(db.shut)
	return db, nil
}

// Path is the file with its links resolved, "" on a nil DB.
func (db *DB) Path() string {
	if db == nil {
		return ""
	}
	return db.path
}

// Close writes what Later still holds, leaves a small write-ahead log behind
// and ends the DB's goroutine. It takes about two seconds at most; writes that
// could not be made by then are reported to OnError. A second call returns what
// the first returned.
func (db *DB) Close() error {
	if db == nil {
		return nil
	}
	return db.close()
}

func (db *DB) shut() error {
	db.queue.end()
	if err := errors.Join(db.watch.Close(), db.writer.Close(), db.pool.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Generation is a number that differs after every change of items, by any
// process. It is 0 on a nil DB only.
func (db *DB) Generation(ctx context.Context) (int64, error) {
	if db == nil {
		return 0, nil
	}
	var n int64
	err := db.pool.QueryRowContext(ctx, "SELECT value FROM state WHERE key = 'generation'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	return n, nil
}

// DataVersion is a number that differs from the one of the call before when
// anybody, this DB included, has written anything in between. It costs a few
// microseconds. When the file is no longer the one in use, because it was
// removed or replaced, the DB goes over to the one that is there now, which is
// a difference too. Where that cannot be used, the error is an
// [*UnusableError]; the DB goes on with the file it has, which nobody else may
// see, and the next call tries again.
func (db *DB) DataVersion(ctx context.Context) (int64, error) {
	if db == nil {
		return 0, nil
	}
	if err := db.follow(ctx); err != nil {
		return 0, err
	}
	turn := db.seat.Load().turn
	// The numbers of two connections cannot be compared, and a query that is
	// interrupted costs its connection.
	var n int64
	if err := db.watch.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA data_version").Scan(&n); err != nil {
		return 0, fmt.Errorf("read data version: %w", err)
	}
	return turn<<32 | n, nil
}
