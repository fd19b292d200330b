//go:build linux || darwin

package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nullSignal = syscall.Signal(0)

// TestPlace finds a path that is short enough, in a folder for this user alone.
func TestPlace(t *testing.T) {
	temp, err := os.MkdirTemp(tidyTemp, "hub")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	deep := filepath.Join(temp, strings.Repeat("d", maxSocketPath()))
	long := filepath.Join(temp, strings.Repeat("l", maxSocketPath()))
	for _, dir := range []string{deep, long} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	short := "mcpproxy-" + strconv.Itoa(os.Geteuid()) + "-"
	for _, c := range []struct{ name, data, temp, want string }{
		{"below the data folder", temp, temp, filepath.Join(temp, "hub") + "/"},
		{"data folder too deep", deep, temp, filepath.Join(temp, short)},
		{"temporary folder too deep as well", deep, long, filepath.Join(tidyTemp, short)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.temp)
			path, err := socketPath(c.data, "id")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(filepath.Dir(path)) })
			if !strings.HasPrefix(path, c.want) || len(path) >= maxSocketPath() {
				t.Errorf("%s, want %s…", path, c.want)
			}
			l, err := listenAt(path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
				if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
				}
			}
			if again, err := socketPath(c.data, "id"); err != nil || again != path {
				t.Errorf("the second time it is %s, %v", again, err)
			}
			if other, err := socketPath(c.data, "other"); err != nil || other == path || filepath.Dir(other) != filepath.Dir(path) {
				t.Errorf("another hub's is %s, %v", other, err)
			}
		})
	}
}

// TestFolderOfOthers refuses folders that somebody else could have prepared.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(path string) error{
		"is open to other users": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o750)
		},
		"is not a folder": func(path string) error { return os.Symlink(target, path) },
	}
	if os.Geteuid() == 0 {
		cases["belongs to another user"] = func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chown(path, 12345, -1)
		}
	}
	for want, make := range cases {
		data := filepath.Join(dir, strings.ReplaceAll(want, " ", "-"))
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(filepath.Join(data, "hub")); err != nil {
			t.Fatal(err)
		}
		db := openStore(t, data, nil)
		err := Run(t.Context(), optionsFor(db, data, testBuild, NewID(), time.Minute))
		var refused *FolderError
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("a folder that %s: %v", want, err)
		}
		if lease, err := db.Lease(t.Context(), leaseName(testBuild)); err != nil || lease.Holder != "" {
			t.Errorf("the lease is %+v, %v", lease, err)
		}
	}
}

// TestDeepDataFolder runs a hub whose data folder has too long a path.
func TestDeepDataFolder(t *testing.T) {
	temp, err := os.MkdirTemp(tidyTemp, "hub")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	t.Setenv("TMPDIR", temp)
	dir := filepath.Join(temp, strings.Repeat("d", maxSocketPath()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := newOffice(t, dir, time.Minute, nil)
	if v := o.session(newScript(t, "one", "").entry()); v.tool("fast", `{}`) != "fast" {
		t.Error("the call failed")
	}
}
