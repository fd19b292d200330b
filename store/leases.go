package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Lease is the right to do what only one may do at a time.
type Lease struct {
	// Name says what the right is to.
	Name string
	// Holder is who has it: an instance's id.
	Holder string
	// ExpiresAt is when it ends unless it is renewed, in milliseconds. From
	// that instant on anybody may take it.
	ExpiresAt time.Time
}

// Acquire is [Tx.Acquire] in a transaction of its own. On a nil DB nobody holds
// anything, so held is false.
func (db *DB) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, now Lease, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		held, now, err = tx.Acquire(ctx, name, holder, ttl)
		return err
	})
	if err != nil {
		return false, Lease{}, err
	}
	return held, now, nil
}

// Acquire takes the lease for holder until ttl from now if it is free, has
// expired, or is the holder's already, which renews it. held tells whether it
// is the holder's now, and now is the lease as it stands, whoever has it. Time
// is the caller's clock: Options.Now.
func (tx *Tx) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, now Lease, err error) {
	now, err = scanLease(name, tx.tx.QueryRowContext(ctx, `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
		WHERE leases.holder = excluded.holder OR leases.expires_at <= ?
		RETURNING holder, expires_at`, name, holder, millis(tx.now.Add(ttl)), millis(tx.now)))
	if errors.Is(err, sql.ErrNoRows) {
		// Somebody else has it. The transaction keeps that true until it ends.
		now, err = scanLease(name, tx.tx.QueryRowContext(ctx, "SELECT holder, expires_at FROM leases WHERE name = ?", name))
	}
	if err != nil {
		return false, Lease{}, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	return now.Holder == holder, now, nil
}

// Succeed is [Tx.Succeed] in a transaction of its own.
func (db *DB) Succeed(ctx context.Context, name, from, to string, ttl time.Duration) (done bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		done, err = tx.Succeed(ctx, name, from, to, ttl)
		return err
	})
	return done && err == nil, err
}

// Succeed moves a lease, expired or not, from one holder to another, who has it
// until ttl from now: a hand-over, or a take-over from a holder known to be
// dead. It is false, and nothing changes, where from does not hold the lease.
func (tx *Tx) Succeed(ctx context.Context, name, from, to string, ttl time.Duration) (bool, error) {
	result, err := tx.tx.ExecContext(ctx, "UPDATE leases SET holder = ?, expires_at = ? WHERE name = ? AND holder = ?",
		to, millis(tx.now.Add(ttl)), name, from)
	if err != nil {
		return false, fmt.Errorf("move lease %s: %w", name, err)
	}
	n, _ := result.RowsAffected() // SQLite always knows
	return n > 0, nil
}

// Release is [Tx.Release] in a transaction of its own.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.Release(ctx, name, holder) })
}

// Release gives a lease up. Where holder does not have it, nothing changes.
func (tx *Tx) Release(ctx context.Context, name, holder string) error {
	if _, err := tx.tx.ExecContext(ctx, "DELETE FROM leases WHERE name = ? AND holder = ?", name, holder); err != nil {
		return fmt.Errorf("release lease %s: %w", name, err)
	}
	return nil
}

// Lease tells who holds a lease. It is the zero Lease if nobody does or the
// lease has expired.
func (db *DB) Lease(ctx context.Context, name string) (Lease, error) {
	if db == nil {
		return Lease{}, nil
	}
	l, err := scanLease(name, db.pool.QueryRowContext(ctx, "SELECT holder, expires_at FROM leases WHERE name = ? AND expires_at > ?",
		name, millis(db.now())))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Lease{}, nil
	case err != nil:
		return Lease{}, fmt.Errorf("read lease %s: %w", name, err)
	}
	return l, nil
}

func scanLease(name string, row *sql.Row) (Lease, error) {
	var expires int64
	l := Lease{Name: name}
	err := row.Scan(&l.Holder, &expires)
	l.ExpiresAt = instant(expires)
	return l, err
}
