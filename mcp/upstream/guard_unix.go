//go:build unix

package upstream

import (
	"context"
	"os"
	"syscall"
	"time"
)

// guardAttributes detach the guard from the terminal and from the signals that
// its owner's group gets.
func guardAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// orphanGrace is what each step of the ladder gives a server whose owner was
// killed: less than an owner gives, since nobody can use what it still does.
const orphanGrace = time.Second

// stopOrphans stops the group of a process that is not our child. Its stdin was
// closed when its owner died.
func stopOrphans(ctx context.Context, leader *os.Process) {
	tree := newProcessTree(leader)
	reaped := make(chan struct{})
	close(reaped) // by init
	if tree.gone(ctx, reaped, orphanGrace) {
		return
	}
	tree.terminate()
	if tree.gone(ctx, reaped, orphanGrace) {
		return
	}
	tree.kill()
}
