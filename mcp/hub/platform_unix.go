//go:build linux || darwin

package hub

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// possible tells whether this system can have a hub.
const possible = true

// maxSocketPath is the length in bytes that a socket's path must stay below.
func maxSocketPath() int { return len(syscall.RawSockaddrUnix{}.Path) }

// owned reports whether a file belongs to this user.
func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// groupGone reports whether no process is left of the group that a process led.
func groupGone(pid int) bool { return errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) }
