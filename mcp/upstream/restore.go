package upstream

import (
	"context"
	"time"

	"mcpproxy/store"
)

// stored is what the store holds of a server for one audience.
type stored struct {
	row   store.Server
	items []store.Item
}

// load reads all that the store holds of the configured servers. What of it
// counts is chosen later: it depends on what the client can do, which is not
// known yet when an instance starts.
func (s *Set) load(ctx context.Context) {
	defer close(s.loaded)
	db := s.options.Store()
	rows, err := db.Servers(ctx)
	if err == nil {
		err = s.loadItems(ctx, db, rows)
	}
	if err != nil {
		s.warn("store: %v; servers are asked instead", err)
	}
}

func (s *Set) loadItems(ctx context.Context, db *store.DB, rows []store.Server) error {
	var keys []store.Key
	position := map[store.Key]int{}
	for _, row := range rows {
		server := s.byName[row.Name]
		if server == nil || row.Fingerprint != server.fingerprint {
			continue
		}
		position[row.Key] = len(s.known)
		s.known = append(s.known, stored{row: row})
		if !row.ListedAt.IsZero() {
			keys = append(keys, row.Key)
		}
	}
	items, err := db.Items(ctx, keys)
	for _, item := range items {
		known := &s.known[position[item.Key]]
		known.items = append(known.items, item)
	}
	return err
}

// restore gives each server what was stored for this client's audience, or the
// newest that was stored for another.
func (s *Set) restore() {
	audience := s.audience()
	best := map[string]stored{}
	for _, k := range s.known {
		if old, ok := best[k.row.Name]; !ok || better(k.row, old.row, audience) {
			best[k.row.Name] = k
		}
	}
	s.known = nil
	for name, k := range best {
		s.byName[name].restore(k.row, k.items, k.row.Audience == audience)
	}
	s.assemble()
}

// better prefers a row for the audience, then one with lists, then the newer.
func better(a, b store.Server, audience string) bool {
	if (a.Audience == audience) != (b.Audience == audience) {
		return a.Audience == audience
	}
	if a.ListedAt.IsZero() != b.ListedAt.IsZero() {
		return b.ListedAt.IsZero()
	}
	return a.ListedAt.After(b.ListedAt)
}

// introduce starts a server whose lists are not known for this client, unless
// an attempt is not due, and reports whether it is worth waiting for.
func (s *server) introduce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalog.Known && !s.stale {
		return false
	}
	if s.attempt == nil && s.conn == nil {
		switch {
		case s.failures > 0 && s.next.IsZero():
			return false // until somebody changes something or calls it
		case s.set.options.Now().Before(s.next):
			s.set.retryLater(s)
		default:
			s.begin()
		}
	}
	return !s.remembered
}

// retryLater tries a server again when its backoff is over, as long as nothing
// is known of it.
func (s *Set) retryLater(server *server) {
	s.spawn(func(ctx context.Context) {
		server.mu.Lock()
		due := server.next
		server.mu.Unlock()
		if due.IsZero() {
			return
		}
		select {
		case <-time.After(due.Sub(s.options.Now())):
		case <-ctx.Done():
			return
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		if (!server.catalog.Known || server.stale) && server.attempt == nil && server.conn == nil {
			server.begin()
		}
	})
}
