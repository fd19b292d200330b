package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// tree is every file under root with its mode and content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		found[path] = info.Mode().String() + " " + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// database makes a file with the given statements.
func database(t *testing.T, path string, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, busyTimeout))
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		_, err = db.ExecContext(t.Context(), statements)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnusableFileIsLeftAlone(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		file   string // "mcpproxy.db" where it is empty
		make   func(t *testing.T, path string)
		reason string
	}{
		"newer schema": {
			make: func(t *testing.T, path string) {
				db := open(t, path)
				_, err := db.pool.ExecContext(t.Context(), "INSERT INTO schema VALUES (999, 'later', 0)")
				if err := errors.Join(err, db.Close()); err != nil {
					t.Fatal(err)
				}
			},
			reason: fmt.Sprintf("it was written by a newer version of mcpproxy (schema 999, this one knows %d)", len(list)),
		},
		"another program's": {
			make:   func(t *testing.T, path string) { database(t, path, "CREATE TABLE bookmarks (url)") },
			reason: "it belongs to another program",
		},
		"another program's with our table name": {
			make:   func(t *testing.T, path string) { database(t, path, "CREATE TABLE schema (text)") },
			reason: "it belongs to another program",
		},
		"folder": {
			make: func(t *testing.T, path string) {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			},
			reason: "it is not a regular file",
		},
		"link that leads nowhere": {
			make: func(t *testing.T, path string) {
				if err := os.Symlink("nowhere", path); err != nil {
					t.Fatal(err)
				}
			},
			reason: "it is a link that leads nowhere",
		},
		"link in a circle": {
			make: func(t *testing.T, path string) {
				if err := os.Symlink(path, path); err != nil {
					t.Fatal(err)
				}
			},
			reason: "it is a link that leads nowhere",
		},
		"folder below a file": {
			file:   "file/data/mcpproxy.db",
			make:   func(t *testing.T, path string) { write(t, filepath.Dir(filepath.Dir(path)), []byte("x")) },
			reason: "its folder cannot be made",
		},
		"log is a folder": {
			make: func(t *testing.T, path string) {
				if err := os.MkdirAll(filepath.Join(path+"-wal", "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			reason: "it cannot be made",
		},
		"name with a zero byte": {
			file:   "a\x00b",
			make:   func(*testing.T, string) {},
			reason: "it cannot be reached",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := test.file
			if file == "" {
				file = "mcpproxy.db"
			}
			path := filepath.Join(root, file)
			test.make(t, path)
			before := tree(t, root)
			db, err := Open(t.Context(), path, Options{Mended: func(what string) { t.Error(what) }})
			var unusable *UnusableError
			if !errors.As(err, &unusable) {
				t.Fatalf("error is %v", err)
			}
			if db != nil {
				t.Error("there is a DB beside the error")
			}
			if unusable.Reason != test.reason || unusable.Hint == "" || !strings.HasSuffix(unusable.Path, file) {
				t.Errorf("%+v; want reason %q", unusable, test.reason)
			}
			if after := tree(t, root); !maps.Equal(before, after) {
				t.Errorf("files were changed: %q became %q", before, after)
			}
		})
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, filepath.Join(t.TempDir(), "mcpproxy.db"), Options{})
	var unusable *UnusableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &unusable) {
		t.Errorf("error is %v", err)
	}
}

func TestEmptyFileIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	write(t, path, nil)
	check(t, open(t, path))
}

func TestFileOutsideWALModeIsTurned(t *testing.T) {
	db := fresh(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, err := db.pool.ExecContext(t.Context(), "VACUUM INTO ?", copied); err != nil {
		t.Fatal(err)
	}
	var mode string
	if err := open(t, copied).pool.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %s, %v", mode, err)
	}
}

// A file that is not in WAL mode cannot be turned while somebody writes to it,
// and SQLite says so without waiting.
func TestTurningToWALWaitsForAWriter(t *testing.T) {
	db := fresh(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, err := db.pool.ExecContext(t.Context(), "VACUUM INTO ?", copied); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", dsn(copied, busyTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() { released <- tx.Rollback() })
	check(t, open(t, copied))
	if err := <-released; err != nil {
		t.Error(err)
	}
}

func TestFullDiskIsAnErrorOfTheWriteAlone(t *testing.T) {
	var told []error
	db, err := Open(t.Context(), fresh(t).Path(), Options{OnError: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, db)
	var pages int
	if err := db.writer.QueryRowContext(t.Context(), "PRAGMA max_page_count = 1").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if err = db.PutList(t.Context(), "k", make([]byte, 1<<20)); err == nil {
		t.Fatal("a full disk took a megabyte")
	}
	if u := unusable("x", err); u.Reason != "the disk is full" {
		t.Errorf("%+v", u)
	}
	later(t, db, "k", strings.Repeat("x", 1<<20))
	later(t, db, "small", "1")
	if err := db.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	expectList(t, db, "k", "")
	expectList(t, db, "small", "1")
	if items, err := db.Items(t.Context(), []Key{benchKey(3)}); len(items) != 50 || err != nil {
		t.Errorf("%d items, %v", len(items), err)
	}
	check(t, db)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || code(told[0]) != sqlite3.SQLITE_FULL {
		t.Errorf("OnError was told %v", told)
	}
}
