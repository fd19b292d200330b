package config

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// settled is how long nothing may happen to the file before it is read, so
	// that a save in several steps, or several saves, are one change.
	settled = 250 * time.Millisecond
	// unsettled bounds the wait for a file that is written to all the time.
	unsettled = time.Second
	// patience is how long a file that is gone or wrong may stay so before
	// anybody is told: it is often the first half of a slow save.
	patience = 750 * time.Millisecond
	// pollInterval is how often the file is looked at where its folder cannot
	// be watched, and while it is gone or wrong.
	pollInterval = 2 * time.Second
	// checkInterval is how often it is looked at although its folder is
	// watched: a folder further up may have been renamed, and some network
	// file systems tell nothing of what other machines do.
	checkInterval = 30 * time.Second
)

// WatchOptions is what Watch does about a file. Its functions are called one at
// a time, by Watch itself.
type WatchOptions struct {
	// Load makes a configuration of the file as it is now. It is called as at
	// the start, so that flags and environment keep their precedence.
	Load func(ctx context.Context) (*Config, error)
	// Changed gets what Load made of new contents. Contents that are the same
	// bytes as before are no change, whoever wrote them.
	Changed func(*Config)
	// Failed gets, once for the same contents, why the file as it is now is
	// not taken: the error of Load, or that the file is gone. What was handed
	// over last stays in effect. It also gets, once, why the folder cannot be
	// watched and the file is looked at from time to time instead.
	Failed func(error)
}

// Watch tells of changes of the configuration file at path, an absolute path,
// until ctx ends, which is no error. first is the configuration in effect; a
// file that has changed since it was loaded is a change.
//
// A save is one change, however the file is written: in place, in several steps,
// or by renaming another file over it. So are several saves within a quarter of
// a second. The file may be missing at first, be reached by symbolic links, and
// its folder may come and go.
func Watch(ctx context.Context, path string, first *Config, o WatchOptions) error {
	if !filepath.IsAbs(path) {
		return &Error{File: path, Rule: "the path of the configuration file must be absolute"}
	}
	w := &watch{path: filepath.Clean(path), options: o, effective: first.source, seen: first.source}
	folders, err := watchFolders(w.path)
	if err == nil {
		defer folders.close()
	}
	w.folders = folders
	w.run(ctx, err)
	return nil
}

// watch is one run of Watch.
type watch struct {
	path    string
	options WatchOptions

	effective string // source of the configuration in effect
	seen      string // source at the last look
	doubt     string // the failure at the last look
	since     time.Time
	told      string // the failure that was told last

	folders *folders // nil: the file is looked at from time to time
}

// run looks at the file when something has happened, until ctx ends. err is why
// there are no folders.
func (w *watch) run(ctx context.Context, err error) {
	if err != nil {
		w.poll(err)
	}
	look := time.NewTimer(0)
	defer look.Stop()
	var since time.Time // the first change that was not looked at yet
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.noted():
			if !w.folders.concerned() {
				continue
			}
		case <-look.C:
			// On a busy machine there may be news that nobody has come to yet.
			waited := !since.IsZero()
			overdue := waited && time.Since(since) >= unsettled
			if overdue || w.folders == nil || !w.folders.concerned() {
				since = time.Time{}
				look.Reset(w.look(ctx, waited))
				continue
			}
		}
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		look.Reset(min(settled, max(0, since.Add(unsettled).Sub(now))))
	}
}

// look reads the file, hands over what is new and returns when to look again.
// waited tells that the file was left to settle before.
func (w *watch) look(ctx context.Context, waited bool) time.Duration {
	if w.folders != nil {
		if err := w.folders.arm(); err != nil {
			w.folders.close()
			w.folders = nil
			w.poll(err)
		}
	}
	again := checkInterval
	if w.folders == nil {
		again = pollInterval
	}
	src, err := readFile(w.path)
	source := sourceOf(src)
	unseen := source != w.seen
	w.seen = source
	if err == nil && source == w.effective {
		w.doubt, w.told = "", ""
		return again
	}
	if unseen && !waited {
		return settled
	}
	next := &Config{}
	if err == nil && src != nil {
		next, err = w.options.Load(ctx)
	}
	// Load has read the file again, which may have become another since.
	if err == nil && !next.Exists {
		err = &Error{File: w.path, Rule: "the configuration file is gone"}
	}
	if err != nil {
		return w.fail(source+err.Error(), err)
	}
	changed := next.source != w.effective
	w.effective, w.doubt, w.told = next.source, "", ""
	if changed {
		w.options.Changed(next)
	}
	return again
}

// fail tells why the file is not taken, once it has been so for a while and if
// that was not said before. failure is equal for what need not be said twice.
func (w *watch) fail(failure string, err error) time.Duration {
	if failure == w.told {
		return pollInterval
	}
	now := time.Now()
	if failure != w.doubt {
		w.doubt, w.since = failure, now
	}
	if left := w.since.Add(patience).Sub(now); left > 0 {
		return left
	}
	w.told = failure
	w.options.Failed(err)
	return pollInterval
}

// poll tells why the file is looked at from time to time.
func (w *watch) poll(err error) {
	w.options.Failed(fmt.Errorf("watch %s: %w; it is looked at every %s instead", w.path, err, short(pollInterval)))
}

// noted receives when something has happened in a watched folder.
func (w *watch) noted() <-chan struct{} {
	if w.folders == nil {
		return nil
	}
	return w.folders.noted
}
