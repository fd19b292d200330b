package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"mcpproxy/store"
)

// Load begins to read the store, in the background. What of it counts depends on
// what the client can do, so it is called once the client has said that; other
// methods call it where it was forgotten.
func (s *Set) Load() {
	s.loading.Do(func() {
		s.begun.Store(true)
		if !s.spawn(s.loadRows) {
			close(s.rows)
		}
		s.spawn(s.follow)
	})
}

// await waits for the rows; it reports false when ctx ended before.
func (s *Set) await(ctx context.Context) bool {
	s.Load()
	select {
	case <-s.rows:
		return true
	case <-ctx.Done():
		return false
	}
}

// loadRows reads what is known of the servers, without what they offer: that is
// the larger part, and a list may have been rendered before.
func (s *Set) loadRows(ctx context.Context) {
	defer close(s.rows)
	best, err := s.bestRows(ctx, s.servers())
	if err != nil {
		s.warn("store: %v; servers are asked instead", err)
		return
	}
	sum := sha256.New()
	for _, server := range s.servers() {
		row, ok := best[server]
		if !ok {
			// It has nothing to show, and says so itself when that changes.
			fmt.Fprintf(sum, "%q\n", server.name)
			continue
		}
		server.restore(row)
		fmt.Fprintf(sum, "%q %q %q %q %d %v\n", row.Name, server.spec().Alias, row.Fingerprint, row.Audience, row.Generation, server.spec().ToolOverrides)
	}
	s.stamp = hex.EncodeToString(sum.Sum(nil))
}

// bestRows are the rows of the store that tell most of these servers as they are
// configured now.
func (s *Set) bestRows(ctx context.Context, servers []*server) (map[*server]store.Server, error) {
	rows, err := s.options.Store().Servers(ctx)
	if err != nil {
		return nil, err
	}
	best := map[*server]store.Server{}
	for _, server := range servers {
		for _, row := range rows {
			if row.Name != server.name || row.Fingerprint != server.fingerprint {
				continue
			}
			if old, ok := best[server]; !ok || better(row, old, server.audience()) {
				best[server] = row
			}
		}
	}
	return best, nil
}

// restoreFresh gives servers that were just added what the store knows of them.
func (s *Set) restoreFresh(ctx context.Context, fresh []*server) {
	if !s.begun.Load() || !s.await(ctx) {
		return // they are read with all others
	}
	best, err := s.bestRows(ctx, fresh)
	if err != nil {
		return // the servers are asked instead
	}
	for server, row := range best {
		server.restore(row)
	}
	s.restoreItems(ctx, fresh)
}

// restoreItems gives servers the items that the store holds of them.
func (s *Set) restoreItems(ctx context.Context, servers []*server) {
	var keys []store.Key
	for _, server := range servers {
		if key, ok := server.stored(); ok {
			keys = append(keys, key)
		}
	}
	items, err := s.options.Store().Items(ctx, keys)
	if err != nil {
		s.warn("store: %v; servers are asked instead", err)
		return
	}
	byKey := map[store.Key][]store.Item{}
	for _, item := range items {
		byKey[item.Key] = append(byKey[item.Key], item)
	}
	for _, server := range servers {
		if key, ok := server.stored(); ok {
			server.restoreItems(byKey[key])
		}
	}
}

// Stamp names what the store holds of all servers and how the configuration
// changes it; equal stamps mean equal items in equal order. It is empty where
// the store cannot be read, and after a server has said something new.
func (s *Set) Stamp(ctx context.Context) string {
	if !s.await(ctx) || s.changed.Load() {
		return ""
	}
	return s.stamp
}

// loadItems gives the servers the items that the store holds of them.
func (s *Set) loadItems(ctx context.Context) {
	s.restoreItems(ctx, s.servers())
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

// listsFirst is how long a server that no list waits for is not started, so that
// its start takes no processor from the list that is being made.
const listsFirst = 300 * time.Millisecond

// introduce starts a server whose lists are not known for this client, unless
// an attempt is not due, and reports whether it is worth waiting for.
func (s *server) introduce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.known && !s.stale {
		return false
	}
	if s.unconnected() {
		switch {
		case s.modern:
			return false // until it is called, or restarted
		case s.failures > 0 && s.next.IsZero():
			return false // until somebody changes something or calls it
		case s.retrying:
		case s.set.options.Now().Before(s.next):
			s.set.retryLater(s)
		case s.remembered:
			s.next = s.set.options.Now().Add(listsFirst)
			s.set.retryLater(s)
		default:
			s.begin()
		}
	}
	return !s.remembered
}

// unconnected reports whether there is neither a live connection nor an attempt
// to make one; it is called with the lock held.
func (s *server) unconnected() bool {
	return s.attempt == nil && (s.conn == nil || !s.conn.alive())
}

// retryLater tries a server again when its backoff is over, as long as nothing
// is known of it.
func (s *Set) retryLater(server *server) {
	s.spawn(func(ctx context.Context) {
		for first := true; ; first = false {
			wait, ok := server.retryIn(first)
			if !ok {
				return
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
	})
}

// retryIn returns how long to wait until the next attempt, which it begins when
// it is due. It reports false when there is nothing to wait for: then, when the
// attempt has begun, and for all but the first who would wait.
func (s *server) retryIn(first bool) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first && s.retrying {
		return 0, false
	}
	s.retrying = false
	if s.retired || s.next.IsZero() || s.known && !s.stale && !s.lost || !s.unconnected() {
		return 0, false
	}
	if wait = s.next.Sub(s.set.options.Now()); wait <= 0 {
		s.begin()
		return 0, false
	}
	s.retrying = true
	return wait, true
}
