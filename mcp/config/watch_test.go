package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// observer is a configuration file that is watched, and what was told of it.
type observer struct {
	t       *testing.T
	path    string
	changed chan *Config
	failed  chan error
}

// observe watches the file at path until the test ends. A file that is there is
// changed once, which shows that it is watched.
func observe(t *testing.T, path string) *observer {
	t.Helper()
	o := newObserver(t, path)
	o.start(Watch)
	if src, err := os.ReadFile(path); err == nil && len(src) > 0 {
		write(t, path, one("watched"))
		o.change("watched")
	}
	return o
}

func newObserver(t *testing.T, path string) *observer {
	return &observer{t: t, path: path, changed: make(chan *Config, 100), failed: make(chan error, 100)}
}

func (o *observer) load(context.Context) (*Config, error) {
	return Load(LoadOptions{Path: o.path, Home: "/nowhere", LogLevel: "debug", Environ: []string{"MCPPROXY_TOOLS_LIMIT=3"}})
}

func (o *observer) start(run func(context.Context, string, *Config, WatchOptions) error) {
	o.t.Helper()
	first, err := o.load(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	o.startFrom(first, run)
}

func (o *observer) startFrom(first *Config, run func(context.Context, string, *Config, WatchOptions) error) {
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, o.path, first, WatchOptions{
			Load:    o.load,
			Changed: func(c *Config) { o.changed <- c },
			Failed:  func(err error) { o.failed <- err },
		})
	}()
	o.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			o.t.Error(err)
		}
	})
}

// change waits for what is told next, a change to a file with that server.
func (o *observer) change(server string) {
	o.t.Helper()
	select {
	case c := <-o.changed:
		if c.Server(server) == nil {
			o.t.Errorf("the change has no server %q", server)
		}
		if c.LogLevel != "debug" || c.ToolsLimit != 3 {
			o.t.Error("flags and environment have lost their precedence")
		}
	case err := <-o.failed:
		o.t.Fatal(err)
	case <-time.After(5 * time.Second):
		o.t.Fatal("no change was told")
	}
}

// failure waits for what is told next, a failure.
func (o *observer) failure(text string) {
	o.t.Helper()
	select {
	case err := <-o.failed:
		if !strings.Contains(err.Error(), text) {
			o.t.Errorf("told %v, want %q", err, text)
		}
	case <-o.changed:
		o.t.Fatal("a change was told")
	case <-time.After(5 * time.Second):
		o.t.Fatal("no failure was told")
	}
}

// nothing waits long enough for everything that is under way to be told.
func (o *observer) nothing() {
	o.t.Helper()
	select {
	case c := <-o.changed:
		o.t.Errorf("one more change, with %d servers", len(c.Servers))
	case err := <-o.failed:
		o.t.Errorf("one more failure: %v", err)
	case <-time.After(settled + patience + settled):
	}
}

// one is a configuration with a server of that name.
func one(server string) string {
	return fmt.Sprintf(`{"mcpServers": {%q: {"command": "x"}}}`, server)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path+".new"); err != nil {
		t.Fatal(err)
	}
	rename(t, path+".new", path)
}

