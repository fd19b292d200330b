package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// refresh reads lists of the server again, in the background; what is asked for
// while that is under way is read once more after it.
func (s *server) refresh(kinds ...catalog.Kind) {
	s.mu.Lock()
	for _, k := range kinds {
		s.dirty[k] = true
	}
	busy := s.refreshing
	s.refreshing = true
	s.mu.Unlock()
	if busy {
		return
	}
	if !s.set.spawn(s.readDirty) {
		s.mu.Lock()
		s.refreshing = false
		s.mu.Unlock()
	}
}

func (s *server) readDirty(ctx context.Context) {
	defer s.settledOnce()
	for {
		s.mu.Lock()
		var kinds []catalog.Kind
		for _, k := range catalog.Kinds() {
			if s.dirty[k] {
				kinds = append(kinds, k)
			}
		}
		c, h := s.conn, s.hello
		if len(kinds) == 0 || c == nil || ctx.Err() != nil {
			s.refreshing = false
			clear(s.dirty)
			s.mu.Unlock()
			return
		}
		clear(s.dirty)
		s.mu.Unlock()
		s.readKinds(ctx, c, h, kinds)
	}
}

func (s *server) readKinds(ctx context.Context, c *conn, h *hello, kinds []catalog.Kind) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.InitTimeout,
		fmt.Errorf("no answer within %s (init_timeout)", s.spec.InitTimeout))
	defer cancel()
	if len(kinds) < len(catalog.Kinds()) {
		s.set.Snapshot(ctx) // the other kinds may still have to come from the store
	}
	lists := map[catalog.Kind][]*catalog.Item{}
	for _, kind := range kinds {
		var elements []json.RawMessage
		if h.offers(kind.Capability()) {
			var warning string
			var err error
			if elements, warning, err = c.list(ctx, kind); err != nil {
				s.listFailed(c, fmt.Errorf("%s: %w", kind.ListMethod(), err))
				return
			}
			if warning != "" {
				s.set.warn("server %s: %s", s.spec.Name, warning)
			}
		}
		items, warnings := catalog.Ingest(s.spec.Name, kind, elements)
		for _, w := range warnings {
			s.set.warn("%s", w)
		}
		lists[kind] = items
	}
	s.publish(h, lists)
}

// listFailed records a list that could not be read. A server that died
// meanwhile is no failure of its own: it is started again when needed.
func (s *server) listFailed(c *conn, err error) {
	if errors.Is(err, errDied) {
		err = c.link.Err()
	}
	s.mu.Lock()
	if s.conn == c {
		s.state, s.err = Unavailable, err
	}
	s.mu.Unlock()
	s.set.warn("server %s: %v", s.spec.Name, err)
	s.record()
}

// publish makes fresh lists the server's part of the catalog and stores them.
func (s *server) publish(h *hello, lists map[catalog.Kind][]*catalog.Item) {
	s.mu.Lock()
	next := blankCatalog(s.spec)
	next.Known = true
	next.Completions = h.offers("completions")
	next.HasResources = h.offers("resources")
	for _, kind := range catalog.Kinds() {
		items, fresh := lists[kind]
		if !fresh {
			items = s.catalog.Items(kind)
		}
		next.SetItems(kind, override(s.spec, items))
	}
	s.catalog, s.known, s.listed, s.stale = next, true, true, false
	if s.state == Unavailable && s.conn != nil {
		s.state, s.err = Ready, nil
	}
	key := s.key()
	s.mu.Unlock()
	rows := itemRows(key, next)
	s.record()
	s.set.save(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := tx.ReplaceItems(ctx, key, rows)
		return err
	})
	s.set.publish()
}

func itemRows(key store.Key, c *catalog.Server) []store.Item {
	var rows []store.Item
	for _, kind := range catalog.Kinds() {
		for i, item := range c.Items(kind) {
			rows = append(rows, store.Item{Key: key, Kind: string(kind), Position: i, Name: item.Name, Raw: item.Raw, Hash: item.Hash()})
		}
	}
	return rows
}

// override applies what the configuration changes of tools.
func override(spec config.Server, items []*catalog.Item) []*catalog.Item {
	if len(spec.ToolOverrides) == 0 {
		return items
	}
	out := make([]*catalog.Item, len(items))
	for i, item := range items {
		out[i] = item
		if o, ok := spec.ToolOverrides[item.Name]; ok && item.Kind == catalog.Tool {
			out[i] = catalog.New(item.Ref, item.Raw, &catalog.Override{Name: o.Name, Description: o.Description, Annotations: o.Annotations})
		}
	}
	return out
}

// restore takes what the store knows of the server itself. exact tells whether
// that was learned for the present audience.
func (s *server) restore(row store.Server, exact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered = true
	s.modern = row.Era == "modern"
	if exact {
		s.failures, s.next = row.Failures, row.NextAttemptAt
	}
	if row.ListedAt.IsZero() || s.known {
		return
	}
	h := &hello{capabilities: row.Capabilities}
	next := blankCatalog(s.spec)
	next.Known = true
	next.Completions = h.offers("completions")
	next.HasResources = h.offers("resources")
	s.catalog, s.known, s.stale = next, true, !exact
}

// restoreItems takes what the store knows of the server's items, unless the
// server itself has said something newer.
func (s *server) restoreItems(items []store.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed || !s.known {
		return
	}
	next := *s.catalog
	byKind := map[catalog.Kind][]*catalog.Item{}
	for _, item := range items {
		kind := catalog.Kind(item.Kind)
		byKind[kind] = append(byKind[kind], catalog.New(catalog.Ref{Server: s.spec.Name, Kind: kind, Name: item.Name}, item.Raw, nil))
	}
	for kind, list := range byKind {
		next.SetItems(kind, override(s.spec, list))
	}
	s.catalog = &next
}
