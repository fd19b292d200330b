package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

const (
	// renewEvery is how often a hub renews its lease.
	renewEvery = 2 * time.Second
	// firstVisit is the least time that a fresh hub waits for its first session.
	firstVisit = 5 * time.Second
	// lastWords is how long who asked a hub to stop may take to read that it has.
	lastWords = time.Second
	// storeWait is how long the store may take to write that a hub has ended.
	storeWait = 2 * time.Second
)

// Options say what a hub works with.
type Options struct {
	// Store is the shared store, in which the hub holds its lease and is found.
	Store *store.DB
	// DataDir is the folder under which the socket goes.
	DataDir string
	// Build names the version of this program.
	Build string
	// ID is the hub's id: the one that its Spawn was given, or a NewID.
	ID string
	// Open returns the Set of the hub, which Run closes. Its Options must have
	// no Session, and these Sessions.
	Open func(ctx context.Context, sessions upstream.Sessions) *upstream.Set
	// IdleTimeout is how long a server is kept that no session uses, and the hub
	// itself when there is no session at all. It is asked anew each time.
	IdleTimeout func() time.Duration
	// Stay keeps the hub, unlike its servers, without sessions too.
	Stay bool
	// MaxFrame is the largest message in bytes, wire.DefaultMaxFrame if 0.
	MaxFrame int
	// Log is told what happens; it must not block. May be nil.
	Log func(text string)
	Now func() time.Time
}

// Why a hub ends.
var (
	errStopped  = errors.New("it was told to stop")
	errIdle     = errors.New("nobody uses it any more")
	errReplaced = errors.New("another hub has taken its place, and its last session has ended")
)

// Run is the hub until ctx ends, it is told to stop, nobody has used it for the
// idle time, or another has taken its place and its last session has ended; in
// all these cases it returns nil. It then has stopped all servers and left
// nothing behind, neither goroutines nor files. The error is ErrTaken if another
// process is the hub, and otherwise tells why it cannot serve.
func Run(ctx context.Context, options Options) error {
	if !possible {
		return errPlatform
	}
	held, now, err := options.Store.Acquire(ctx, leaseName(options.Build), options.ID, leaseTime)
	switch {
	case err != nil:
		return fmt.Errorf("become the hub: %w", err)
	case !held:
		return fmt.Errorf("%w (id %s)", ErrTaken, now.Holder)
	}
	h := newHub(options)
	defer h.resign(ctx)
	if h.listener, err = listen(options.DataDir, options.ID); err != nil {
		return fmt.Errorf("become the hub: %w", err)
	}
	defer unlisten(h.listener)
	return h.serve(ctx)
}

// serve runs the hub at its socket.
func (h *hub) serve(ctx context.Context) error {
	socket := h.listener.Addr().String()
	h.row = store.Instance{
		ID: h.options.ID, Kind: Kind, Build: h.options.Build,
		Socket: socket, PID: os.Getpid(), StartedAt: h.since,
	}
	if err := h.options.Store.PutInstance(ctx, h.row); err != nil {
		return fmt.Errorf("become the hub: %w", err)
	}
	ending, end := context.WithCancelCause(ctx)
	defer end(nil)
	h.end = end
	// What is needed to end in order goes on after ctx.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h.sweep(ctx, filepath.Dir(socket))
	h.set = h.options.Open(background, h)
	renewing, lapse := context.WithCancel(background)
	defer lapse()
	var accepting, keeping, renewal, mourning sync.WaitGroup
	accepting.Go(func() { h.accept(background) })
	keeping.Go(func() { h.keep(ending) })
	renewal.Go(func() { h.renew(renewing) })
	mourning.Go(func() { h.mourn(ending) })
	h.log("serving instances")
	<-ending.Done()

	h.log(fmt.Sprintf("ending: %v", context.Cause(ending)))
	h.dismiss()
	h.set.Close(background)
	keeping.Wait()
	mourning.Wait()
	lapse()
	renewal.Wait()
	// From here on another hub may start servers.
	h.resign(ctx)
	unlisten(h.listener)
	accepting.Wait()
	h.farewell()
	return nil
}