func folderAt(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// A save is one change, however it is done (K09).
func TestWatchSaves(t *testing.T) {
	// A save counts if it took no longer than it may to be one.
	saves := map[string]struct {
		within time.Duration
		save   func(t *testing.T, path string)
	}{
		"in place": {settled, func(t *testing.T, path string) { write(t, path, one("new")) }},
		"rename over": {settled, func(t *testing.T, path string) {
			write(t, path+".tmp", one("new"))
			rename(t, path+".tmp", path)
		}},
		"rename away, write": {patience, func(t *testing.T, path string) {
			rename(t, path, path+"~")
			write(t, path, one("new"))
		}},
		"remove, write later": {400*time.Millisecond + patience, func(t *testing.T, path string) {
			remove(t, path)
			time.Sleep(400 * time.Millisecond)
			write(t, path, one("new"))
		}},
		"two halves": {patience, func(t *testing.T, path string) {
			text := one("new")
			write(t, path, text[:len(text)/2])
			time.Sleep(100 * time.Millisecond)
			appendTo(t, path, text[len(text)/2:])
		}},
		"empty, then slowly": {400*time.Millisecond + patience, func(t *testing.T, path string) {
			text := one("new")
			write(t, path, "")
			time.Sleep(400 * time.Millisecond)
			write(t, path, text[:len(text)/2])
			time.Sleep(400 * time.Millisecond)
			appendTo(t, path, text[len(text)/2:])
		}},
		"five saves": {160*time.Millisecond + settled, func(t *testing.T, path string) {
			for i := range 5 {
				name := fmt.Sprintf("n%d", i)
				if i == 4 {
					name = "new"
				}
				write(t, path, one(name))
				time.Sleep(40 * time.Millisecond)
			}
		}},
		"five renames": {160*time.Millisecond + settled, func(t *testing.T, path string) {
			for i := range 5 {
				name := fmt.Sprintf("n%d", i)
				if i == 4 {
					name = "new"
				}
				write(t, path+".tmp", one(name))
				rename(t, path+".tmp", path)
				time.Sleep(40 * time.Millisecond)
			}
		}},
		"a command": {settled, func(t *testing.T, path string) {
			if err := AddServer(t.Context(), path, "new", []byte(npx)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range saves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				path := filepath.Join(t.TempDir(), "c.json")
				write(t, path, one("old"))
				o := observe(t, path)
				began := time.Now()
				test.save(t, path)
				saved := time.Now()
				if saved.Sub(began) > test.within {
					continue
				}
				o.change("new")
				if took := time.Since(saved); took > 3*time.Second {
					t.Errorf("the change was told %v after the save", took)
				}
				o.nothing()
				return
			}
			t.Fatal("the machine is too busy to save a file in time")
		})
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What is wrong changes nothing and is said once (K08).
func TestWatchKeepsWhatWorks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, one("old"))
	o := observe(t, path)

	write(t, path, `{`)
	o.failure("ends too early")
	write(t, path, `{ `)
	write(t, path, `{`)
	o.nothing()
	write(t, path, `[`)
	o.failure("not valid")
	write(t, path, one("watched"))
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	o.nothing()
	remove(t, path)
	o.failure("is gone")
	write(t, path, one("watched"))
	o.nothing()
	write(t, path, one("mended"))
	o.change("mended")
}

// A file that was changed before it was watched is a change.
func TestWatchComparesWithWhatIsInEffect(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, one("old"))
	o := newObserver(t, path)
	first, err := o.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, one("new"))
	o.startFrom(first, Watch)
	o.change("new")
}

func TestWatchFolders(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(folder, "c.json")
		o := observe(t, path)
		folderAt(t, folder)
		o.nothing()
		write(t, path, one("new"))
		o.change("new")
	})
	t.Run("made with its file", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(folder, "c.json")
		o := observe(t, path)
		o.nothing()
		folderAt(t, folder)
		write(t, path, one("new"))
		o.change("new")
	})
	t.Run("removed and made again", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(folder, "c.json")
		folderAt(t, folder)
		write(t, path, one("old"))
		o := observe(t, path)
		remove(t, filepath.Dir(folder))
		folderAt(t, folder)
		write(t, path, one("new"))
		o.change("new")
		remove(t, filepath.Dir(folder))
		o.failure("is gone")
		folderAt(t, folder)
		o.nothing()
		write(t, path, one("newer"))
		o.change("newer")
		write(t, path, one("newest"))
		o.change("newest")
	})
	t.Run("renamed and made again", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "a")
		path := filepath.Join(folder, "c.json")
		folderAt(t, folder)
		write(t, path, one("old"))
		o := observe(t, path)
		rename(t, folder, folder+"2")
		folderAt(t, folder)
		write(t, path, one("new"))
		o.change("new")
		write(t, folder+"2/c.json", one("other"))
		o.nothing()
		write(t, path, one("newer"))
		o.change("newer")
	})
}

