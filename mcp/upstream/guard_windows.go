package upstream

import (
	"context"
	"os"
	"syscall"
)

// guardAttributes are not used: see stopOrphans.
func guardAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// stopOrphans has nothing to do: the job object of a child ends with its owner.
func stopOrphans(context.Context, *os.Process) {}
