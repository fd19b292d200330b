package hub

import (
	"context"
	"time"

	"mcpproxy/store"
)

const (
	// orphanWait is how long servers of a hub that was killed may take to end:
	// its guard process gives them less. A pid can be another process's by now,
	// so nobody waits for ever.
	orphanWait = 4 * time.Second
	// orphanPoll is how often it is looked whether they have.
	orphanPoll = 10 * time.Millisecond
)

// orphans are the processes that dead hubs left, by the name of the server. They
// are only waited for: to end them is the business of the dead hubs' guards.
type orphans struct {
	pids  map[string][]int
	until time.Time
	now   func() time.Time
}

// add takes the processes of a dead hub, and reports whether there are any that
// have not ended.
func (o *orphans) add(processes []store.Process, hubID string) (left bool) {
	for _, p := range processes {
		if p.Instance == hubID && p.PID > 1 && !groupGone(p.PID) {
			o.pids[p.Name] = append(o.pids[p.Name], p.PID)
			left = true
		}
	}
	return left
}

// wait returns when those of a server are gone, or ctx has ended.
func (o *orphans) wait(ctx context.Context, server string) error {
	tick := time.NewTicker(orphanPoll)
	defer tick.Stop()
	for _, pid := range o.pids[server] {
		for o.now().Before(o.until) && !groupGone(pid) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
