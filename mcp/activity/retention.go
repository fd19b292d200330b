package activity

import (
	"context"
	"fmt"
	"time"
)

// What is added makes its own room. Sweeps are for an instance that adds nothing
// for long, and for limits that were lowered.
const (
	// firstSweep is how long after its start a Recorder looks for what is not to
	// be kept, sweepEvery how often it does afterwards.
	firstSweep = time.Minute
	sweepEvery = time.Hour
	// sweepMost is how many records one transaction removes, sweepPause the time
	// until the next, in which others write.
	sweepMost  = 200
	sweepPause = 20 * time.Millisecond
	// sweepLease is the name of the right to sweep. Whoever has it and does
	// nothing more loses it after sweepHold.
	sweepLease = "activity"
	sweepHold  = 10 * time.Second
)

// sweep removes some of what the limits do not allow, if no other instance does
// so at the moment, and returns when there is to be another.
func (w *writer) sweep(ctx context.Context) (next time.Duration) {
	db := w.store()
	if db == nil {
		return sweepEvery
	}
	held, _, err := db.Acquire(ctx, sweepLease, w.holder, sweepHold)
	if err == nil && !held {
		return sweepEvery
	}
	removed := 0
	if err == nil {
		removed, err = db.TrimActivity(ctx, w.present().rows(w.opts.Now()), sweepMost)
	}
	if err == nil && removed == sweepMost {
		return sweepPause
	}
	if err == nil {
		err = db.Release(ctx, sweepLease, w.holder)
	}
	if err != nil && ctx.Err() == nil {
		w.opts.OnError(fmt.Errorf("remove old activity: %w", err))
	}
	return sweepEvery
}
