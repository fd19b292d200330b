package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mending opens path and collects what Mended is told.
func mending(t *testing.T, path string) (db *DB, told *[]string) {
	t.Helper()
	told = new([]string)
	db, err := Open(t.Context(), path, Options{Mended: func(what string) { *told = append(*told, what) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, told
}

func TestVanishedFile(t *testing.T) {
	for _, also := range []string{"", "-wal", "-shm"} {
		t.Run("mcpproxy.db"+also, func(t *testing.T) {
			ctx := t.Context()
			old, told := mending(t, filepath.Join(t.TempDir(), "mcpproxy.db"))
			fill(t, old)
			before, err := old.DataVersion(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, suffix := range []string{"", also} {
				if err := os.Remove(old.Path() + suffix); err != nil && suffix == also && also != "" {
					t.Fatal(err)
				}
			}
			if after, err := old.DataVersion(ctx); after == before || err != nil {
				t.Errorf("data version went from %d to %d, %v", before, after, err)
			}
			if len(*told) != 1 || !strings.HasSuffix((*told)[0], "was removed or replaced while in use; going on with the one that is there now") {
				t.Errorf("told %q", *told)
			}
			db := open(t, old.Path())
			for i := range 200 { // both go on, with one file
				key := fmt.Sprint(i % 50)
				if err := old.PutList(ctx, key+"o", bytes.Repeat([]byte("o"), 5000)); err != nil {
					t.Fatal(err)
				}
				if err := db.PutList(ctx, key+"n", bytes.Repeat([]byte("n"), 3000)); err != nil {
					t.Fatal(err)
				}
			}
			for reader, key := range map[*DB]string{old: "49n", db: "49o"} {
				if body, err := reader.List(ctx, key); len(body) < 3000 || err != nil {
					t.Errorf("%s has %d bytes, %v", key, len(body), err)
				}
			}
			if servers, err := old.Servers(ctx); len(servers) != 0 || err != nil {
				t.Errorf("the new file knows %d servers, %v", len(servers), err)
			}
			check(t, db)
			check(t, old)
		})
	}
}

// What was not followed yet is not mixed with what was: every connection of a
// DB leads to the same file.
func TestConnectionsLeadToOneFile(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	other := open(t, filepath.Join(root, "other.db"))
	if err := errors.Join(other.PutList(ctx, "k", []byte("other")), other.Close()); err != nil {
		t.Fatal(err)
	}
	db, told := mending(t, filepath.Join(root, "mcpproxy.db"))
	if err := db.PutList(ctx, "k", []byte("first")); err != nil {
		t.Fatal(err)
	}
	expectList(t, db, "k", "first")
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(db.Path() + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(other.Path(), db.Path()); err != nil {
		t.Fatal(err)
	}
	expectList(t, db, "k", "first")
	busy, err := db.pool.Conn(ctx) // the one that is open
	if err != nil {
		t.Fatal(err)
	}
	if body, err := db.List(ctx, "k"); !errors.Is(err, errReplaced) {
		t.Errorf("%q, %v", body, err)
	}
	if held, _, err := db.Acquire(ctx, "hub", "a", time.Hour); !held || err != nil { // a write follows
		t.Error(held, err)
	}
	if err := busy.Close(); err != nil {
		t.Error(err)
	}
	for range 5 {
		expectList(t, db, "k", "other")
	}
	if len(*told) != 1 {
		t.Errorf("told %q", *told)
	}
	if l, err := open(t, db.Path()).Lease(ctx, "hub"); l.Holder != "a" || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestWhatCannotBeFollowedIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		put    func(t *testing.T, db *DB) (left func())
		reason string
	}{
		"folder removed": {func(t *testing.T, db *DB) func() {
			if err := os.RemoveAll(filepath.Dir(db.Path())); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := os.Stat(filepath.Dir(db.Path())); !os.IsNotExist(err) {
					t.Errorf("the folder is there again: %v", err)
				}
			}
		}, "its folder was removed while in use"},
		"another program's file": {func(t *testing.T, db *DB) func() {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(db.Path() + suffix); err != nil {
					t.Fatal(err)
				}
			}
			aside := filepath.Join(t.TempDir(), "bookmarks.db")
			database(t, aside, "CREATE TABLE bookmarks (url)")
			if err := os.Rename(aside, db.Path()); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(db.Path())
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if after, err := os.ReadFile(db.Path()); !bytes.Equal(after, content) || err != nil {
					t.Errorf("the file was changed: %d bytes became %d, %v", len(content), len(after), err)
				}
			}
		}, "it belongs to another program"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			db, told := mending(t, filepath.Join(t.TempDir(), "data", "mcpproxy.db"))
			fill(t, db)
			if _, err := db.DataVersion(ctx); err != nil {
				t.Fatal(err)
			}
			left := test.put(t, db)
			for range 3 {
				var unusable *UnusableError
				if _, err := db.DataVersion(ctx); !errors.As(err, &unusable) || unusable.Reason != test.reason {
					t.Errorf("%v; want reason %q", err, test.reason)
				}
				if err := db.PutList(ctx, "k", []byte("v")); err != nil {
					t.Error(err)
				}
				expectList(t, db, "k", "v")
				if items, err := db.Items(ctx, []Key{benchKey(3)}); len(items) != 50 || err != nil {
					t.Errorf("%d items, %v", len(items), err)
				}
			}
			if len(*told) != 0 {
				t.Errorf("told %q", *told)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			left()
		})
	}
}
