package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/upstream"
)

// TestProgramReplaced looks at a program that is replaced on disk, where the
// system has no other way to it than its path.
func TestProgramReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpproxy")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "old")
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p := program{path: path, file: file}
	if got, err := p.again(); got != path || err != nil {
		t.Errorf("as it was: %q, %v", got, err)
	}
	write(path+".new", "new")
	if err := os.Chtimes(path+".new", time.Time{}, file.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if got, err := p.again(); !errors.Is(err, errReplaced) {
		t.Errorf("replaced: %q, %v", got, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := p.again(); !errors.Is(err, errReplaced) {
		t.Errorf("removed: %q, %v", got, err)
	}
}

// TestBuildIsFixed touches the program under a process: its build stays what it
// was.
func TestBuildIsFixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpproxy")
	if err := os.WriteFile(path, []byte("old"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := &app{Env: Env{Executable: path}}
	before := a.self().build
	if err := os.WriteFile(path, []byte("newer"), 0o700); err != nil {
		t.Fatal(err)
	}
	if after := a.self().build; after != before {
		t.Errorf("the build was %q and is %q", before, after)
	}
}

// TestNoHubNoSharing makes servers private from the start where there can be no
// hub.
func TestNoHubNoSharing(t *testing.T) {
	for goos, want := range map[string]bool{"linux": true, "darwin": true, "windows": false, "freebsd": false} {
		a := &app{Env: Env{Now: time.Now}}
		c := &core{}
		c.cfg.Store(&config.Config{})
		var o upstream.Options
		a.share(&o, c, goos)
		if (o.Shared != nil) != want || (o.Hub != nil) != want || o.Instance == "" {
			t.Errorf("%s: %v %v %q", goos, o.Shared != nil, o.Hub != nil, o.Instance)
		}
	}
}
