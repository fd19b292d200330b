package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
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
		s.pause(ctx)
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

// Time between two readings of a server's lists.
const (
	firstListGap = 250 * time.Millisecond
	maxListGap   = time.Second
)

// pause waits before lists are read that were read a moment ago, and longer
// when that goes on, so that a server that calls them changed whenever it is
// asked for them keeps nobody busy.
func (s *server) pause(ctx context.Context) {
	s.mu.Lock()
	since := time.Since(s.lastRead)
	if since > 2*s.listGap {
		s.listGap = firstListGap
	} else {
		s.listGap = min(2*s.listGap, maxListGap)
	}
	wait := s.listGap - since
	s.mu.Unlock()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	s.lastRead = time.Now()
	s.mu.Unlock()
}

// listPatience is how long the lists of a server wait for each other before
// what is there is shown.
const listPatience = time.Second

// listing is what came of reading one list.
type listing struct {
	kind     catalog.Kind
	elements []json.RawMessage // as the server gave them
	items    []*catalog.Item
	err      error
}

// readKinds reads lists side by side. One that fails or takes long keeps none
// of the others from being shown.
func (s *server) readKinds(ctx context.Context, c *conn, h *hello, kinds []catalog.Kind) {
	listCtx, cancel := context.WithTimeoutCause(ctx, s.spec().InitTimeout,
		fmt.Errorf("no answer within %s (init_timeout)", s.spec().InitTimeout))
	defer cancel()
	results := make(chan listing, len(kinds))
	for _, kind := range kinds {
		go func() { results <- s.readKind(listCtx, c, h, kind) }()
	}
	late := time.NewTimer(listPatience)
	defer late.Stop()
	fresh := map[catalog.Kind]listing{}
	var failed []listing
	for open, waiting := len(kinds), true; open > 0; {
		select {
		case l := <-results:
			open--
			if l.err != nil {
				failed = append(failed, l)
			} else {
				fresh[l.kind] = l
			}
		case <-late.C:
			waiting = false
		}
		if len(fresh) > 0 && (open == 0 || !waiting) {
			s.publish(ctx, h, fresh)
			for kind := range fresh {
				c.readings.read(kind)
			}
			if _, tools := fresh[catalog.Tool]; tools {
				s.settledOnce()
			}
			clear(fresh)
		}
	}
	if len(failed) > 0 && ctx.Err() != nil {
		return // the Set was closed, which says nothing about the server
	}
	s.listsFailed(c, failed)
	for _, l := range failed {
		c.readings.read(l.kind)
	}
	s.keep()
}

// emptyDoubt is how long to wait before a list that was full and is empty now is
// read a second time.
const emptyDoubt = 500 * time.Millisecond

func (s *server) hasItems(kind catalog.Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.catalog.Items(kind)) > 0
}

