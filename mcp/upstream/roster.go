package upstream

import (
	"context"
	"slices"
	"sync"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
)

// roster is which servers a Set has at one moment, in order; it is never changed
// once the Set has it.
type roster struct {
	list []*server
	byID map[string]*server
}

func newRoster() *roster { return &roster{byID: map[string]*server{}} }

func (r *roster) add(s *server) {
	r.list = append(r.list, s)
	r.byID[s.id] = s
}

func (s *Set) servers() []*server { return s.roster.Load().list }

// server returns the server of that id, nil if there is none.
func (s *Set) server(id string) *server { return s.roster.Load().byID[id] }

// Apply makes the Set have these servers, in this order. A server whose
// connection is configured as before keeps it; one that changed or is gone is
// stopped, in the background, and its successor starts only after that.
func (s *Set) Apply(ctx context.Context, servers []config.Server) {
	s.applying.Lock()
	defer s.applying.Unlock()
	old := s.roster.Load()
	next := newRoster()
	var fresh []*server
	gone := slices.Clone(old.list)
	for _, spec := range servers {
		n := newServer(s, spec)
		if was := old.byID[spec.Name]; was != nil {
			if was.fingerprint == n.fingerprint && was.shared == n.shared {
				n = was
				gone = slices.DeleteFunc(gone, func(g *server) bool { return g == was })
				n.adjust(spec)
			} else {
				n.predecessor = was
			}
		}
		if n != old.byID[spec.Name] {
			fresh = append(fresh, n)
		}
		next.add(n)
	}
	s.restoreFresh(ctx, fresh)
	s.roster.Store(next)
	for _, server := range gone {
		server.retire()
	}
	s.publish()
	for _, server := range fresh {
		server.introduce()
	}
}

// adjust takes over what may change while the server runs.
func (s *server) adjust(spec config.Server) {
	s.settings.Store(&spec)
	s.mu.Lock()
	next := *s.catalog
	next.Prefix = blankCatalog(spec).Prefix
	bare := make([]*catalog.Item, len(next.Tools))
	for i, tool := range next.Tools {
		bare[i] = catalog.New(tool.Ref, tool.Raw, nil)
	}
	next.Tools = override(spec, bare)
	s.catalog = &next
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		if l, ok := c.link.(*hubLink); ok {
			l.adjust(timesOf(&spec))
		}
	}
	select {
	case s.adjusted <- struct{}{}:
	default: // it was going to look anyway
	}
}

// retire stops a server for good, in the background.
func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		if l, ok := c.link.(*hubLink); ok {
			l.leave()
		}
	}
	stop := func(ctx context.Context) {
		s.stop(context.WithoutCancel(ctx))
		s.log.close()
		close(s.gone)
	}
	if !s.set.spawn(stop) {
		// Close stops it with the others, or has done so.
		close(s.gone)
	}
}

// waitForPredecessor waits until the server whose place this one takes is gone.
func (s *server) waitForPredecessor(ctx context.Context) {
	if s.predecessor == nil {
		return
	}
	select {
	case <-s.predecessor.gone:
	case <-ctx.Done():
	}
}

// stopAll stops all servers at once and waits for them.
func (s *Set) stopAll(ctx context.Context) {
	var stops sync.WaitGroup
	for _, server := range s.servers() {
		stops.Go(func() { server.stop(ctx) })
	}
	stops.Wait()
}