func TestWatchLinks(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		folderAt(t, dir+"/dotfiles")
		folderAt(t, dir+"/home")
		write(t, dir+"/dotfiles/c.json", one("old"))
		link(t, "../dotfiles/c.json", dir+"/home/c.json")
		o := observe(t, dir+"/home/c.json")
		write(t, dir+"/dotfiles/c.tmp", one("new"))
		rename(t, dir+"/dotfiles/c.tmp", dir+"/dotfiles/c.json")
		o.change("new")
		write(t, dir+"/dotfiles/d.json", one("elsewhere"))
		link(t, dir+"/dotfiles/d.json", dir+"/home/c.json")
		o.change("elsewhere")
		write(t, dir+"/dotfiles/d.json", one("newest"))
		o.change("newest")
	})
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		for _, version := range []string{"1", "2"} {
			folderAt(t, dir+"/"+version)
			write(t, dir+"/"+version+"/c.json", one("v"+version))
		}
		link(t, "1", dir+"/data")
		link(t, "data/c.json", dir+"/c.json")
		o := observe(t, dir+"/c.json")
		link(t, "2", dir+"/data")
		o.change("v2")
		remove(t, dir+"/1")
		write(t, dir+"/2/c.json", one("v3"))
		o.change("v3")
	})
	t.Run("leads nowhere at first", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		link(t, "later/c.json", dir+"/c.json")
		o := observe(t, dir+"/c.json")
		o.nothing()
		folderAt(t, dir+"/later")
		write(t, dir+"/later/c.json", one("new"))
		o.change("new")
	})
}

// Where a folder cannot be watched the file is looked at, which is said once.
func TestWatchPolls(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, one("old"))
	o := newObserver(t, path)
	o.start(func(ctx context.Context, path string, first *Config, options WatchOptions) error {
		w := &watch{path: path, options: options, effective: first.source, seen: first.source}
		w.run(ctx, errors.New("too many open files"))
		return nil
	})
	o.failure("too many open files; it is looked at every 2s instead")
	write(t, path, one("new"))
	o.change("new")
	write(t, path, `{`)
	o.failure("ends too early")
}

func TestWatchNeedsAnAbsolutePath(t *testing.T) {
	var fault *Error
	if err := Watch(t.Context(), "c.json", &Config{}, WatchOptions{}); !errors.As(err, &fault) {
		t.Errorf("got %v", err)
	}
}

func TestPlaces(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folderAt(t, dir+"/a/b")
	write(t, dir+"/a/b/c", "")
	link(t, "a/b", dir+"/rel")
	link(t, dir+"/a", dir+"/abs")
	link(t, "../rel/../b/c", dir+"/a/up")
	link(t, "loop", dir+"/loop")
	for path, want := range map[string]map[string][]string{
		"/a/b/c":       {"/a/b": {"c"}},
		"/a/b/missing": {"/a/b": {"missing"}},
		"/a/x/y/z":     {"/a": {"x"}},
		"/a/b/c/d":     {"/a/b": {"c"}},
		"/rel/c":       {"": {"rel"}, "/a/b": {"c"}},
		"/abs/b/c":     {"": {"abs"}, "/a/b": {"c"}},
		"/a/up":        {"/a": {"up"}, "": {"rel"}, "/a/b": {"c"}},
	} {
		places := make(map[string][]string)
		for folder, names := range want {
			places[dir+folder] = names
		}
		if got := placesOf(dir + path); !reflect.DeepEqual(got, places) {
			t.Errorf("%s: got %q, want %q", path, got, places)
		}
	}
	if got := placesOf(dir + "/loop"); len(got[dir]) == 0 {
		t.Errorf("a loop: got %q", got)
	}
}
