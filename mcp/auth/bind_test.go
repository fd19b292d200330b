package auth

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// removeStore takes the store away and leaves the key file.
func removeStore(t *testing.T, dir string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, "mcpproxy.db") + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func expectBinding(t *testing.T, d *desk, orphan bool) Key {
	t.Helper()
	b, err := Bind(t.Context(), d.db, d.dir)
	if err != nil || b.Orphan != orphan || b.Key.ID() == 0 {
		t.Errorf("orphan %v, %v; want orphan %v", b.Orphan, err, orphan)
	}
	return b.Key
}

func TestBind(t *testing.T) {
	d := newDesk(t)
	key := expectBinding(t, d, false)
	if again := expectBinding(t, d, false); again.ID() != key.ID() {
		t.Error("another key")
	}
	if again := expectBinding(t, deskIn(t, d.dir), false); again.ID() != key.ID() {
		t.Error("another key for another DB")
	}

	// The store is lost, and stays a lost one.
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	removeStore(t, d.dir)
	d = deskIn(t, d.dir)
	if again := expectBinding(t, d, true); again.ID() != key.ID() {
		t.Error("another key for the new store")
	}
	expectBinding(t, d, true)

	// A new key is no lost store, nor does it make one good.
	if err := os.Remove(filepath.Join(d.dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	if other := expectBinding(t, d, true); other.ID() == key.ID() {
		t.Error("the key is the old one")
	}
	fresh := newDesk(t)
	expectBinding(t, fresh, false)
	if err := os.Remove(filepath.Join(fresh.dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	expectBinding(t, fresh, false)
}

// TestTokenCommandBinds: that a token was made first does not make a fresh start
// look like a lost store.
func TestTokenCommandBinds(t *testing.T) {
	d := newDesk(t)
	d.create(t, Settings{Name: "a"})
	expectBinding(t, d, false)
}

// TestStoreRemovedWhileOpen is followed by the DB, and then found to be lost.
func TestStoreRemovedWhileOpen(t *testing.T) {
	d := newDesk(t)
	expectBinding(t, d, false)
	removeStore(t, d.dir)
	if _, err := d.db.DataVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectBinding(t, d, true)
}

func TestProcessesAgreeOnBinding(t *testing.T) {
	agree(t, together(t, 8, "bind", filepath.Join(t.TempDir(), "data")), "false", 8)
}

func TestBindNothing(t *testing.T) {
	if _, err := Bind(t.Context(), nil, t.TempDir()); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	d := newDesk(t)
	if err := os.MkdirAll(filepath.Join(d.dir, KeyFile), 0o700); err != nil {
		t.Fatal(err)
	}
	var file *FileError
	if _, err := Bind(t.Context(), d.db, d.dir); !errors.As(err, &file) {
		t.Error(err)
	}
}
