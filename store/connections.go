package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Connection is how a configuration file says that a server is connected.
type Connection struct {
	// Config is the path of the file, Server the name of the server in it.
	Config, Server string
	// Fingerprint is the hash of all that the file says about the connection.
	Fingerprint string
	// Target tells a person what is started or called; it holds no secret.
	Target string
	// SeenAt is when it was first seen to be so, in milliseconds.
	SeenAt time.Time
}

// Connections returns what was last put of the servers of a file, ordered by
// name.
func (db *DB) Connections(ctx context.Context, config string) ([]Connection, error) {
	if db == nil {
		return nil, nil
	}
	return readConnections(ctx, db.pool, config)
}

// Connections is [DB.Connections] within the transaction.
func (tx *Tx) Connections(ctx context.Context, config string) ([]Connection, error) {
	return readConnections(ctx, tx.tx, config)
}

func readConnections(ctx context.Context, q querier, config string) (list []Connection, err error) {
	rows, err := q.QueryContext(ctx, "SELECT config, server, fingerprint, target, seen_at FROM connections WHERE config = ? ORDER BY server", config)
	if err == nil {
		list, err = collect(rows, func(rows *sql.Rows, c *Connection) error {
			var seen int64
			err := rows.Scan(&c.Config, &c.Server, &c.Fingerprint, &c.Target, &seen)
			c.SeenAt = instant(seen)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read connections: %w", err)
	}
	return list, nil
}

// PutConnection writes a connection, in place of what was put of that server of
// that file.
func (tx *Tx) PutConnection(ctx context.Context, c Connection) error {
	_, err := tx.tx.ExecContext(ctx, "INSERT OR REPLACE INTO connections (config, server, fingerprint, target, seen_at) VALUES (?, ?, ?, ?, ?)",
		c.Config, c.Server, c.Fingerprint, c.Target, millis(c.SeenAt))
	if err != nil {
		return fmt.Errorf("write connection of %s: %w", c.Server, err)
	}
	return nil
}
