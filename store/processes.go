package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Process is a server that runs.
type Process struct {
	// Instance is the ID of who started it.
	Instance string
	// ID is that instance's own name for it.
	ID string
	Key
	// PID is the process, 0 for a server that is none.
	PID int
	// Users is how many sessions use it.
	Users int
	// StartedAt has milliseconds.
	StartedAt time.Time
}

// PutProcess is [Tx.PutProcess] in a transaction of its own.
func (db *DB) PutProcess(ctx context.Context, p Process) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutProcess(ctx, p) })
}

// PutProcess records a process, in place of what its instance had recorded
// under the same ID.
func (tx *Tx) PutProcess(ctx context.Context, p Process) error {
	_, err := tx.tx.ExecContext(ctx, `INSERT OR REPLACE INTO processes (instance, id, name, fingerprint, audience, pid, users, started_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, p.Instance, p.ID, p.Name, p.Fingerprint, p.Audience, p.PID, p.Users, millis(p.StartedAt))
	if err != nil {
		return fmt.Errorf("write process of %s: %w", p.Name, err)
	}
	return nil
}

// RemoveProcess is [Tx.RemoveProcess] in a transaction of its own.
func (db *DB) RemoveProcess(ctx context.Context, instance, id string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.RemoveProcess(ctx, instance, id) })
}

// RemoveProcess forgets a process that has ended.
func (tx *Tx) RemoveProcess(ctx context.Context, instance, id string) error {
	_, err := tx.tx.ExecContext(ctx, "DELETE FROM processes WHERE instance = ? AND id = ?", instance, id)
	if err != nil {
		return fmt.Errorf("remove process %s: %w", id, err)
	}
	return nil
}

// Processes returns all that are recorded, ordered by key, instance and ID.
func (db *DB) Processes(ctx context.Context) ([]Process, error) {
	if db == nil {
		return nil, nil
	}
	rows, err := db.pool.QueryContext(ctx, `SELECT instance, id, name, fingerprint, audience, pid, users, started_at
		FROM processes ORDER BY name, fingerprint, audience, instance, id`)
	var list []Process
	if err == nil {
		list, err = collect(rows, func(rows *sql.Rows, p *Process) error {
			var started int64
			err := rows.Scan(&p.Instance, &p.ID, &p.Name, &p.Fingerprint, &p.Audience, &p.PID, &p.Users, &started)
			p.StartedAt = instant(started)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	return list, nil
}
