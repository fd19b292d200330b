//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// refusal says why a file or folder cannot be trusted by the user uid: it
// belongs to somebody else, or everybody may write to it. The superuser could
// change everything anyway, so what belongs to root is trusted. Devices and
// pipes are not looked at.
func refusal(info fs.FileInfo, uid int) string {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return ""
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != uid {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o002 != 0 {
		return "can be written to by everyone; take that right away (chmod o-w)"
	}
	return ""
}
