package catalog

import (
	"sync"
)

// Server is what one upstream offers. The slices keep the upstream's order.
type Server struct {
	Name string
	// Prefix stands in front of public names: the server's alias or its name.
	Prefix string
	// Known is false until its lists were read once, now or in an earlier
	// process.
	Known bool
	// Unread are the kinds of which no list was ever read, though others were:
	// that they have no items says nothing.
	Unread []Kind
	// About is what it says of itself: title, description, instructions. It is text
	// of a stranger.
	About string
	// Completions tells whether it announced the completions capability.
	Completions bool
	// Resources tells whether it announced the resources capability, and with
	// it that URIs may be read that it does not list.
	HasResources bool

	Tools     []*Item
	Resources []*Item
	Templates []*Item
	Prompts   []*Item
}

// Items returns the items of a kind.
func (s *Server) Items(k Kind) []*Item {
	switch k {
	case Tool:
		return s.Tools
	case Resource:
		return s.Resources
	case Template:
		return s.Templates
	}
	return s.Prompts
}

// SetItems replaces the items of a kind; only for a Server that is not yet
// part of a Snapshot.
func (s *Server) SetItems(k Kind, items []*Item) {
	switch k {
	case Tool:
		s.Tools = items
	case Resource:
		s.Resources = items
	case Template:
		s.Templates = items
	default:
		s.Prompts = items
	}
}

// Snapshot is what all servers offer at one moment, in the order of the
// configuration. It is never changed after NewSnapshot.
type Snapshot struct {
	servers []*Server

	mu    sync.Mutex
	names map[nameKey]*Names
}

type nameKey struct {
	kind Kind
	max  int
}

// NewSnapshot takes the servers over.
func NewSnapshot(servers []*Server) *Snapshot {
	return &Snapshot{servers: servers, names: map[nameKey]*Names{}}
}

// Servers are in the order of the configuration.
func (s *Snapshot) Servers() []*Server { return s.servers }

// Server returns the server of that name, nil if there is none.
func (s *Snapshot) Server(name string) *Server {
	for _, server := range s.servers {
		if server.Name == name {
			return server
		}
	}
	return nil
}

// Names returns the public names of tools or prompts of at most max bytes;
// they are computed once per Snapshot.
func (s *Snapshot) Names(kind Kind, max int) *Names {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := nameKey{kind, max}
	if s.names[key] == nil {
		s.names[key] = newNames(s.servers, kind, max)
	}
	return s.names[key]
}