func (s *server) readKind(ctx context.Context, c *conn, h *hello, kind catalog.Kind) listing {
	if !h.offers(kind.Capability()) {
		return listing{kind: kind}
	}
	elements, warning, err := c.list(ctx, kind)
	if err == nil && len(elements) == 0 && s.hasItems(kind) {
		// A server that has only just started may not have all it is going to have.
		select {
		case <-time.After(emptyDoubt):
			elements, warning, err = c.list(ctx, kind)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return listing{kind: kind, err: err}
	}
	if warning != "" {
		s.warn("%s", warning)
	}
	items, warnings := catalog.Ingest(s.name, kind, elements)
	for _, w := range warnings {
		s.set.warn("%s", s.log.clean(w))
	}
	return listing{kind: kind, elements: elements, items: items}
}

// listsFailed deals with lists that could not be read. Without its tools a
// server is unavailable. One that died is started again when it is needed, or
// after a while where it has never said what it has.
func (s *server) listsFailed(c *conn, failed []listing) {
	died := false
	for _, l := range failed {
		if !c.alive() && !errors.As(l.err, new(*wire.Error)) {
			died = true
			continue
		}
		err := fmt.Errorf("%s: %w", l.kind.ListMethod(), l.err)
		if l.kind == catalog.Tool {
			s.mu.Lock()
			if s.conn == c {
				s.state, s.err = Unavailable, err
			}
			s.mu.Unlock()
		}
		s.warn("%v", err)
	}
	s.mu.Lock()
	again := false
	for _, l := range failed {
		// What a server answers to anything but tools/list is its last word.
		if l.kind == catalog.Tool || !errors.As(l.err, new(*wire.Error)) {
			s.unread[l.kind] = l.err
			again = again || c.alive() && !permanent(l.err)
		} else if s.hosted != nil {
			s.elements[l.kind] = nil
		}
	}
	if again {
		s.misread++
		s.rereadAt = s.set.options.Now().Add(backoff(s.misread))
	}
	s.tell()
	s.mu.Unlock()
	if again {
		s.look()
	}
	if died {
		s.diedUnknown(c)
	}
	s.record()
}

// reread reads the lists again that could not be read.
func (s *server) reread() {
	s.mu.Lock()
	s.rereadAt = time.Time{} // until they cannot be read once more
	kinds := slices.Collect(maps.Keys(s.unread))
	s.mu.Unlock()
	s.refresh(kinds...)
}

// diedUnknown counts it as a failure to connect when a server ended before it
// ever said what it has.
func (s *server) diedUnknown(c *conn) {
	s.mu.Lock()
	unknown := s.conn == c && !s.known && !errors.Is(c.link.Err(), errStopped)
	if unknown {
		s.failed(c.link.Err())
	}
	s.mu.Unlock()
	if unknown {
		s.warn("%v", c.link.Err())
		s.set.retryLater(s)
	}
}

// publish makes fresh lists the server's part of the catalog.
func (s *server) publish(ctx context.Context, h *hello, lists map[catalog.Kind]listing) {
	if len(lists) < len(catalog.Kinds()) {
		s.set.Snapshot(ctx) // the other kinds may still have to come from the store
	}
	_, tools := lists[catalog.Tool]
	s.mu.Lock()
	next := blankCatalog(*s.spec())
	next.Known = s.known || tools
	next.Unread = s.catalog.Unread
	if !s.known && !s.listed {
		next.Unread = catalog.Kinds()
	}
	next.Unread = slices.DeleteFunc(slices.Clone(next.Unread), func(kind catalog.Kind) bool { _, fresh := lists[kind]; return fresh })
	h.describe(next)
	for _, kind := range catalog.Kinds() {
		items := s.catalog.Items(kind)
		if l, fresh := lists[kind]; fresh {
			items = l.items
		}
		next.SetItems(kind, override(*s.spec(), items))
	}
	var differ []catalog.Kind // from what sessions were told
	for kind, l := range lists {
		if s.unread[kind] != nil || s.listed && !sameItems(s.catalog.Items(kind), next.Items(kind)) {
			differ = append(differ, kind)
		}
		delete(s.unread, kind)
		if s.hosted != nil {
			s.elements[kind] = l.elements
		}
	}
	if len(s.unread) == 0 {
		s.misread, s.rereadAt = 0, time.Time{}
	}
	s.catalog, s.known, s.listed = next, next.Known, true
	if tools {
		s.stale, s.failures = false, 0
	}
	if tools && s.state == Unavailable && s.conn != nil {
		s.state, s.err = Ready, nil
	}
	s.tell()
	s.mu.Unlock()
	s.record()
	s.set.publish()
	if len(differ) > 0 && s.hosted != nil && s.set.options.Sessions != nil {
		s.set.options.Sessions.ListsChanged(s.id, differ)
	}
}

func sameItems(a, b []*catalog.Item) bool {
	return slices.EqualFunc(a, b, func(a, b *catalog.Item) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// tell wakes whoever waits for a list; it is called with the lock held.
func (s *server) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// keep stores what the server has, for later starts, once all of it was read.
func (s *server) keep() {
	s.mu.Lock()
	missing := len(s.unread) > 0 || s.viaHub // the hub keeps them
	key := s.key()
	rows := itemRows(key, s.catalog)
	s.mu.Unlock()
	if missing {
		return
	}
	s.set.save(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := tx.ReplaceItems(ctx, key, rows)
		return err
	})
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

// restore takes what the store knows of the server itself.
func (s *server) restore(row store.Server) {
	exact := row.Audience == s.audience()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered = true
	s.modern = row.Era == "modern"
	if exact && counts(row) {
		s.failures, s.next = row.Failures, row.NextAttemptAt
	}
	if row.ListedAt.IsZero() || s.known {
		return
	}
	h := &hello{capabilities: row.Capabilities, serverInfo: row.ServerInfo, instructions: row.Instructions}
	next := blankCatalog(*s.spec())
	next.Known, next.Unread = true, catalog.Kinds() // until its items are restored
	h.describe(next)
	s.catalog, s.known, s.stale = next, true, !exact
	s.from, s.generation = row.Key, row.Generation
}

// counts reports whether a failure that another process met is one for this
// process too. One that stays until somebody changes something was about that
// process's PATH and variables, except where a login is missing.
func counts(row store.Server) bool {
	return row.Failures == 0 || !row.NextAttemptAt.IsZero() || row.State == string(NeedsLogin)
}

// stored is where the store holds what the server offers, if it does and the
// server itself has said nothing newer.
func (s *server) stored() (store.Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from, s.known && !s.listed
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
	for _, kind := range catalog.Kinds() {
		next.SetItems(kind, nil)
	}
	byKind := map[catalog.Kind][]*catalog.Item{}
	for _, item := range items {
		kind := catalog.Kind(item.Kind)
		byKind[kind] = append(byKind[kind], catalog.New(catalog.Ref{Server: s.name, Kind: kind, Name: item.Name}, item.Raw, nil))
	}
	for kind, list := range byKind {
		next.SetItems(kind, override(*s.spec(), list))
	}
	// Of a list without items the store does not tell whether it was read.
	next.Unread = slices.DeleteFunc(catalog.Kinds(), func(kind catalog.Kind) bool { return len(byKind[kind]) > 0 })
	s.catalog = &next
}
