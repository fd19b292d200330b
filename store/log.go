package store

import (
	"context"
	"os"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// logKeep is the size in bytes up to which Close leaves the write-ahead log
	// to the processes that go on.
	logKeep = 1 << 20
	// logMost is the size up to which a write leaves it. SQLite begins to move
	// it to the file at four megabytes, but only the one who finds nobody else
	// reading or writing can begin it anew.
	logMost = 6 << 20
	// shrinkWait is how long others may keep a log from being emptied.
	shrinkWait = 200 * time.Millisecond
	// shrinkPause is the time between two attempts.
	shrinkPause = 2 * time.Millisecond
)

// relieve empties a log that has become long. All writers do so, each before it
// writes, which is what gives one of them the quiet it needs. Somebody who
// reads for long is asked again when the log has grown as much again. The
// caller has the writer.
func (db *DB) relieve(ctx context.Context) {
	n := db.logSize()
	switch {
	case n <= logMost:
		db.logMost = logMost
	case n <= db.logMost:
	case !db.shrink(ctx, logMost):
		db.logMost = n + logMost
	}
}

// shrink empties the write-ahead log where it has more than limit bytes, and
// reports whether it has no more now. It gives up after shrinkWait.
func (db *DB) shrink(ctx context.Context, limit int64) bool {
	for end := time.Now().Add(shrinkWait); db.logSize() > limit; {
		// Whether it was this attempt or another's, the size tells.
		_, err := db.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		if err != nil && code(err) != sqlite3.SQLITE_BUSY || time.Now().After(end) {
			return false
		}
		select {
		case <-time.After(shrinkPause):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// logSize is the size of the write-ahead log in bytes, 0 where there is none.
func (db *DB) logSize() int64 {
	info, err := os.Stat(db.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
