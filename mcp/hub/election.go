package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"mcpproxy/store"
)

// election is one search for the hub. Every process that searches runs one at
// the same time; what they agree by is the lease, which is held in the name of a
// hub from before it is started.
type election struct {
	options DialOptions
	db      *store.DB
	lease   string
	started []string // ids of the hubs that this search had started
	// ended is closed when the last of them has ended: if that is before it could
	// be found, its lease is held by nobody.
	ended <-chan struct{}
}

// run searches until there is a hub that answers, none can be had, or ctx ends.
func (e *election) run(ctx context.Context) (net.Conn, error) {
	for {
		// Before all that it is to tell about.
		version, err := e.db.DataVersion(ctx)
		if err != nil {
			return nil, e.broken(ctx, err)
		}
		lease, hub, err := incumbent(ctx, e.db, e.options.Build)
		if err != nil {
			return nil, e.broken(ctx, err)
		}
		conn, err := e.visit(ctx, lease, hub)
		if err == nil {
			return conn, nil
		}
		claimed := false
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for the hub: %w", context.Cause(ctx))
		case errors.Is(err, ErrNone):
			return nil, err
		case errors.Is(err, ErrGone):
			if claimed, err = e.claim(ctx, lease.Holder); claimed {
				_ = os.Remove(hub.Socket) // what is left harms nobody
			}
		case !e.options.Now().Before(lease.ExpiresAt):
			claimed, err = e.claim(ctx, "")
		case errors.Is(err, errUnregistered):
			err = e.wait(ctx, version, lease.ExpiresAt)
		default:
			// It is ending, has just ended or lost its place; the store does not
			// tell when it dies meanwhile.
			err = e.wait(ctx, version, e.options.Now().Add(endingPoll))
		}
		if err == nil && claimed {
			err = e.start(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// errUnregistered tells that the holder of the lease has not said where it
// listens: it is only starting, or there is none.
var errUnregistered = errors.New("the hub is not registered")

// visit connects to the hub. One that is connected to but does not answer is
// waited for until its lease has expired or is another's.
func (e *election) visit(ctx context.Context, lease store.Lease, hub store.Instance) (net.Conn, error) {
	if hub.ID == "" {
		return nil, errUnregistered
	}
	conn, err := connect(ctx, hub.Socket)
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, errSilent):
		return nil, err
	case err != nil:
		return nil, none(err)
	}
	if err := e.greet(ctx, conn, lease); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// greet waits for the hub to answer.
func (e *election) greet(ctx context.Context, conn net.Conn, lease store.Lease) error {
	ping, err := ask(conn, "ping")
	if err != nil {
		return err
	}
	for {
		// Where the lease has expired this process and the hub may have been
		// asleep together, and the hub is about to renew it.
		left := lease.ExpiresAt.Sub(e.options.Now())
		_, err := ping.answer(ctx, min(max(left, wakingPatience), time.Second))
		if !errors.Is(err, errSilent) {
			return err
		}
		now, err := e.db.Lease(ctx, e.lease)
		if err != nil {
			return e.broken(ctx, err)
		}
		if now.Holder == "" || now.Holder != lease.Holder {
			return errSilent
		}
		lease = now
	}
}

// claim takes the lease for a hub that is still to be started: from a holder
// that is known to be dead or, if dead is "", from nobody. It reports false where
// somebody else was faster. What else the store holds of the former hub is left
// to the new one.
func (e *election) claim(ctx context.Context, dead string) (claimed bool, err error) {
	id := NewID()
	if dead != "" {
		claimed, err = e.db.Succeed(ctx, e.lease, dead, id, leaseTime)
	} else {
		claimed, _, err = e.db.Acquire(ctx, e.lease, id, leaseTime)
	}
	if err != nil {
		return false, e.broken(ctx, err)
	}
	if claimed {
		e.started = append(e.started, id)
	}
	return claimed, nil
}

// start starts the hub that the lease is held for.
func (e *election) start(ctx context.Context) error {
	id := e.started[len(e.started)-1]
	err := errors.New("it ended each time as soon as it was started; see its log")
	if len(e.started) <= maxStarted {
		e.ended, err = e.options.Spawn(ctx, id)
	}
	if err == nil {
		return nil
	}
	return errors.Join(none(fmt.Errorf("start the hub: %w", err)), e.release(ctx))
}

// release gives back the lease of the hub that was started last, if it is still
// its: others would wait until it expires.
func (e *election) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
	defer cancel()
	return e.db.Release(ctx, e.lease, e.started[len(e.started)-1])
}

// wait returns when the store has changed, the hub that was started has ended,
// the time has come or ctx has ended.
func (e *election) wait(ctx context.Context, version int64, until time.Time) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for e.options.Now().Before(until) {
		select {
		case <-tick.C:
		case <-e.ended:
			e.ended = nil
			if err := e.release(ctx); err != nil {
				return e.broken(ctx, err)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the hub: %w", context.Cause(ctx))
		}
		now, err := e.db.DataVersion(ctx)
		if err != nil {
			return e.broken(ctx, err)
		}
		if now != version {
			return nil
		}
	}
	return nil
}

// broken is the error for a store that does not do what it should.
func (e *election) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the hub: %w", context.Cause(ctx))
	}
	return none(err)
}
