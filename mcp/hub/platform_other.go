//go:build !linux && !darwin

package hub

import (
	"io/fs"
	"syscall"
)

// possible tells whether this system can have a hub.
const possible = false

// maxSocketPath is 0: no path is short enough.
func maxSocketPath() int { return 0 }

func owned(fs.FileInfo) bool { return false }

func peerUser(syscall.RawConn) (int, error) { return 0, errPlatform }

func groupGone(int) bool { return true }
