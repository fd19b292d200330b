//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeignFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path, data := filepath.Join(dir, "c.json"), filepath.Join(dir, "data")
	write(t, path, "{}")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	opts := LoadOptions{Path: path, DataDir: data}
	if _, err := Load(opts); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, data} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		mode := info.Mode().Perm()
		if err := os.Chmod(p, mode|0o002); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := Load(opts); !errors.As(err, &e) || e.File != p || !strings.Contains(err.Error(), "can be written to by everyone") {
			t.Errorf("%s: %v", p, err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if why := refusal(info, os.Geteuid()); why != "" {
		t.Errorf("our own file: %s", why)
	}
	why := refusal(info, os.Geteuid()+1)
	if os.Geteuid() == 0 {
		if why != "" {
			t.Errorf("a file of root: %s", why)
		}
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
		why = refusal(info, 0)
	}
	if why != "belongs to another user" {
		t.Errorf("somebody else's file: %q", why)
	}
	if info, err = os.Stat("/dev/null"); err != nil {
		t.Fatal(err)
	}
	if why := refusal(info, os.Geteuid()); why != "" {
		t.Errorf("a device: %s", why)
	}
}
