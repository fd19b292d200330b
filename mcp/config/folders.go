package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// folders notes what happens where it is decided what is found at a path. All
// but noted is for one goroutine.
type folders struct {
	path    string
	watcher *fsnotify.Watcher
	watched map[string]folder
	noted   chan struct{} // receives when something was noted
	done    chan struct{} // closed when nothing is noted any more

	mu     sync.Mutex
	events map[string]fsnotify.Op // by path, since they were taken
	lost   bool                   // there were more
}

// folder is one that is watched.
type folder struct {
	info  fs.FileInfo // tells it from another folder of the same name
	names []string    // what matters of it
}

// watchFolders begins to take notes, of nothing before arm is called.
func watchFolders(path string) (*folders, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	f := &folders{
		path: path, watcher: watcher, watched: make(map[string]folder),
		noted: make(chan struct{}, 1), done: make(chan struct{}), events: make(map[string]fsnotify.Op),
	}
	go f.collect()
	return f, nil
}

// close ends the notes.
func (f *folders) close() {
	_ = f.watcher.Close()
	<-f.done
}

// collect takes what the library tells as it comes. The library waits for that,
// on some systems with the lock in its hand that watching another folder needs.
func (f *folders) collect() {
	defer close(f.done)
	events, errs := f.watcher.Events, f.watcher.Errors
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			f.mu.Lock()
			f.events[filepath.Clean(ev.Name)] |= ev.Op
			f.mu.Unlock()
		case _, ok := <-errs: // too many events, for one
			if !ok {
				errs = nil
				continue
			}
			f.mu.Lock()
			f.lost = true
			f.mu.Unlock()
		}
		select {
		case f.noted <- struct{}{}:
		default:
		}
	}
}

// concerned reports whether something that was noted since the last time may
// change what is found at the path.
func (f *folders) concerned() bool {
	f.mu.Lock()
	events, concerned := f.events, f.lost
	f.events, f.lost = make(map[string]fsnotify.Op), false
	f.mu.Unlock()
	for name, op := range events {
		if _, ok := f.watched[name]; ok && (op.Has(fsnotify.Remove) || op.Has(fsnotify.Rename)) {
			f.drop(name) // what is noted goes on for the folder that was here, or not at all
			concerned = true
		}
		for _, n := range f.watched[filepath.Dir(name)].names {
			concerned = concerned || strings.EqualFold(n, filepath.Base(name))
		}
	}
	return concerned
}

// arm watches the folders that matter now and no others. The error says why one
// cannot be watched.
func (f *folders) arm() error {
	// A folder can change between being found and being watched, which then
	// shows in another round. Who changes it faster than this is waited for
	// by the next call.
	for range 10 {
		places := placesOf(f.path)
		for name := range f.watched {
			if places[name] == nil {
				f.drop(name)
			}
		}
		fresh := false
		for name, names := range places {
			info, err := os.Stat(name)
			if have, ok := f.watched[name]; ok && err == nil && os.SameFile(have.info, info) {
				f.watched[name] = folder{info, names}
				continue
			}
			fresh = true
			f.drop(name)
			if err != nil {
				continue
			}
			switch err := f.watcher.Add(name); {
			case err == nil:
				f.watched[name] = folder{info, names}
			case !errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%s: %w", name, unwrapPath(err))
			}
		}
		if !fresh {
			return nil
		}
	}
	return nil
}

// drop forgets a folder.
func (f *folders) drop(name string) {
	if _, ok := f.watched[name]; ok {
		delete(f.watched, name)
		_ = f.watcher.Remove(name) // it may be gone
	}
}

// maxLinks bounds the symbolic links on the way to a file.
const maxLinks = 40

// placesOf goes the way to path and returns what decides where it leads, as
// names by their folder: the file, the symbolic links on the way, or the first
// part that is missing. Links in the root folder are part of the system and do
// not count.
func placesOf(path string) map[string][]string {
	places := make(map[string][]string)
	root := func(path string) string { return filepath.VolumeName(path) + string(os.PathSeparator) }
	parts := func(path string) []string {
		return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r < 0x80 && os.IsPathSeparator(byte(r)) })
	}
	at, rest := root(path), parts(path)
	for links := 0; len(rest) > 0 && links <= maxLinks; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		through := err == nil && len(rest) > 0
		if !through || link && at != root(at) {
			places[at] = append(places[at], name)
		}
		switch {
		case link:
			target, err := os.Readlink(next)
			if err != nil {
				return places
			}
			if filepath.IsAbs(target) {
				at = root(target)
			}
			rest = append(parts(target), rest...)
			links++
		case !through:
			return places
		case !info.IsDir():
			places[at] = append(places[at], name)
			return places
		default:
			at = next
		}
	}
	return places
}
