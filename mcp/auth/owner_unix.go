//go:build unix

package auth

import (
	"io/fs"
	"syscall"
)

// shared says why a file is no secret of the user uid, nil if it is one. The
// superuser can read everything anyway, so what belongs to root is trusted.
func shared(path string, info fs.FileInfo, uid int) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != uid {
		return &FileError{Path: path, Reason: "belongs to another user", Hint: "use a file of your own"}
	}
	if info.Mode().Perm()&0o077 != 0 {
		return &FileError{Path: path, Reason: "can be read or changed by other users", Hint: "chmod 600 " + path}
	}
	return nil
}
