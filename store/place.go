package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// elsewhere is the hint where the place is at fault.
	elsewhere = "set data_dir to a folder that can be written to"
	// createWait is how long another process may take to make the file.
	createWait = time.Second
)

// place finds the one true path of the file, makes it if it is missing, and
// sees that it can be written. It never opens an existing file: closing it
// would drop the locks that SQLite holds on it elsewhere in this process.
func place(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &UnusableError{Path: path, Reason: "its folder is unknown", Hint: elsewhere, Err: err}
	}
	dir, name := filepath.Split(abs)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &UnusableError{Path: abs, Reason: "its folder cannot be made", Hint: elsewhere, Err: err}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", &UnusableError{Path: abs, Reason: "its folder cannot be reached", Hint: elsewhere, Err: err}
	}
	file := filepath.Join(dir, name)
	switch info, err := os.Lstat(file); {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(file); err != nil {
			return "", &UnusableError{Path: file, Reason: "it cannot be made", Hint: elsewhere, Err: err}
		}
	case err != nil:
		return "", &UnusableError{Path: file, Reason: "it cannot be reached", Hint: elsewhere, Err: err}
	case info.Mode()&fs.ModeSymlink != 0:
		if file, err = filepath.EvalSymlinks(file); err != nil {
			return "", &UnusableError{Path: abs, Reason: "it is a link that leads nowhere", Hint: "remove the link", Err: err}
		}
	}
	return file, usableFile(file)
}

// usableFile refuses what SQLite would wait for, or open only for reading.
func usableFile(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return &UnusableError{Path: file, Reason: "it cannot be reached", Hint: elsewhere, Err: err}
	case !info.Mode().IsRegular():
		return &UnusableError{Path: file, Reason: "it is not a regular file", Hint: "move it away"}
	}
	if err := writable(file); err != nil {
		return &UnusableError{Path: file, Reason: "it is read-only", Hint: "make it writable, or " + elsewhere, Err: err}
	}
	if err := writable(filepath.Dir(file)); err != nil {
		return &UnusableError{Path: file, Reason: "its folder is read-only", Hint: "make it writable, or " + elsewhere, Err: err}
	}
	return nil
}

// create makes an empty file of mode 0600. What lies beside a file that is gone
// goes too: a process that still has the old one open would share its
// write-ahead index with the new one, and spoil it. The lock is for others who
// make the file at the same time; without it nothing is removed.
func create(file string) error {
	unlock, err := lockFolder(filepath.Dir(file), createWait)
	if err == nil {
		defer unlock()
		if _, err := os.Lstat(file); err == nil {
			return nil
		}
		for _, suffix := range []string{"-wal", "-shm", "-journal"} {
			if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove what an older file left: %w", err)
			}
		}
	}
	return createEmpty(file)
}

// createEmpty makes the file unless it is there.
func createEmpty(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn is the connection string for file. What stands in it holds on every
// connection; WAL is a property of the file and set when the file is made.
// mode=rw: only create makes the file, with its permissions. busy is how long a
// statement waits for a lock.
func dsn(file string, busy time.Duration) string {
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	params := []string{
		"mode=rw",
		"_txlock=immediate", // a read before a write would otherwise fail at once under another writer
		fmt.Sprintf("_pragma=busy_timeout(%d)", busy.Milliseconds()),
		"_pragma=synchronous(NORMAL)",
		"_pragma=journal_size_limit(4194304)",
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: strings.Join(params, "&")}
	return u.String()
}
