//go:build unix && !linux

package upstream

import (
	"os/exec"
	"syscall"
)

// prepare puts the child at the head of a group of its own.
func prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}
