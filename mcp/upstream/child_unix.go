//go:build unix && !linux

package upstream

import "syscall"

// childAttributes put the child at the head of a group of its own.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
