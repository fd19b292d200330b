package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"mcpproxy/store"
)

const (
	// leaseTime is how long the lease of a hub lasts without being renewed.
	leaseTime = 6 * time.Second
	// pollEvery is how often a Dialer that waits for a hub looks whether the
	// store has changed.
	pollEvery = 15 * time.Millisecond
	// endingPoll is how long a Dialer waits until it looks again at a hub that
	// was found unusable.
	endingPoll = 100 * time.Millisecond
	// wakingPatience is how long a hub whose lease has expired may take to answer
	// before it is replaced.
	wakingPatience = 300 * time.Millisecond
	// knownPatience is how long a hub that served us before may take to answer
	// until the store is asked for another.
	knownPatience = 300 * time.Millisecond
	// maxStarted is how many hubs one Dial has started before it gives up: some
	// may be killed while they are waited for.
	maxStarted = 4
)

// DialOptions say how a hub is found.
type DialOptions struct {
	// Store returns the shared store, nil where it cannot be used; it may block
	// while the store is being opened.
	Store func() *store.DB
	// Build names the version of this program; hubs of others are not used.
	Build string
	// Spawn starts a hub of that id (Run's Options.ID), detached, and does not
	// wait for it; ended is closed when that process has ended, if ever.
	Spawn func(ctx context.Context, hubID string) (ended <-chan struct{}, err error)
	// Now is the clock of the leases.
	Now func() time.Time
}

// Dialer finds the hub for one instance. Its methods may be called from several
// goroutines.
type Dialer struct {
	options DialOptions
	turn    chan struct{} // holds one: who searches, so that the others find what it found

	mu       sync.Mutex
	socket   string // of the hub that was found last
	failure  error
	failedAt time.Time
}

// NewDialer returns a Dialer; it does nothing until Dial.
func NewDialer(options DialOptions) *Dialer {
	return &Dialer{options: options, turn: make(chan struct{}, 1)}
}

// Dial returns a new connection to the hub of this build; where there is none it
// has one started, by one process only, and waits for it until ctx ends. The
// hub has answered on the connection, on which hub/open can be sent.
//
// The error wraps ErrNone where no hub can be had: the store or the system does
// not allow one, or it could not be started. Otherwise it is the cause of ctx.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	if !possible {
		return nil, none(errPlatform)
	}
	asked := d.options.Now()
	if conn := d.again(ctx); conn != nil {
		return conn, nil
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the hub: %w", context.Cause(ctx))
	}
	if err := d.failedSince(asked); err != nil {
		return nil, err
	}
	if conn := d.again(ctx); conn != nil {
		return conn, nil
	}
	db := d.options.Store()
	if db == nil {
		return nil, none(errors.New("the store cannot be used"))
	}
	e := election{options: d.options, db: db, lease: leaseName(d.options.Build)}
	conn, err := e.run(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if errors.Is(err, ErrNone) {
			d.failure, d.failedAt = err, d.options.Now()
		}
		return nil, err
	}
	d.socket = conn.RemoteAddr().String()
	return conn, nil
}

// again connects to the hub that was found last; nil if that does not work at
// once.
func (d *Dialer) again(ctx context.Context) net.Conn {
	d.mu.Lock()
	socket := d.socket
	d.mu.Unlock()
	if socket == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, knownPatience)
	defer cancel()
	conn, err := Connect(ctx, socket)
	if err == nil {
		return conn
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.socket == socket {
		d.socket = ""
	}
	return nil
}

// failedSince is the failure of a search that ended after asked: a new one would
// end the same way.
func (d *Dialer) failedSince(asked time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil && !d.failedAt.Before(asked) {
		return d.failure
	}
	return nil
}

func none(reason error) error { return fmt.Errorf("%w: %w", ErrNone, reason) }

// Find returns the hub of a build as it is registered, if there is one. It may be
// dead, or ending.
func Find(ctx context.Context, db *store.DB, build string) (hub store.Instance, found bool, err error) {
	_, hub, err = incumbent(ctx, db, build)
	return hub, err == nil && hub.ID != "", err
}

// incumbent returns the lease of the hub of a build and the hub that it leads
// to: its holder or, where it has none, the hub that was there last, which may
// only have slept for too long. Both can be zero.
func incumbent(ctx context.Context, db *store.DB, build string) (store.Lease, store.Instance, error) {
	lease, err := db.Lease(ctx, leaseName(build))
	if err != nil {
		return store.Lease{}, store.Instance{}, err
	}
	all, err := db.Instances(ctx)
	if err != nil {
		return store.Lease{}, store.Instance{}, err
	}
	var hub store.Instance
	for _, instance := range all {
		if instance.Kind == Kind && instance.Build == build && (lease.Holder == "" || lease.Holder == instance.ID) {
			hub = instance
		}
	}
	return lease, hub, nil
}
