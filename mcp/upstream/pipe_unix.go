//go:build unix

package upstream

import (
	"errors"
	"os"
	"syscall"
)

// pipeWriter writes to a child's stdin.
type pipeWriter struct{ *os.File }

// TryWrite writes what the pipe takes at once and returns how much that was.
func (w pipeWriter) TryWrite(b []byte) (n int, err error) {
	raw, err := w.SyscallConn()
	if err != nil {
		return 0, err
	}
	// The pipe is in non-blocking mode; a full one is not waited for here.
	if closed := raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), b)
		return true
	}); closed != nil {
		return 0, closed
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	return max(n, 0), err
}
