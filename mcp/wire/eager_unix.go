//go:build unix

package wire

import (
	"errors"
	"io"
	"syscall"
)

// Stream is a pipe or a socket.
type Stream interface {
	io.Writer
	syscall.Conn
}

// Eager makes an Outbox on a pipe or socket, which must be in non-blocking mode,
// write what it takes at once and leave the rest to a goroutine.
func Eager(s Stream) io.Writer { return eager{s} }

type eager struct{ Stream }

// TryWrite writes what the stream takes at once and returns how much that was.
func (w eager) TryWrite(b []byte) (n int, err error) {
	raw, err := w.SyscallConn()
	if err != nil {
		return 0, err
	}
	// A full stream is not waited for here.
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
