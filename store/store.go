// Package store keeps what the instances on one machine share in one SQLite
// file: the snapshot of what servers offer, their last known state, replies
// rendered before. It knows tables, not what MCP means by them.
//
// A [DB] is owned by whoever opened it and ended by Close. Any number of
// processes may have the same file open. A file that cannot be used is left as
// it is and reported as [*UnusableError]; the program then runs on with a nil
// *DB, on which every method is allowed: reads find nothing, writes vanish, and
// no error is returned.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// busyTimeout is how long a statement waits for another process's write.
	busyTimeout = 5 * time.Second
	// maxConns leaves room for one writer beside a few readers. The connection
	// behind DataVersion is not among them.
	maxConns = 4
	// walKeep is the size in bytes up to which Close leaves the write-ahead log
	// to the processes that go on.
	walKeep = 1 << 20
	// closeWait is how long Close lets the queue write what is waiting.
	closeWait = 2 * time.Second
	// truncateWait is how long Close waits for readers of the write-ahead log.
	truncateWait = 200 * time.Millisecond
)

// Options are what a DB is opened with. The zero value is usable.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OnError is told of every write given to Later that failed. It is called
	// from the queue's goroutine and must not call the DB's Flush or Close. nil
	// drops the errors.
	OnError func(error)
}

// DB is an open store. All methods may be called from several goroutines and
// on a nil *DB, where they do nothing and return zero values.
type DB struct {
	path    string
	file    os.FileInfo
	pool    *sql.DB
	watch   *sql.DB       // its one connection answers DataVersion
	writing chan struct{} // holds one: SQLite lets its writers sleep, and each would keep a connection
	now     func() time.Time
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
	db := &DB{path: file, now: opts.Now, writing: make(chan struct{}, 1)}
	if db.now == nil {
		db.now = time.Now
	}
	if db.pool, err = pool(file, maxConns); err != nil {
		return nil, unusable(file, err)
	}
	if err = ready(ctx, db.pool, db.now); err == nil {
		db.file, err = os.Stat(file)
	}
	if err == nil {
		db.watch, err = pool(file, 1)
	}
	if err != nil {
		db.pool.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open store %s: %w", file, err)
		}
		return nil, unusable(file, err)
	}
	db.queue = newQueue(ctx, db, opts.OnError)
	db.close = sync.OnceValue(db.shut)
	return db, nil
}

// pool is a set of at most n connections to file, none of them open yet.
func pool(file string, n int) (*sql.DB, error) {
	p, err := sql.Open("sqlite", dsn(file))
	if err != nil {
		return nil, err
	}
	p.SetMaxOpenConns(n)
	p.SetMaxIdleConns(n)
	return p, nil
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
	if err := errors.Join(db.watch.Close(), db.pool.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// shrink empties the write-ahead log where it has grown and nobody reads it. A
// failure is of no consequence: the next process to close tries again.
func (db *DB) shrink(ctx context.Context) {
	if info, err := os.Stat(db.path + "-wal"); err != nil || info.Size() <= walKeep {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, truncateWait)
	defer cancel()
	_, _ = db.pool.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
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
// microseconds. When the file is no longer the one that was opened, because it
// was removed or replaced, the error is an [*UnusableError], and the caller
// should close this DB and open another.
func (db *DB) DataVersion(ctx context.Context) (int64, error) {
	if db == nil {
		return 0, nil
	}
	info, err := os.Stat(db.path)
	if err != nil || !os.SameFile(info, db.file) {
		return 0, &UnusableError{Path: db.path, Reason: "it was removed or replaced while in use", Hint: "restart to use the new file", Err: err}
	}
	// The numbers of two connections cannot be compared, and a query that is
	// interrupted costs its connection.
	var n int64
	if err := db.watch.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA data_version").Scan(&n); err != nil {
		return 0, fmt.Errorf("read data version: %w", err)
	}
	return n, nil
}
