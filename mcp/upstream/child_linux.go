package upstream

import (
	"os/exec"
	"syscall"
)

// prepare puts the child at the head of a group of its own and has it told when
// the thread that started it is gone. The spawner keeps that thread for as long
// as the process lives.
func prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return nil
}
