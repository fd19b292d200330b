package hub

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

// phase is how far a hub has come.
type phase int

const (
	serving  phase = iota
	draining       // another is the hub; sessions go on, and no new ones come
	ending         // servers are being stopped
)

// hub is a running hub: its connections and the processes they share.
type hub struct {
	options  Options
	naming   naming
	since    time.Time
	listener *net.UnixListener
	row      store.Instance
	set      *upstream.Set
	end      context.CancelCauseFunc
	orphans  orphans
	dead     []string // hubs that are registered until their processes have ended
	trouble  string   // why the lease was not renewed the last time

	resigned    sync.Once
	connections sync.WaitGroup
	stopped     chan struct{} // all servers are
	nudge       chan struct{} // something is to be reviewed

	mu        sync.Mutex
	phase     phase
	over      bool // every connection is to end
	clients   map[*client]bool
	processes map[string]*process
	sessions  int
	visited   bool      // there was a session
	deserted  time.Time // since when there is no session
}

// process is a server's process, or its place, from its first session until it
// is dropped.
type process struct {
	id, name string
	sessions map[*client]bool
	hosted   bool      // the Set has it, and can be told of it
	counted  int       // the number of sessions that the Set knows of
	unused   time.Time // since when there is no session
	discard  bool      // when unused, it is not kept
	asked    string    // log level that the Set knows of
	dropping bool
	gone     chan struct{} // closed when it is dropped
}

func newHub(options Options) *hub {
	return &hub{
		options: options, naming: newNaming(), since: options.Now(), deserted: options.Now(),
		stopped: make(chan struct{}), nudge: make(chan struct{}, 1),
		clients: map[*client]bool{}, processes: map[string]*process{},
		orphans: orphans{pids: map[string][]int{}, until: options.Now().Add(orphanWait), now: options.Now},
	}
}

func (h *hub) log(text string) {
	if h.options.Log != nil {
		h.options.Log(text)
	}
}

// accepting reports whether sessions can begin.
func (h *hub) accepting() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phase == serving
}

// look has the keeper review what has changed.
func (h *hub) look() {
	select {
	case h.nudge <- struct{}{}:
	default: // it is going to look anyway
	}
}

// replacedWait is how long a session waits for the end of a process that the one
// it needs replaces: a Set takes less to stop one.
const replacedWait = 5 * time.Second

// join makes a client a user of the process for an entry. It waits for the end
// of one that is being dropped, or that a dead hub left, so that there are never
// two; of one with another entry it does so only if that has been replaced.
func (h *hub) join(ctx context.Context, c *client, entry upstream.Entry) (*process, error) {
	if err := h.orphans.wait(ctx, entry.Name); err != nil {
		return nil, err
	}
	id := h.naming.id(entry)
	patience := time.NewTimer(replacedWait)
	defer patience.Stop()
	for patient := true; ; {
		p, gone := h.admit(c, id, entry.Name, patient)
		switch {
		case p != nil:
			return p, nil
		case gone == nil:
			return nil, errEnding
		}
		select {
		case <-gone:
		case <-patience.C:
			patient = false
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// admit is join without waiting; it returns what to wait for, nil where no
// session can begin any more. Unless it is patient what was replaced is not
// waited for.
func (h *hub) admit(c *client, id, name string, patient bool) (p *process, gone <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != serving || !h.clients[c] {
		return nil, nil
	}
	for _, other := range h.processes {
		if patient && other.name == name && other.id != id && other.replaced() {
			return nil, other.gone
		}
	}
	p = h.processes[id]
	if p == nil {
		p = &process{id: id, name: name, sessions: map[*client]bool{}, gone: make(chan struct{})}
		h.processes[id] = p
	}
	if p.dropping {
		return nil, p.gone
	}
	p.sessions[c] = true
	p.discard = false
	h.sessions++
	h.visited = true
	return p, nil
}

// replaced reports whether a process is on its way out since no instance has its
// entry any more: also where the hub has yet to hear that its last sessions have
// ended. It is called with the hub's lock held.
func (p *process) replaced() bool {
	for c := range p.sessions {
		if !c.replaced.Load() {
			return false
		}
	}
	return p.discard || len(p.sessions) > 0
}

// hosted has the Set told of a process that it knows now.
func (h *hub) hosted(p *process) {
	h.mu.Lock()
	p.hosted = true
	h.mu.Unlock()
	h.look()
}

// part ends a client's use of a process.
func (h *hub) part(c *client, p *process, discard bool) {
	defer h.retime(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !p.sessions[c] {
		return
	}
	delete(p.sessions, c)
	h.sessions--
	if now := h.options.Now(); len(p.sessions) == 0 {
		p.unused, p.discard = now, discard
		if h.sessions == 0 {
			h.deserted = now
		}
	}
	h.look()
}

// ListsChanged implements upstream.Sessions: each is told once per kind of list.
func (h *hub) ListsChanged(id string, kinds []catalog.Kind) {
	methods := map[string]bool{}
	for _, kind := range kinds {
		methods[kind.ChangedMethod()] = true // two kinds have the same
	}
	for method := range methods {
		h.tell(id, method, nil)
	}
}

// HelloChanged implements upstream.Sessions.
func (h *hub) HelloChanged(id string, result json.RawMessage) {
	h.tell(id, upstream.MethodHello, result)
}

// tell notifies the sessions of a process, also those that only begin.
func (h *hub) tell(id, method string, params json.RawMessage) {
	h.mu.Lock()
	var told []*client
	if p := h.processes[id]; p != nil {
		told = slices.Collect(maps.Keys(p.sessions))
	}
	h.mu.Unlock()
	for _, c := range told {
		c.session.Notify(method, params)
	}
}

// drain leaves new sessions to another hub.
func (h *hub) drain(ctx context.Context) {
	h.log("another hub has taken over; this one goes on for its sessions")
	h.mu.Lock()
	if h.phase == serving {
		h.phase = draining
	}
	h.mu.Unlock()
	unlisten(h.listener)
	h.resign(ctx)
	h.look()
}

// errDismissed is what sessions are ended with.
var errDismissed = errors.New("the hub has ended")

// dismiss ends all sessions; who waits for the hub to stop stays.
func (h *hub) dismiss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = ending
	for c := range h.clients {
		if !c.stopping {
			c.cancel(errDismissed)
		}
	}
}

// farewell tells those who asked for the end that it has come, and ends all
// connections.
func (h *hub) farewell() {
	close(h.stopped)
	h.mu.Lock()
	h.over = true
	for c := range h.clients {
		if !c.stopping {
			c.cancel(errDismissed)
		}
	}
	h.mu.Unlock()
	late := time.AfterFunc(lastWords, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for c := range h.clients {
			c.cancel(errDismissed)
		}
	})
	defer late.Stop()
	h.connections.Wait()
}
