package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
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
	// absence is how long an instance may say nothing before it is forgotten.
	absence = 4 * presence
)

// share lets the hub run those servers of a session that may be shared.
func (a *app) share(o *upstream.Options, c *core) {
	c.instance = rand.Text()
	o.Instance = c.instance
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
	dialer := hub.NewDialer(hub.DialOptions{
		Store: c.openStore,
		Build: a.dialect(),
		Spawn: func(_ context.Context, id string) error { return a.spawnHub(c.cfg.Load(), id) },
		Now:   a.Now,
	})
	o.Hub = func(ctx context.Context) (net.Conn, error) {
		socket, err := dialer.Dial(ctx)
		if errors.Is(err, hub.ErrNone) {
			a.warn(err.Error() + "; servers are not shared with other clients")
			return nil, nil
		}
		return socket, err
	}
}

// dialect names what a hub and its instances have to have in common: the build.
func (a *app) dialect() string {
	b := buildOf()
	name := b.Version + " " + b.Commit
	if info, err := os.Stat(a.Executable); err == nil && (b.Modified || b.Commit == "") {
		name += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return name
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
		ID: c.instance, Kind: clientKind, PID: os.Getpid(), Build: a.dialect(), Mode: modeDirect,
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
			_, err := tx.PruneInstances(ctx, absence)
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
