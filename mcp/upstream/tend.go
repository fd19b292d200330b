package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// A server that does not answer so many probes in a row, each for so long, is
// given up. The repetitions follow at once.
const (
	probeTries = 3
	probeWait  = 3 * time.Second
)

// tend looks after a connection until it ends: it probes whether the server
// answers and reads its lists again, at the intervals of the configuration, and
// sooner those that could not be read. Of a server that the hub runs only the hub
// is probed, which does the rest.
func (s *server) tend(ctx context.Context, c *conn) {
	_, hub := c.link.(*hubLink)
	now := s.set.options.Now
	probed, listed := now(), now()
	for {
		probe, list := s.spec().HealthCheckInterval, s.spec().ToolDiscoveryInterval
		s.mu.Lock()
		reread := s.rereadAt
		s.mu.Unlock()
		var probeDue, listDue, rereadDue <-chan time.Time
		if !reread.IsZero() {
			rereadDue = time.After(reread.Sub(now()))
		}
		if probe > 0 {
			probeDue = time.After(probed.Add(probe).Sub(now()))
		}
		if list > 0 && !hub {
			listDue = time.After(listed.Add(list).Sub(now()))
		}
		select {
		case <-c.link.Done():
			return
		case <-ctx.Done():
			return
		case <-s.adjusted:
		case <-rereadDue:
			s.reread()
		case <-probeDue:
			mine, again := s.mine(ctx, "health", probe)
			if mine {
				if err := s.probe(ctx, c); err != nil {
					s.giveUp(ctx, c, err)
					return
				}
			}
			probed = again.Add(-probe)
		case <-listDue:
			mine, again := s.mine(ctx, "discovery", list)
			if mine {
				s.refresh(catalog.Kinds()...)
			}
			listed = again.Add(-list)
		}
	}
}

// look has tend look at what is due.
func (s *server) look() {
	select {
	case s.adjusted <- struct{}{}:
	default: // it is going to look anyway
	}
}

// leaseSlack is how much longer than to the next turn a lease lasts: as long as
// it may take to come to it.
const leaseSlack = time.Second

// mine reports whether it falls to this process to do what is to be done once on
// this machine in every interval, and when to ask again: after the interval, or
// when whoever does it now may have died. A child is its own process's business;
// a remote server is seen by many.
func (s *server) mine(ctx context.Context, task string, interval time.Duration) (mine bool, again time.Time) {
	db := s.set.options.Store()
	next := s.set.options.Now().Add(interval)
	if s.spec().URL == "" || db == nil || s.set.options.Instance == "" {
		return true, next
	}
	lease := s.lease(task)
	held, now, err := db.Acquire(ctx, lease, s.set.options.Instance, interval+leaseSlack)
	if held || err != nil {
		return true, next
	}
	return false, now.ExpiresAt.Add(time.Millisecond)
}

func (s *server) lease(task string) string {
	return fmt.Sprintf("%s/%s/%s", task, s.name, s.fingerprint)
}

// resign leaves to others what this process did for all.
func (s *server) resign() {
	if s.spec().URL == "" || s.set.options.Instance == "" {
		return
	}
	for _, task := range []string{"health", "discovery"} {
		lease := s.lease(task)
		s.set.save(func(ctx context.Context, tx *store.Tx) error { return tx.Release(ctx, lease, s.set.options.Instance) })
	}
}

// probe asks whether the server answers; any answer counts, and a server that
// works on a call is not asked.
// The hub answers for itself at once, whatever its servers work on.
func (s *server) probe(ctx context.Context, c *conn) error {
	_, hub := c.link.(*hubLink)
	var last error
	for range probeTries {
		if c.busy() && !hub || c.delivering.Load() > 0 {
			return nil
		}
		once, cancel := context.WithTimeout(ctx, probeWait)
		_, err := c.request(once, nil, "ping", nil, 0)
		cancel()
		if err == nil || errors.As(err, new(*wire.Error)) || ctx.Err() != nil || !c.alive() {
			return nil // it lives, or its end is noticed otherwise
		}
		if c.delivering.Load() > 0 {
			return nil // it is not heard, since a client does not read
		}
		last = err
	}
	return fmt.Errorf("no answer to %d health probes of %s: %w", probeTries, probeWait, last)
}

// busy reports whether a call of a session waits for its answer.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.pending {
		if call.session != nil && !call.givenUp {
			return true
		}
	}
	return false
}

// giveUp ends the connection to a server that does not answer. It is tried again
// in the background, less and less often, and at once when it is called.
func (s *server) giveUp(ctx context.Context, c *conn, err error) {
	s.mu.Lock()
	current := s.conn == c
	if current {
		s.failed(err)
		s.lost = true
	}
	s.mu.Unlock()
	if !current {
		return
	}
	s.warn("%v", err)
	_ = c.close(ctx)
	s.record()
	s.set.retryLater(s)
}
