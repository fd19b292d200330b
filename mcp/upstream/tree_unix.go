//go:build unix

package upstream

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// processTree is the process group of a child.
type processTree struct{ group int }

// newProcessTree returns the group that the child leads.
func newProcessTree(child *os.Process) processTree { return processTree{child.Pid} }

func (t processTree) terminate() { _ = syscall.Kill(-t.group, syscall.SIGTERM) }

func (t processTree) kill() { _ = syscall.Kill(-t.group, syscall.SIGKILL) }

func (t processTree) release() {}

// empty reports whether no process of the group is left. The group's id cannot
// be given to another process while a member lives.
func (t processTree) empty() bool {
	return errors.Is(syscall.Kill(-t.group, 0), syscall.ESRCH)
}

// groupPoll is how often a group whose leader has left is looked at, and
// deadEvery how many looks lie between those that tell the dead from the living.
const (
	groupPoll = 10 * time.Millisecond
	deadEvery = 5
)

// gone waits until the child has been reaped and the group is empty, for at
// most grace.
func (t processTree) gone(ctx context.Context, exited <-chan struct{}, grace time.Duration) bool {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-exited:
	case <-deadline.C:
		return false
	case <-ctx.Done():
		return false
	}
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for look := 1; !t.empty(); look++ {
		// What nobody has waited for counts as a member. Orphans wait for the
		// first process of the system, which in containers may never do that.
		if look%deadEvery == 0 && onlyDead(t.group) {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}
