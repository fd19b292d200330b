//go:build unix

package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFilesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := OpenKey(dir); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(someSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := map[string]func() error{
		token:                       func() error { _, err := ReadTokenFile(token); return err },
		filepath.Join(dir, KeyFile): func() error { _, _, err := OpenKey(dir); return err },
	}
	for path, read := range reads {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info.Mode(), err)
		}
		for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o601: false, 0o666: false} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			err := read()
			var file *FileError
			switch {
			case ok && err != nil:
				t.Errorf("%s of mode %o: %v", path, mode, err)
			case !ok && (!errors.As(err, &file) || file.Hint != "chmod 600 "+path):
				t.Errorf("%s of mode %o: %v", path, mode, err)
			}
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := shared(path, info, os.Geteuid()); err != nil {
			t.Errorf("our own: %v", err)
		}
		if os.Geteuid() != 0 { // for others than root, a stranger's file cannot be made
			if err := shared(path, info, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
				t.Errorf("somebody else's: %v", err)
			}
			continue
		}
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if err := read(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("somebody else's: %v", err)
		}
	}
}

// TestPipeIsRefused: opening one would wait for whoever writes to it.
func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokenFile(path); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
}
