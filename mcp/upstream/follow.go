package upstream

import (
	"context"
	"time"
)

// followTick is how often an instance looks whether others wrote to the store.
const followTick = 2 * time.Second

// follow carries out what other processes ask for through the store: a restart
// of a server.
func (s *Set) follow(ctx context.Context) {
	select {
	case <-s.rows:
	case <-ctx.Done():
		return
	}
	db := s.options.Store()
	if db == nil {
		return
	}
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	last, _ := db.DataVersion(ctx)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		version, err := db.DataVersion(ctx)
		if err != nil || version == last {
			continue
		}
		last = version
		s.obey(ctx)
	}
}

// obey restarts the servers for which that was wanted after they were started.
func (s *Set) obey(ctx context.Context) {
	rows, err := s.options.Store().Servers(ctx)
	if err != nil {
		return
	}
	for _, row := range rows {
		server := s.byName[row.Name]
		if server == nil || row.RestartWantedAt.IsZero() {
			continue
		}
		server.mu.Lock()
		due := server.conn != nil && row.RestartWantedAt.After(server.started)
		server.mu.Unlock()
		if due {
			if err := s.Restart(ctx, row.Name); err != nil {
				s.warn("server %s: restart: %v", row.Name, err)
			}
		}
	}
}
