package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how much a pipe of ours holds, in bytes, instead of 64 KiB: a
// result of 100 KB is then written and read without waiting in between.
const pipeSize = 256 << 10

// Widen makes a pipe hold more, where f is one and the system allows it.
func Widen(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// A pipe that stays as it is works too.
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
}
