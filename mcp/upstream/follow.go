package upstream

import (
	"context"
	"time"

	"mcpproxy/store"
)

// followTick is how often an instance looks whether others wrote to the store.
const followTick = 2 * time.Second

// keepUnconfigured is how long what servers offered is kept after they were last
// in use as they are configured.
const keepUnconfigured = 30 * 24 * time.Hour

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
	pruned := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !pruned { // not while the first lists are read
			pruned = true
			s.save(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Prune(ctx, s.keys, keepUnconfigured)
				return err
			})
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
