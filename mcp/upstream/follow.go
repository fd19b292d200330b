package upstream

import (
	"context"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// followTick is how often an instance looks whether others wrote to the store.
const followTick = 2 * time.Second

// keepUnconfigured is how long what servers offered is kept after they were last
// in use as they are configured.
const keepUnconfigured = 30 * 24 * time.Hour

// follow takes over what other processes wrote to the store: lists, failures,
// and the wish that a server be restarted.
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
	last := int64(-1) // what was written since the rows were read may have been missed
	pruned := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !pruned { // not while the first lists are read
			pruned = true
			var used []store.Key
			for _, server := range s.servers() {
				used = append(used, server.key())
			}
			s.save(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Prune(ctx, used, keepUnconfigured)
				return err
			})
		}
		version, err := db.DataVersion(ctx)
		if err != nil || version == last {
			continue
		}
		last = version
		s.catchUp(ctx)
	}
}

// catchUp compares what is known of the servers with what the store says.
func (s *Set) catchUp(ctx context.Context) {
	servers := s.servers()
	best, err := s.bestRows(ctx, servers)
	if err != nil {
		return
	}
	var newer []*server
	for _, server := range servers {
		row, ok := best[server]
		if !ok {
			continue
		}
		if server.restartWanted(row) {
			if err := s.Restart(ctx, server.id); err != nil {
				server.warn("restart: %v", err)
			}
			continue
		}
		if server.follows(row) {
			newer = append(newer, server)
		}
	}
	if len(newer) == 0 {
		return
	}
	if s.Snapshot(ctx); ctx.Err() != nil {
		return // what was stored at the start comes first
	}
	s.restoreItems(ctx, newer)
	s.publish()
}

// restartWanted reports whether somebody asked for a restart after the server's
// process was started by this one. The hub restarts what it runs.
func (s *server) restartWanted(row store.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && !s.viaHub && row.RestartWantedAt.After(s.started)
}

// follows takes over what a row says, and reports whether the items in the store
// are newer. A server that this process runs itself says what it has itself.
func (s *server) follows(row store.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row.AttemptedAt.After(s.attempted) && s.unconnected() && counts(row) {
		// All share one backoff.
		s.failures, s.next, s.attempted = row.Failures, row.NextAttemptAt, row.AttemptedAt
	}
	if s.hosted != nil {
		return false // what is stored of it is its own word
	}
	running := s.conn != nil && s.conn.alive() && s.spec().URL == ""
	if running || row.ListedAt.IsZero() || row.Generation <= s.generation || row.Audience != s.audience() && !s.stale && s.known {
		return false
	}
	h := &hello{capabilities: row.Capabilities, serverInfo: row.ServerInfo, instructions: row.Instructions}
	next := *s.catalog
	if !s.known {
		next.Unread = catalog.Kinds()
	}
	next.Known = true
	h.describe(&next)
	s.catalog, s.known, s.listed, s.stale = &next, true, false, row.Audience != s.audience()
	s.from, s.generation = row.Key, row.Generation
	return true
}
