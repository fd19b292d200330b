package policy

import (
	"context"
	"fmt"

	"mcpproxy/store"
)

// ConnectionChange is a server that is configured to be connected in another way
// than it was.
type ConnectionChange struct {
	Server string
	// Was and Is tell a person what was and is started or called. They are
	// equal where the change is in what they do not show.
	Was, Is string
}

// String is the change in words.
func (c ConnectionChange) String() string {
	if c.Was == c.Is {
		return fmt.Sprintf("server %s: its environment, headers or settings of the connection have changed; it still is %s", c.Server, c.Is)
	}
	return fmt.Sprintf("server %s: it was %s and is now %s", c.Server, c.Was, c.Is)
}

// Connections records how the servers of a configuration file are connected, and
// returns those that this file connected in another way before. Of several
// processes that see a change, one is told. A server that is seen for the first
// time is no change. Without a store there is nothing to compare with, and no
// error.
func (a *Approvals) Connections(ctx context.Context, config string, now []store.Connection) (changes []ConnectionChange, err error) {
	db := a.options.Store()
	if db == nil {
		return nil, nil
	}
	stored, err := db.Connections(ctx, config)
	if err != nil {
		return nil, err
	}
	if put, _ := a.compare(stored, config, now); len(put) == 0 {
		return nil, nil
	}
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		stored, err := tx.Connections(ctx, config)
		if err != nil {
			return err
		}
		var put []store.Connection
		put, changes = a.compare(stored, config, now)
		for _, c := range put {
			if err := tx.PutConnection(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// compare returns what is not stored yet, and what of it is a change.
func (a *Approvals) compare(stored []store.Connection, config string, now []store.Connection) (put []store.Connection, changes []ConnectionChange) {
	before := map[string]store.Connection{}
	for _, c := range stored {
		before[c.Server] = c
	}
	for _, c := range now {
		was, known := before[c.Server]
		if known && was.Fingerprint == c.Fingerprint {
			continue
		}
		c.Config, c.SeenAt = config, a.options.Now()
		put = append(put, c)
		if known {
			changes = append(changes, ConnectionChange{Server: c.Server, Was: was.Target, Is: c.Target})
		}
	}
	return put, changes
}
