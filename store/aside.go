package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// settleTries bounds how often a file is looked at again that was exchanged
	// in the meantime.
	settleTries = 5
	// asideWait is how long another process may take to move a file aside.
	asideWait = 5 * time.Second
)

// settle opens up to n connections to the file at the DB's path and brings it
// to the current schema. A file that is no database, or a damaged one, is moved
// aside first where Options.Mended allows it. What is wrong with a file is an
// [*UnusableError].
func (db *DB) settle(ctx context.Context, at *atomic.Pointer[seat], n int) (*sql.DB, error) {
	var err error
	for range settleTries {
		var pool *sql.DB
		if pool, err = db.enter(ctx, at, n); err == nil {
			return pool, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("open store %s: %w", db.path, err)
		case errors.Is(err, errReplaced):
			if _, err := place(db.path); err != nil {
				return nil, err
			}
		case garbage(err) && db.mended != nil:
			what, err := db.setAside(ctx)
			if err != nil {
				return nil, err
			}
			if what != "" {
				db.mended(what)
			}
		default:
			return nil, unusable(db.path, err)
		}
	}
	return nil, unusable(db.path, err)
}

// enter takes a seat at the file and makes it ready.
func (db *DB) enter(ctx context.Context, at *atomic.Pointer[seat], n int) (*sql.DB, error) {
	seat, err := sit(db.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errReplaced
	}
	if err != nil {
		return nil, err
	}
	at.Store(seat)
	pool, err := connections(db.path, at, n, busyTimeout)
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, pool, db.now); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// garbage reports whether err says that a file holds no database, or none that
// can be read.
func garbage(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_NOTADB || c == sqlite3.SQLITE_CORRUPT
}

// setAside moves the file away, with what belongs to it, under a name beside
// it, and puts a new store in its place. Of several processes one does it; in
// the others it returns "". In the one, what says so in words for a person.
func (db *DB) setAside(ctx context.Context) (what string, err error) {
	unlock, err := lockFolder(filepath.Dir(db.path), asideWait)
	if err != nil {
		return "", unusable(db.path, err)
	}
	defer unlock()
	var at atomic.Pointer[seat]
	pool, err := db.enter(ctx, &at, 1)
	switch {
	case err == nil:
		return "", pool.Close()
	case errors.Is(err, errReplaced):
		return "", nil
	case !garbage(err):
		return "", unusable(db.path, err)
	}
	why := unusable(db.path, err)
	kept := db.path + ".unusable-" + db.now().UTC().Format("20060102T150405.000Z")
	if _, err := os.Lstat(kept); !errors.Is(err, fs.ErrNotExist) {
		return "", why
	}
	made, err := db.makeBeside(ctx)
	if err != nil {
		return "", unusable(db.path, err)
	}
	for _, suffix := range []string{"-journal", "-shm", "-wal", ""} {
		if err := os.Rename(db.path+suffix, kept+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", why
		}
	}
	if err := os.Rename(made, db.path); err != nil {
		return "", &UnusableError{Path: db.path, Reason: "it cannot be made", Hint: elsewhere, Err: err}
	}
	return fmt.Sprintf("store %s was unusable: %s; it is kept as %s and a new one was made", db.path, why.Reason, filepath.Base(kept)), nil
}

// makeBeside makes a whole new store in a file beside the DB's. Made in place,
// it would have a rollback journal for a moment, and a process that has the old
// file just opened would take that for the old one's and roll that back: to
// nothing. The caller has the folder locked.
func (db *DB) makeBeside(ctx context.Context) (path string, err error) {
	path = db.path + ".new"
	for _, suffix := range []string{"-journal", "-shm", "-wal", ""} { // of one that was killed here
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := createEmpty(path); err != nil {
		return "", err
	}
	beside := &DB{path: path, now: db.now}
	pool, err := beside.enter(ctx, &beside.seat, 1)
	if err != nil {
		return "", err
	}
	return path, pool.Close() // which leaves one file alone
}
