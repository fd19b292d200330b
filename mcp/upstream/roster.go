package upstream

import (
	"context"
	"maps"
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
				was.mu.Lock()
				for uri, sessions := range was.subscribers {
					n.subscribers[uri] = maps.Clone(sessions)
				}
				was.mu.Unlock()
			}
		}
		if n != old.byID[spec.Name] {
			fresh = append(fresh, n)
		}
		next.add(n)
	}
	s.restoreFresh(ctx, fresh)
	s.leave(gone...)
	s.roster.Store(next)
	for _, server := range gone {
		server.retire()
	}
	s.publish()
	if !s.begun.Load() {
		return // what is announced to servers is not known yet
	}
	for _, server := range fresh {
		server.introduce()
		server.mu.Lock()
		if len(server.subscribers) > 0 && server.unconnected() {
			server.begin()
		}
		server.mu.Unlock()
	}
}

// leave notes that servers are on their way out; whoever takes their place waits
// for them.
func (s *Set) leave(servers ...*server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = append(s.leaving, servers...)
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
	s.look()
}

// retire stops a server for good, in the background.
func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	c, a := s.conn, s.attempt
	s.mu.Unlock()
	if c != nil {
		if l, ok := c.link.(*hubLink); ok {
			l.leave()
		}
	}
	stop := func(ctx context.Context) {
		if a != nil {
			a.cancel(errRetired)
			<-a.done
		}
		s.stop(context.WithoutCancel(ctx))
		s.log.close()
		close(s.gone)
		s.set.mu.Lock()
		defer s.set.mu.Unlock()
		s.set.leaving = slices.DeleteFunc(s.set.leaving, func(l *server) bool { return l == s })
	}
	if !s.set.spawn(stop) {
		stop(s.set.ctx) // the Set is being closed, and does not know it any more
	}
}

// waitForPredecessors waits until all servers whose place this one takes are
// gone.
func (s *server) waitForPredecessors(ctx context.Context) {
	for {
		s.set.mu.Lock()
		at := slices.IndexFunc(s.set.leaving, func(l *server) bool { return l.id == s.id && l != s })
		var before *server
		if at >= 0 {
			before = s.set.leaving[at]
		}
		s.set.mu.Unlock()
		if before == nil {
			return
		}
		select {
		case <-before.gone:
		case <-ctx.Done():
			return
		}
	}
}

// stopAll stops all servers at once and waits for them.
func (s *Set) stopAll(ctx context.Context) {
	var stops sync.WaitGroup
	for _, server := range s.servers() {
		stops.Go(func() { server.stop(ctx); server.resign() })
	}
	stops.Wait()
}
