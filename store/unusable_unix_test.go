//go:build unix

package store

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWithoutPermission opens as an ordinary user, also when the test runs as
// root, to whom everything is permitted.
func TestWithoutPermission(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		file, folder os.FileMode // a zero mode: the file is not there
		reason       string
	}{
		"read-only file":                 {0o444, 0o777, "it is read-only"},
		"read-only folder":               {0o666, 0o555, "its folder is read-only"},
		"read-only folder without file":  {0, 0o555, "it cannot be made"},
		"unreadable file":                {0o222, 0o777, "it cannot be opened"},
		"folder that cannot be searched": {0o666, 0o600, "it cannot be reached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.Chmod(filepath.Dir(root), 0o755); err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(root, "store.test")
			copyFile(t, exe, binary, 0o755)
			db := open(t, filepath.Join(root, "data", "mcpproxy.db"))
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if test.file == 0 {
				err = os.Remove(db.Path())
			} else {
				err = os.Chmod(db.Path(), test.file)
			}
			if err == nil {
				err = os.Chmod(filepath.Dir(db.Path()), test.folder)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(filepath.Dir(db.Path()), 0o700) })
			var before map[string]string
			if os.Geteuid() == 0 {
				before = tree(t, filepath.Dir(db.Path()))
			}
			cmd, output := process(t, "open", db.Path())
			cmd.Path, cmd.Dir = binary, root
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if err := cmd.Run(); err == nil || !strings.Contains(output.String(), "cannot be used: "+test.reason) {
				t.Errorf("%v: %s; want %q", err, output, test.reason)
			}
			if before != nil && !maps.Equal(before, tree(t, filepath.Dir(db.Path()))) {
				t.Error("files were changed")
			}
		})
	}
}

func TestPipeInPlaceOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Open(t.Context(), path, Options{})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Open waits for the other end")
	}
}
