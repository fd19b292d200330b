//go:build unix

package cli

import (
	"errors"
	"syscall"
)

// processExists reports whether there is a process of that pid.
func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