// accept serves every connection until the listener is closed.
func (h *hub) accept(ctx context.Context) {
	for {
		conn, err := h.listener.AcceptUnix()
		switch {
		case err == nil:
			h.connections.Go(func() { h.attend(ctx, conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			h.log(fmt.Sprintf("accept a connection: %v", err))
			select {
			case <-time.After(100 * time.Millisecond): // until some files are closed
			case <-ctx.Done():
				return
			}
		}
	}
}

// renew keeps the lease. A hub that has lost it, since it could not renew it in
// time, takes no new sessions.
func (h *hub) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !h.renewed(ctx) {
			h.drain(ctx)
			return
		}
	}
}

// renewed reports whether this is still the hub.
func (h *hub) renewed(ctx context.Context) bool {
	held := true
	// Where the file was replaced this goes over to the new one, in which others
	// look for the hub.
	_, err := h.options.Store.DataVersion(ctx)
	if err == nil {
		err = h.options.Store.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if held, _, err = tx.Acquire(ctx, leaseName(h.options.Build), h.options.ID, leaseTime); err != nil || !held {
				return err
			}
			return tx.PutInstance(ctx, h.row)
		})
	}
	if err == nil {
		h.trouble = ""
		return held
	}
	if text := err.Error(); ctx.Err() == nil && text != h.trouble {
		h.trouble = text
		h.log("renew the lease: " + text)
	}
	return true // nobody else can take it either, or this learns it later
}

// resign gives up the lease and is found no more; a second time does nothing.
func (h *hub) resign(ctx context.Context) {
	h.resigned.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
		defer cancel()
		err := h.options.Store.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Release(ctx, leaseName(h.options.Build), h.options.ID); err != nil {
				return err
			}
			return tx.RemoveInstance(ctx, h.options.ID)
		})
		if err != nil {
			h.log(fmt.Sprintf("give up the lease: %v", err))
		}
	})
}

// sweep removes what hubs left that were killed, of other builds too. One whose
// processes have not ended stays registered with them: this hub may be killed
// before they have, and the next has to know them.
func (h *hub) sweep(ctx context.Context, folder string) {
	db := h.options.Store
	instances, err := db.Instances(ctx)
	if err != nil {
		h.log(err.Error())
	}
	processes, err := db.Processes(ctx)
	if err != nil {
		h.log(err.Error())
		instances = nil // nobody knows what they left
	}
	for _, instance := range instances {
		switch {
		case instance.Kind != Kind || instance.ID == h.options.ID || !deserted(ctx, instance.Socket):
		case h.orphans.add(processes, instance.ID):
			h.dead = append(h.dead, instance.ID)
		default:
			h.forget(ctx, instance.ID)
		}
	}
	// A socket can be younger than the registration of its hub, and still
	// younger than its being listened on.
	paths, err := oldSockets(folder, h.options.Now().Add(-leaseTime))
	if err != nil {
		h.log(err.Error())
	}
	for _, path := range paths {
		if deserted(ctx, path) {
			_ = os.Remove(path) // what is left harms nobody
		}
	}
}

// mourn forgets the dead hubs that sweep has left registered when all their
// processes have ended, or are not waited for any longer.
func (h *hub) mourn(ctx context.Context) {
	for server := range h.orphans.pids {
		if h.orphans.wait(ctx, server) != nil {
			return // the next hub does it
		}
	}
	for _, id := range h.dead {
		h.forget(ctx, id)
	}
}

// forget removes a dead hub and its processes from the store.
func (h *hub) forget(ctx context.Context, hubID string) {
	if err := h.options.Store.RemoveInstance(ctx, hubID); err != nil && ctx.Err() == nil {
		h.log(err.Error())
	}
}

// deserted reports whether nobody listens on a socket.
func deserted(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, knownPatience)
	defer cancel()
	conn, err := connect(ctx, path)
	if err == nil {
		_ = conn.Close() // nothing was said on it
	}
	return errors.Is(err, ErrGone)
}
