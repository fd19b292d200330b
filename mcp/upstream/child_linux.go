package upstream

import "syscall"

// childAttributes put the child at the head of a group of its own and have it
// told when the thread that started it is gone. The spawner keeps that thread
// for as long as the process lives.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
