package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/hub"
	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

const (
	// presence is how often an instance says in the store that it is there.
	presence = 15 * time.Second
	// absence is how long an instance may say nothing before it is no longer shown.
	absence = 4 * presence
	// oblivion is how long it may say nothing before it is forgotten, and with it
	// the processes it has written down: after the machine slept, the first to
	// wake must not forget the others, who say that they are there again but not
	// what runs.
	oblivion = 10 * time.Minute
)

// share lets the hub run those servers of a session that may be shared, on a
// system that can have one.
func (a *app) share(o *upstream.Options, c *core, goos string) {
	c.instance = rand.Text()
	o.Instance = c.instance
	self := a.self()
	if !hubPossible(goos) {
		return
	}
	o.Shared = func(s config.Server) bool {
		shared, _ := c.cfg.Load().Shared(&s)
		return shared
	}
	c.joined = make(chan string, 1)
	o.Joined = func(id string) {
		select {
		case c.joined <- id:
		default: // another is waiting to be written; the same one, nearly always
		}
	}
	// The store is where it was at the start, whatever the file says since.
	first := c.cfg.Load()
	dialer := hub.NewDialer(hub.DialOptions{
		Store: c.openStore,
		Build: self.build,
		Spawn: func(_ context.Context, id string) (<-chan struct{}, error) { return a.spawnHub(first, id) },
		Now:   a.Now,
	})
	var said sync.Once
	o.Hub = func(ctx context.Context) (net.Conn, error) {
		socket, err := dialer.Dial(ctx)
		if errors.Is(err, hub.ErrNone) {
			if c.openStore() != nil { // else that was said
				said.Do(func() { a.warn(err.Error() + "; servers are not shared with other clients") })
			}
			return nil, nil
		}
		return socket, err
	}
}

// attend lists this process in the store while it serves the session.
func (a *app) attend(ctx context.Context, c *core, session *wire.Session, greeted <-chan struct{}) {
	select {
	case <-greeted:
	case <-ctx.Done():
		return
	}
	client := session.Client()
	row := store.Instance{
		ID: c.instance, Kind: clientKind, PID: os.Getpid(), Build: a.self().build, Mode: c.mode,
		Client: client.Name, ClientVersion: client.Version, StartedAt: a.Now(),
	}
	tick := time.NewTicker(presence)
	defer tick.Stop()
	for {
		// A presence that could not be written is written at the next tick.
		present := row
		_ = c.openStore().Later(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.PutInstance(ctx, present); err != nil {
				return err
			}
			_, err := tx.PruneInstances(ctx, oblivion)
			return err
		})
		select {
		case <-tick.C:
		case row.Hub = <-c.joined:
		case <-ctx.Done():
			_ = c.openStore().Later(func(ctx context.Context, tx *store.Tx) error { return tx.RemoveInstance(ctx, c.instance) })
			return
		}
	}
}
