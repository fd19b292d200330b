package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// State is what a server is doing; the words are part of the command line's
// contract.
type State string

// The states that a server in a Set can have.
const (
	Idle        State = "idle"        // not started, or ended; started when needed
	Starting    State = "starting"    // connecting
	Ready       State = "ready"       // connected
	NeedsLogin  State = "needs_login" // refused our credentials
	Unavailable State = "unavailable" // the last attempt to connect or list failed
)

// Time between attempts to reach a server of which nothing is known yet.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// A call tries at once, but not again and again.
	callGap      = 500 * time.Millisecond
	permanentGap = 25 * time.Second
)

// server is one configured upstream.
type server struct {
	set         *Set
	id          string // in the Set
	name        string // as configured
	settings    atomic.Pointer[config.Server]
	fingerprint string
	shared      bool   // its process serves all clients, if there is a hub
	hosted      *Entry // what to run for others; nil for a configured server
	log         *serverLog
	gone        chan struct{} // retired and stopped
	adjusted    chan struct{} // holds one: tend has to look again at what is due
	alone       atomic.Bool   // it could be shared, but there is no hub

	mu          sync.Mutex
	retired     bool
	state       State
	err         error
	conn        *conn
	hello       *hello
	started     time.Time
	attempt     *attempt
	failures    int
	attempted   time.Time
	next        time.Time // of an automatic attempt
	retrying    bool      // somebody waits for it
	lost        bool      // given up while it was in use; it is tried again
	viaHub      bool      // the last attempt to connect went to the hub
	catalog     *catalog.Server
	known       bool      // its lists were read once, now or in an earlier process
	listed      bool      // its lists were read by this process
	stale       bool      // what is known was learned for another audience
	from        store.Key // where the store holds what is known
	generation  int64     // of that
	level       string    // of log messages that sessions want
	users       int       // sessions of a hosted server
	dirty       map[catalog.Kind]bool
	refreshing  bool
	lastRead    time.Time                          // of lists
	listGap     time.Duration                      // to the next reading
	unread      map[catalog.Kind]error             // why a list could not be read
	misread     int                                // readings in a row that failed
	rereadAt    time.Time                          // when unread lists are asked for again, zero for not by itself
	news        chan struct{}                      // closed when a list was read or could not be
	elements    map[catalog.Kind][]json.RawMessage // lists of a hosted server as it gave them
	subscribers map[string]map[*wire.Session]bool  // by URI
	turns       map[string]chan struct{}           // by URI: closed when the server was told of it
	remembered  bool                               // the store knows of an attempt
	modern      bool                               // speaks only 2026-07-28

	settled     chan struct{} // lists were read, or could not be
	settledOnce func()
}

// attempt is one try to connect, shared by all who wait for it.
type attempt struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	conn   *conn
	err    error
}

func newServer(set *Set, spec config.Server) *server {
	s := &server{
		set: set, id: spec.Name, name: spec.Name, fingerprint: spec.Fingerprint(), state: Idle,
		log:         newServerLog(set.options.LogDir, spec.Name, set.options.Mask, set.options.Now),
		catalog:     blankCatalog(spec),
		gone:        make(chan struct{}),
		adjusted:    make(chan struct{}, 1),
		dirty:       map[catalog.Kind]bool{},
		unread:      map[catalog.Kind]error{},
		elements:    map[catalog.Kind][]json.RawMessage{},
		news:        make(chan struct{}),
		subscribers: map[string]map[*wire.Session]bool{},
		turns:       map[string]chan struct{}{},
		settled:     make(chan struct{}),
		level:       set.level(),
	}
	s.settings.Store(&spec)
	s.shared = set.options.Shared != nil && set.options.Shared(spec)
	s.settledOnce = sync.OnceFunc(func() { close(s.settled) })
	return s
}

// spec is the server's entry as it is now; its connection never changes.
func (s *server) spec() *config.Server { return s.settings.Load() }

func blankCatalog(spec config.Server) *catalog.Server {
	c := &catalog.Server{Name: spec.Name, Prefix: spec.Name}
	if spec.Alias != "" {
		c.Prefix = spec.Alias
	}
	return c
}

