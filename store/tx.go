package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// writeWait is how long a write waits for those of other processes.
	writeWait = 15 * time.Second
	// writerBusy is how long SQLite itself waits for them.
	writerBusy = time.Millisecond
	// patience bounds the time until a write that waits looks again. It ends
	// when the write has waited for hungry.
	patience    = 150 * time.Millisecond
	hungry      = time.Second
	hungryPause = 5 * time.Millisecond
)

// Op is a piece of work inside a write transaction. It must be brief, because
// it keeps every other process from writing, and must use tx alone, never the
// DB. It may run a second time when a transaction could not be made.
type Op func(ctx context.Context, tx *Tx) error

// Tx is a write transaction. It is valid inside an Op, in one goroutine.
type Tx struct {
	tx  *sql.Tx
	now time.Time
}

// collect has scan fill a T from each row, and closes rows.
func collect[T any](rows *sql.Rows, scan func(*sql.Rows, *T) error) (list []T, err error) {
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Write runs op in a transaction that is kept when op returns nil, and only
// then. It waits for other writers, for some seconds at worst: a request that
// somebody waits for should use [DB.Later].
func (db *DB) Write(ctx context.Context, op Op) error {
	if db == nil {
		return nil
	}
	select {
	case db.writing <- struct{}{}:
		defer func() { <-db.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// What cannot be followed is DataVersion's to tell; this is written where
	// reads look for it.
	_ = db.follow(ctx)
	db.relieve(ctx)
	tx, err := begin(ctx, db.writer)
	if err != nil {
		return fmt.Errorf("begin write to the store: %w", err)
	}
	defer tx.Rollback()
	if err := op(ctx, &Tx{tx: tx, now: db.now()}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit write to the store: %w", err)
	}
	return nil
}

// begin begins a write transaction. SQLite's own way to wait for a lock is to
// ask for it ever more rarely, in the end ten times a second. Where others write
// without a break that is rare enough to find it taken each time, for as long as
// SQLite waits. Begin is even more patient at first: to ask costs as much as to
// write, and whoever has the lock gets on best undisturbed, which is what keeps
// the waits few. After a while it asks so often that it is its turn.
func begin(ctx context.Context, pool *sql.DB) (*sql.Tx, error) {
	for start := time.Now(); ; {
		tx, err := pool.BeginTx(ctx, nil)
		waited := time.Since(start)
		if code(err) != sqlite3.SQLITE_BUSY || waited > writeWait {
			return tx, err
		}
		pause := max(time.Millisecond, min(5*waited, patience))
		if waited > hungry {
			pause = hungryPause
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // others wait as well
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// part runs op so that its failure undoes op alone. lost is set when the whole
// transaction is beyond use.
func (tx *Tx) part(ctx context.Context, op Op) (failed, lost error) {
	if _, err := tx.tx.ExecContext(ctx, "SAVEPOINT part"); err != nil {
		return nil, err
	}
	failed = op(ctx, tx)
	end := "RELEASE part"
	if failed != nil {
		end = "ROLLBACK TO part; RELEASE part"
	}
	if _, err := tx.tx.ExecContext(ctx, end); err != nil {
		return nil, errors.Join(failed, err)
	}
	return failed, nil
}

// millis is t as stored: unix ms, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the reverse of millis.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// notNull is b as a value that is never NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
