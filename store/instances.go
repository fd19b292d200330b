package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Instance is a running mcpproxy. Times have milliseconds.
type Instance struct {
	// ID is its own and never used again.
	ID string
	// Kind is "client" or "hub".
	Kind string
	// Build is the version of its program, Mode the mode it serves.
	Build, Mode string
	// Client and ClientVersion are who started it, by the client's own words.
	Client, ClientVersion string
	// Socket is where it listens, "" where it does not.
	Socket string
	// Hub is the ID of the hub whose servers it uses, "" for none.
	Hub string
	// PID may be another process's by now. Whether an instance lives is told
	// by SeenAt.
	PID int
	// StartedAt is when it started.
	StartedAt time.Time
	// SeenAt is when it last put itself. PutInstance does not read it.
	SeenAt time.Time
}

// PutInstance is [Tx.PutInstance] in a transaction of its own.
func (db *DB) PutInstance(ctx context.Context, i Instance) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutInstance(ctx, i) })
}

// PutInstance records an instance, in place of what was recorded of it, as seen
// now.
func (tx *Tx) PutInstance(ctx context.Context, i Instance) error {
	_, err := tx.tx.ExecContext(ctx, `INSERT OR REPLACE INTO instances
		(id, kind, pid, build, mode, client, client_version, socket, hub, started_at, seen_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		i.ID, i.Kind, i.PID, i.Build, i.Mode, i.Client, i.ClientVersion, i.Socket, i.Hub, millis(i.StartedAt), millis(tx.now))
	if err != nil {
		return fmt.Errorf("write instance: %w", err)
	}
	return nil
}

// Instances returns all that are recorded, ordered by StartedAt and ID. Those
// that died without a word are among them until they are pruned.
func (db *DB) Instances(ctx context.Context) ([]Instance, error) {
	if db == nil {
		return nil, nil
	}
	rows, err := db.pool.QueryContext(ctx, `SELECT id, kind, pid, build, mode, client, client_version, socket, hub, started_at, seen_at
		FROM instances ORDER BY started_at, id`)
	var list []Instance
	if err == nil {
		list, err = collect(rows, func(rows *sql.Rows, i *Instance) error {
			var started, seen int64
			err := rows.Scan(&i.ID, &i.Kind, &i.PID, &i.Build, &i.Mode, &i.Client, &i.ClientVersion, &i.Socket, &i.Hub, &started, &seen)
			i.StartedAt, i.SeenAt = instant(started), instant(seen)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read instances: %w", err)
	}
	return list, nil
}

// RemoveInstance is [Tx.RemoveInstance] in a transaction of its own.
func (db *DB) RemoveInstance(ctx context.Context, id string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.RemoveInstance(ctx, id) })
}

// RemoveInstance forgets an instance and its processes.
func (tx *Tx) RemoveInstance(ctx context.Context, id string) error {
	_, err := tx.tx.ExecContext(ctx, "DELETE FROM processes WHERE instance = ?", id)
	if err == nil {
		_, err = tx.tx.ExecContext(ctx, "DELETE FROM instances WHERE id = ?", id)
	}
	if err != nil {
		return fmt.Errorf("remove instance: %w", err)
	}
	return nil
}

// PruneInstances is [Tx.PruneInstances] in a transaction of its own.
func (db *DB) PruneInstances(ctx context.Context, age time.Duration) (removed int, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		removed, err = tx.PruneInstances(ctx, age)
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// PruneInstances forgets instances that were not seen for longer than age, and
// every process of an instance that is not recorded, and returns how many
// instances it forgot. One that only slept is recorded again when it puts
// itself and its processes.
func (tx *Tx) PruneInstances(ctx context.Context, age time.Duration) (removed int, err error) {
	result, err := tx.tx.ExecContext(ctx, "DELETE FROM instances WHERE seen_at < ?", millis(tx.now.Add(-age)))
	if err == nil {
		_, err = tx.tx.ExecContext(ctx, "DELETE FROM processes WHERE instance NOT IN (SELECT id FROM instances)")
	}
	if err != nil {
		return 0, fmt.Errorf("prune instances: %w", err)
	}
	n, _ := result.RowsAffected() // SQLite always knows
	return int(n), nil
}
