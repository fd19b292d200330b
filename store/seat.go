package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

// errReplaced means that the file at the path is not the one that is in use.
var errReplaced = errors.New("it was removed or replaced while in use")

// seat is the file that connections lead to. All of one DB lead to the same: a
// lease taken in one file and looked up in another would be nobody's.
type seat struct {
	info os.FileInfo
	turn int64 // how many files the DB had before
}

// sit looks which file is at path.
func sit(path string) (*seat, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &seat{info: info}, nil
}

// at reports whether the file is still the one at path.
func (s *seat) at(path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, s.info)
}

// source opens connections to the file at path while it is the one of seat, and
// has those dropped that were opened for another seat.
type source struct {
	driver.Connector
	path string
	seat *atomic.Pointer[seat]
}

// Connect implements driver.Connector.
func (s *source) Connect(ctx context.Context) (driver.Conn, error) {
	seat := s.seat.Load()
	if !seat.at(s.path) {
		return nil, errReplaced
	}
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if !seat.at(s.path) { // SQLite may have opened either
		return nil, errors.Join(errReplaced, c.Close())
	}
	return &conn{sqliteConn: c.(sqliteConn), opened: seat, seat: s.seat}, nil
}

// sqliteConn is what every connection of the driver can do. What is not
// forwarded, database/sql would do without.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection that knows which file it leads to.
type conn struct {
	sqliteConn
	opened *seat
	seat   *atomic.Pointer[seat]
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.opened != c.seat.Load() {
		return driver.ErrBadConn
	}
	return c.sqliteConn.ResetSession(ctx)
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool {
	return c.opened == c.seat.Load() && c.sqliteConn.IsValid()
}

// connections is a pool of at most n connections to the file of seat at path,
// none of them open yet, whose statements wait for locks as long as busy.
func connections(path string, seat *atomic.Pointer[seat], n int, busy time.Duration) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(path, busy))
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(&source{Connector: connector, path: path, seat: seat})
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool, nil
}

// follow goes over to the file at the DB's path, where it is not the one in
// use, and makes it anew where it is missing in its folder. A file that cannot
// be used is an [*UnusableError]; the DB then goes on with the one it has, for
// as long as its connections last.
func (db *DB) follow(ctx context.Context) error {
	if db.seat.Load().at(db.path) {
		return nil
	}
	select {
	case db.moving <- struct{}{}:
		defer func() { <-db.moving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	old := db.seat.Load()
	if old.at(db.path) {
		return nil // another goroutine was faster
	}
	// Whoever removed the folder is not to find it there again.
	if _, err := os.Stat(filepath.Dir(db.path)); err != nil {
		return &UnusableError{Path: db.path, Reason: "its folder was removed while in use", Hint: "restart to make a new one", Err: err}
	}
	if _, err := place(db.path); err != nil {
		return err
	}
	var next atomic.Pointer[seat]
	pool, err := db.settle(ctx, &next, 1)
	if err != nil {
		return err
	}
	db.seat.Store(&seat{info: next.Load().info, turn: old.turn + 1})
	for pool, n := range map[*sql.DB]int{db.pool: maxConns, db.writer: 1, db.watch: 1} {
		pool.SetMaxIdleConns(0) // closes those to the old file
		pool.SetMaxIdleConns(n)
	}
	if db.mended != nil {
		db.mended(fmt.Sprintf("store %s was removed or replaced while in use; going on with the one that is there now", db.path))
	}
	return pool.Close()
}
