package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// migrationFiles are named <version>_<name>.sql, with versions from 1 without a
// gap. Instances of several builds use one file at a time, so a migration adds
// and never takes away or renames.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// errForeign means that the file is a good database, but not ours.
var errForeign = errors.New("it belongs to another program")

// newerError means that a later build has migrated the file.
type newerError struct{ found, known int }

func (e *newerError) Error() string {
	return fmt.Sprintf("it was written by a newer version of mcpproxy (schema %d, this one knows %d)", e.found, e.known)
}

type migration struct {
	version int
	name    string
	file    string
}

// migrations lists the embedded files by version.
func migrations() ([]migration, error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	list := make([]migration, len(entries))
	for i, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s is out of order", e.Name())
		}
		list[i] = migration{version: version, name: name, file: "migrations/" + e.Name()}
	}
	return list, nil
}

// ready brings the file to the current schema, in WAL mode. It changes nothing
// in a file of a later schema or of another program.
func ready(ctx context.Context, pool *sql.DB, now func() time.Time) error {
	list, err := migrations()
	if err != nil {
		return err
	}
	version, wal, err := inspect(ctx, pool)
	switch {
	case err != nil:
		return err
	case version > len(list):
		return &newerError{found: version, known: len(list)}
	}
	if !wal {
		if err := enterWAL(ctx, pool); err != nil {
			return err
		}
	}
	for _, m := range list[version:] {
		if err := apply(ctx, pool, m, now()); err != nil {
			return fmt.Errorf("migrate to schema %d (%s): %w", m.version, m.name, err)
		}
	}
	return nil
}

// inspect reads the file's schema version, 0 for an empty file, and whether it
// is in WAL mode.
func inspect(ctx context.Context, pool *sql.DB) (version int, wal bool, err error) {
	const query = "SELECT journal_mode = 'wal', (SELECT coalesce(max(version), 0) FROM schema) FROM pragma_journal_mode"
	err = pool.QueryRowContext(ctx, query).Scan(&wal, &version)
	if code(err) != sqlite3.SQLITE_ERROR {
		return version, wal, err
	}
	// There is no such table. Another process may be making it right now, but
	// it makes all tables at once.
	var tables, ours int
	err = pool.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE name = 'schema') FROM sqlite_schema").Scan(&tables, &ours)
	switch {
	case err != nil:
		return 0, false, err
	case tables == 0:
		return 0, false, nil
	case ours == 0:
		return 0, false, errForeign
	}
	err = pool.QueryRowContext(ctx, query).Scan(&wal, &version)
	if code(err) == sqlite3.SQLITE_ERROR {
		err = errForeign // a table of that name with other columns
	}
	return version, wal, err
}

// enterWAL turns the file to write-ahead logging. SQLite does not always wait
// when several processes do so at once.
func enterWAL(ctx context.Context, pool *sql.DB) error {
	for end := time.Now().Add(busyTimeout); ; {
		var mode string
		err := pool.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("write-ahead logging is not possible there (journal mode %s)", mode)
		case code(err) != sqlite3.SQLITE_BUSY || time.Now().After(end):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// apply runs one migration in a transaction of its own, unless another process
// was faster.
func apply(ctx context.Context, pool *sql.DB, m migration, now time.Time) error {
	text, err := migrationFiles.ReadFile(m.file)
	if err != nil {
		return err
	}
	tx, err := begin(ctx, pool)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var done bool
	err = tx.QueryRowContext(ctx, "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'schema'").Scan(&done)
	if err == nil && done {
		err = tx.QueryRowContext(ctx, "SELECT count(*) > 0 FROM schema WHERE version >= ?", m.version).Scan(&done)
	}
	if err != nil || done {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO schema (version, name, applied_at) VALUES (?, ?, ?)", m.version, m.name, now.UnixMilli()); err != nil {
		return err
	}
	return tx.Commit()
}
