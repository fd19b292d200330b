//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// writable tells why path cannot be written to, without opening it.
func writable(path string) error {
	const writeOK = 2 // W_OK
	if err := syscall.Access(path, writeOK); err != nil {
		return &os.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// lockFolder keeps other processes, and other callers in this one, out of the
// same call until unlock. It waits for them as long as wait.
func lockFolder(dir string, wait time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		again := errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
		if !again || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}
