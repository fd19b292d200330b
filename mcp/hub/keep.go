package hub

import (
	"context"
	"sync"
	"time"

	"mcpproxy/mcp/upstream"
)

// reviewEvery is how often what waits for the idle time is looked at: the idle
// time may be changed meanwhile.
const reviewEvery = time.Second

// chores are what one review found to be done.
type chores struct {
	users  map[string]int    // how many sessions a process has
	levels map[string]string // log level that a process is to be asked for
	drop   []*process
	end    error         // why the hub is to end
	wait   time.Duration // until the next review, 0 = until something changes
}

// keep tells the Set what sessions want of the processes, drops those that are
// not needed any more and ends the hub when it is not. One goroutine does all
// that, so that the Set learns it in order.
func (h *hub) keep(ctx context.Context) {
	var drops sync.WaitGroup
	defer drops.Wait()
	for ctx.Err() == nil {
		c := h.review()
		for id, n := range c.users {
			h.set.Users(id, n)
		}
		for id, level := range c.levels {
			h.set.SetLevelOf(id, level)
		}
		for _, p := range c.drop {
			drops.Go(func() { h.drop(context.WithoutCancel(ctx), p) })
		}
		if c.end != nil {
			h.end(c.end)
			return
		}
		var due <-chan time.Time
		if c.wait > 0 {
			due = time.After(c.wait)
		}
		select {
		case <-h.nudge:
		case <-due:
		case <-ctx.Done():
		}
	}
}

// review finds what is to be done. When the hub is to end no process is dropped:
// the Set is closed.
func (h *hub) review() chores {
	idle, now := h.options.IdleTimeout(), h.options.Now()
	c := chores{users: map[string]int{}, levels: map[string]string{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == ending {
		return c
	}
	later := func(left time.Duration) {
		if left = min(max(left, time.Millisecond), reviewEvery); c.wait == 0 || left < c.wait {
			c.wait = left
		}
	}
	if h.sessions == 0 {
		if c.end = h.useless(idle, now, later); c.end != nil {
			h.phase = ending
			return c
		}
	}
	for _, p := range h.processes {
		if p.dropping {
			continue
		}
		if n := len(p.sessions); p.hosted && n != p.counted {
			p.counted = n
			c.users[p.id] = n
		}
		if level := p.level(); p.hosted && level != p.asked {
			p.asked = level
			c.levels[p.id] = level
		}
		if len(p.sessions) > 0 {
			continue
		}
		if left := p.unused.Add(idle).Sub(now); left > 0 && !p.discard && h.phase == serving {
			later(left)
			continue
		}
		p.dropping = true
		c.drop = append(c.drop, p)
	}
	return c
}

// useless tells why a hub without sessions is to end, nil if it is not yet.
func (h *hub) useless(idle time.Duration, now time.Time, later func(time.Duration)) error {
	switch {
	case h.phase == draining:
		return errReplaced
	case h.options.Stay:
		return nil
	case !h.visited:
		idle = max(idle, firstVisit)
	}
	left := h.deserted.Add(idle).Sub(now)
	if left <= 0 {
		return errIdle
	}
	later(left)
	return nil
}

// drop stops a process that no session uses.
func (h *hub) drop(ctx context.Context, p *process) {
	h.set.Drop(ctx, p.id)
	h.mu.Lock()
	delete(h.processes, p.id)
	h.mu.Unlock()
	close(p.gone)
}

// retime has the server of a process go by what its sessions want now.
func (h *hub) retime(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if times, wanted := p.times(); wanted {
		h.set.Adjust(p.id, times) // with the lock, so that the last times count
	}
}

// times are what all sessions of a process can live with: the longest time to
// start, and the shortest intervals, of which 0 is never. Without sessions there
// are none. It is called with the hub's lock held.
func (p *process) times() (t upstream.Times, wanted bool) {
	for c := range p.sessions {
		t.InitTimeout = max(t.InitTimeout, c.times.InitTimeout)
		t.HealthCheckInterval = oftener(t.HealthCheckInterval, c.times.HealthCheckInterval)
		t.ToolDiscoveryInterval = oftener(t.ToolDiscoveryInterval, c.times.ToolDiscoveryInterval)
	}
	return t, len(p.sessions) > 0
}

// oftener is the shorter of two intervals, of which 0 is never.
func oftener(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// level is the least severe log level that a session wants, "" where none has
// said. Once one has, the others count as wanting what servers commonly send by
// themselves. It is called with the hub's lock held.
func (p *process) level() string {
	if len(p.sessions) == 0 {
		return p.asked
	}
	said, least := p.asked != "", len(logLevels())
	for c := range p.sessions {
		level := c.session.LogLevel()
		if level != "" {
			said = true
		}
		least = min(least, severity(level))
	}
	if !said {
		return ""
	}
	return logLevels()[least]
}