// connected returns the live connection and makes one where there is none. All
// callers share one attempt, which goes on when a caller gives up.
func (s *server) connected(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if s.conn != nil && s.conn.alive() {
		defer s.mu.Unlock()
		return s.conn, nil
	}
	a := s.attempt
	if a == nil {
		if err := s.tooSoon(); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		a = s.begin()
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tooSoon returns the last error where another attempt would tell nothing new.
func (s *server) tooSoon() error {
	if s.retired {
		return errRetired
	}
	if s.failures == 0 {
		return nil
	}
	gap := callGap
	if permanent(s.err) {
		gap = permanentGap
	}
	if s.set.options.Now().Sub(s.attempted) < gap {
		return s.err
	}
	return nil
}

// permanent reports whether an error stays until somebody changes something.
func permanent(err error) bool {
	var command *config.CommandError
	var reference *config.ReferenceError
	var protocol *protocolError
	return errors.As(err, &command) || errors.As(err, &reference) || errors.As(err, &protocol) ||
		errors.Is(err, errUnauthorized) || errors.Is(err, errRefusedForGood) || errors.Is(err, errModern) || errors.Is(err, errIsolation)
}

// begin starts an attempt; it is called with the lock held.
func (s *server) begin() *attempt {
	ctx, cancel := context.WithCancelCause(s.set.ctx)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	old := s.conn
	s.attempt, s.conn, s.state = a, nil, Starting
	s.attempted = s.set.options.Now()
	if !s.set.spawn(func(context.Context) { defer cancel(nil); s.try(ctx, a, old) }) {
		cancel(nil)
		s.attempt, s.state = nil, Idle
		a.err = errClosed
		close(a.done)
	}
	return a
}

// electionTime is how long it may take to find a hub, or to get one started.
const electionTime = 15 * time.Second

func (s *server) try(ctx context.Context, a *attempt, old *conn) {
	if old != nil {
		// There is never a second process beside one that is on its way out.
		_ = old.close(ctx)
	}
	s.waitForPredecessors(ctx)
	budget := s.spec().InitTimeout
	late := fmt.Errorf("not connected within %s (init_timeout)", budget)
	if s.shared && s.set.options.Hub != nil {
		budget += electionTime // and the hub tells more of a server that is late
	}
	startCtx, cancel := context.WithTimeoutCause(ctx, budget, late)
	var c *conn
	var h *hello
	err := context.Cause(startCtx) // it may be over before it was its turn
	if err == nil {
		c, h, err = s.open(startCtx)
	}
	cancel()
	if err == nil {
		s.announce(h)
	}
	s.mu.Lock()
	if err == nil && (ctx.Err() != nil || s.retired) {
		// Whoever stops the server has not seen this connection.
		s.mu.Unlock()
		err = errors.Join(errClosed, c.close(context.WithoutCancel(ctx)))
		c = nil
		s.mu.Lock()
	}
	s.attempt = nil
	a.conn, a.err = c, err
	switch {
	case err == nil:
		if told := c.told.Load(); told != nil {
			h = told
		}
		s.conn, s.hello, s.state, s.err, s.modern, s.lost = c, h, Ready, nil, false, false
		if s.known {
			s.failures = 0 // else when it has said what it has
		}
		s.started = s.set.options.Now()
		s.lastRead, s.rereadAt = time.Time{}, time.Time{} // what this connection offers is read at once
	case ctx.Err() != nil || s.retired:
		s.state = Idle // stopped, which says nothing about the server
	default:
		s.failed(err)
	}
	s.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		// Before anybody who waits goes on and perhaps closes the Set.
		s.warn("%v", err)
	}
	close(a.done)
	s.record()
	if err != nil {
		s.settledOnce()
		s.set.retryLater(s)
		return
	}
	s.set.spawn(func(ctx context.Context) { s.watch(ctx, c) })
	s.set.spawn(func(ctx context.Context) { s.tend(ctx, c) })
	s.refresh(catalog.Kinds()...)
	s.greet(ctx, c)
}

// failed records a failure; it is called with the lock held.
func (s *server) failed(err error) {
	s.failures++
	s.err = err
	s.state = Unavailable
	if errors.Is(err, errUnauthorized) {
		s.state = NeedsLogin
	}
	s.next = s.set.options.Now().Add(backoff(s.failures))
	if permanent(err) {
		s.next = time.Time{}
	}
}

// backoff is how long to wait after so many failures in a row, at least one.
func backoff(failures int) time.Duration {
	return min(firstBackoff<<min(failures-1, 16), maxBackoff)
}

// Reasons not to connect at all.
var (
	errIsolation = errors.New("isolation in a container is not supported in this version; remove isolation.enabled to run it without")
	errModern    = errors.New("the server speaks only protocol 2026-07-28, which is not supported in this version")
	errClosed    = errors.New("shutting down")
	errRetired   = errors.New("it was removed from the configuration, or configured anew")
)

// watch closes a connection that has died, with all that it left behind.
func (s *server) watch(ctx context.Context, c *conn) {
	select {
	case <-c.link.Done():
	case <-ctx.Done():
		return
	}
	c.failStarted()
	s.mu.Lock()
	if s.conn == c && s.state == Ready {
		s.state, s.err = Idle, c.link.Err()
	}
	s.mu.Unlock()
	_ = c.close(ctx)
	s.mu.Lock()
	retired := s.retired
	if _, hub := c.link.(*hubLink); hub && s.conn == c && s.attempt == nil && !retired && len(s.subscribers) > 0 && ctx.Err() == nil {
		s.begin() // somebody waits for updates
	}
	s.mu.Unlock()
	if !retired { // else its place may be another's
		s.record()
	}
}

// greet tells a fresh connection what sessions asked for before.
func (s *server) greet(ctx context.Context, c *conn) {
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	if level != "" {
		s.setLevel(ctx, c, level)
	}
	s.resubscribe(ctx, c)
}

func (s *server) setLevel(ctx context.Context, c *conn, level string) {
	s.mu.Lock()
	offered := s.hello != nil && s.hello.offers("logging")
	s.mu.Unlock()
	if !offered {
		return
	}
	params := append(append(json.RawMessage(`{"level":`), wire.Quote(level)...), '}')
	if _, err := c.request(ctx, nil, "logging/setLevel", params, s.spec().InitTimeout); err != nil {
		s.warn("logging/setLevel: %v", err)
	}
}

// listChanged implements observer.
func (s *server) listChanged(kind catalog.Kind) { s.refresh(kind) }

// stop ends the connection, without a new one until somebody needs it.
func (s *server) stop(ctx context.Context) {
	s.mu.Lock()
	c := s.conn
	if s.state == Ready {
		s.state = Idle
	}
	s.mu.Unlock()
	if c == nil {
		return
	}
	// It stays in its place as long as it takes, so that whoever needs a new one
	// waits for its end.
	_ = c.close(ctx)
	s.mu.Lock()
	if s.conn == c {
		s.conn = nil
	}
	s.mu.Unlock()
	s.record()
}
