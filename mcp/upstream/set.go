package upstream

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// settleBudget is how long, in all, lists wait for servers that were never seen
// before.
const settleBudget = 2500 * time.Millisecond

// Options say what a Set is made of.
type Options struct {
	// Servers in the order of the configuration, without those that must not or
	// cannot run. Apply changes them.
	Servers []config.Server
	// Env resolves references.
	Env config.Env
	// Shared tells whether a server's process serves all clients, through the
	// hub; nil if none does.
	Shared func(config.Server) bool
	// Hub connects to the hub, which is started if there is none. It returns
	// neither a connection nor an error where no hub is possible; the server is
	// then private.
	Hub func(ctx context.Context) (net.Conn, error)
	// Joined is told the hub's id when a session with it has begun; may be nil. It
	// must not block.
	Joined func(hub string)
	// Instance names this process in the store; "" for one that is not listed
	// there.
	Instance string
	// Session is the client that a private Set works for; nil for a Set that
	// works for commands.
	Session *wire.Session
	// Store returns the shared store, nil where it cannot be used; it may
	// block while the store is being opened.
	Store func() *store.DB
	// LogDir takes one log file per server; "" for none.
	LogDir string
	// StartDir takes the files by which processes that start the same package for
	// the first time wait for each other; "" for none.
	StartDir string
	// Guard returns the command line of the guard process (RunGuard), asked when
	// it is started; nil for none.
	Guard func() []string
	// Version of this program, told to upstreams.
	Version string
	// MaxFrame is the largest message in bytes, wire.DefaultMaxFrame if 0.
	MaxFrame int
	// Mask takes secrets that are known by their form alone out of what servers
	// write and of what is said of them; nil takes none.
	Mask func(text string) string
	// Warn is told of what is wrong, once per text. It must not block.
	Warn func(text string)
	// Changed is called after the catalog has changed. It must not block.
	Changed func()
	// Sessions are those of hosted servers; nil for a Set that hosts none.
	Sessions Sessions
	Now      func() time.Time
}

// Set is one connection per configured server. Servers are started when they
// are needed; what they offer is known from the store before that.
type Set struct {
	options Options
	roster  atomic.Pointer[roster]
	spawner *spawner
	cold    *coldStarts
	guard   *guard

	ctx    context.Context
	cancel context.CancelCauseFunc

	loading    sync.Once
	begun      atomic.Bool   // loading is under way or done
	rows       chan struct{} // the store's rows are read
	stamp      string        // of what the rows say; set before rows is closed
	items      sync.Once
	assembling sync.Mutex
	snapshot   atomic.Pointer[catalog.Snapshot]
	changed    atomic.Bool // a server said what the store did not know at the start

	applying sync.Mutex // held by whoever changes the roster

	mu       sync.Mutex
	closed   bool
	leaving  []*server // retired and not gone yet
	tasks    sync.WaitGroup
	warned   map[string]bool
	deadline time.Time // of all Settle calls
	wanted   string    // log level
}

// Open returns a Set; nothing is started and the store is not waited for. ctx
// bounds the life of all that the Set starts, but only Close ends it in order.
func Open(ctx context.Context, options Options) *Set {
	s := &Set{
		options: options,
		rows:    make(chan struct{}), warned: map[string]bool{},
		spawner: newSpawner(),
		cold:    newColdStarts(options.StartDir),
	}
	s.guard = newGuard(options.Guard, options.Env.Environ, func(err error) { s.warn("%v; servers could outlive this process if it is killed", err) })
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	first := newRoster()
	for _, spec := range options.Servers {
		first.add(newServer(s, spec))
	}
	s.roster.Store(first)
	s.assemble()
	return s
}

// spawn runs a task that Close waits for; it reports false when the Set is
// closed.
func (s *Set) spawn(task func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		task(s.ctx)
	}()
	return true
}

// maxWarned is how many warnings are remembered.
const maxWarned = 1000

// warn reports each text once.
func (s *Set) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	known := slices.Concat(s.servers(), s.leaving)
	s.mu.Unlock()
	for _, server := range known {
		text = server.log.clean(text)
	}
	s.mu.Lock()
	said := s.warned[text] || s.closed
	if len(s.warned) > maxWarned {
		clear(s.warned) // better said twice than remembered for ever
	}
	s.warned[text] = true
	s.mu.Unlock()
	if !said && s.options.Warn != nil {
		s.options.Warn(text)
	}
}

// warn reports what is wrong with the server, also when the Set does not have it
// any more.
func (s *server) warn(format string, args ...any) {
	s.set.warn("server %s: %s", s.name, s.log.clean(fmt.Sprintf(format, args...)))
}

// save hands a write to the store's queue.
func (s *Set) save(op store.Op) {
	// A full queue means that a later start reads the lists again.
	_ = s.options.Store().Later(op)
}

// publish makes a new snapshot of what the servers offer now.
func (s *Set) publish() {
	s.changed.Store(true)
	s.assemble()
	if s.options.Changed != nil {
		s.options.Changed()
	}
}

func (s *Set) assemble() {
	s.assembling.Lock()
	defer s.assembling.Unlock()
	parts := make([]*catalog.Server, len(s.servers()))
	for i, server := range s.servers() {
		server.mu.Lock()
		parts[i] = server.catalog
		server.mu.Unlock()
	}
	s.snapshot.Store(catalog.NewSnapshot(parts))
}

// Snapshot returns what all servers offer; it waits for the store alone.
func (s *Set) Snapshot(ctx context.Context) *catalog.Snapshot {
	if s.await(ctx) {
		s.items.Do(func() { s.loadItems(s.ctx) })
	}
	return s.snapshot.Load()
}

// Loaded is Snapshot without waiting: what is known so far.
func (s *Set) Loaded() *catalog.Snapshot { return s.snapshot.Load() }

// Settle starts servers of which nothing is known and waits for those that were
// never tried before; all calls of Settle together wait at most 2.5 s. It
// returns early when ctx ends.
func (s *Set) Settle(ctx context.Context) {
	if !s.await(ctx) {
		return
	}
	s.mu.Lock()
	if s.deadline.IsZero() {
		s.deadline = time.Now().Add(settleBudget)
	}
	budget := time.NewTimer(time.Until(s.deadline))
	s.mu.Unlock()
	defer budget.Stop()
	var waitFor []*server
	for _, server := range s.servers() {
		if server.introduce() {
			waitFor = append(waitFor, server)
		}
	}
	for _, server := range waitFor {
		select {
		case <-server.settled:
		case <-budget.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close stops all servers, at most 4 s for all together, and waits for all that
// the Set has started.
func (s *Set) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errClosed)
	s.stopAll(context.WithoutCancel(ctx))
	// A task may be telling a client that does not read that its call has ended.
	waitAtMost(&s.tasks, eofGrace+termGrace+killGrace)
	for _, server := range s.servers() {
		server.log.close()
	}
	s.guard.close()
	s.spawner.close()
}
