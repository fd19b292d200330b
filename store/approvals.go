package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Form is one form in which an item was seen. Times have milliseconds.
type Form struct {
	// Server, Kind and Name are the item.
	Server, Kind, Name string
	// Hash names the form among those of the item. It is the caller's.
	Hash string
	// RawHash is the hex SHA-256 of Raw.
	RawHash string
	// Raw is the form as it was first seen. Only FormRaw reads it.
	Raw json.RawMessage
	// Approved is false while the form is held.
	Approved bool
	// Who approved it, and when.
	Who       string
	DecidedAt time.Time
	// SeenAt is when it was first seen.
	SeenAt time.Time
}

// Block says that an item must not be used in any form.
type Block struct {
	Server, Kind, Name string
	Who                string
	At                 time.Time
}

// Baseline says that the first list of a kind was approved as a whole, if only
// an empty one.
type Baseline struct {
	Server, Kind string
	Who          string
	At           time.Time
}

// Approvals is what is stored of the approvals of one server or of all.
type Approvals struct {
	// Number differs after every change, by any process.
	Number int64
	// Confirmed is set by ConfirmApprovals.
	Confirmed bool
	// Forms are ordered by item and then by SeenAt, and have no Raw.
	Forms     []Form
	Blocks    []Block
	Baselines []Baseline
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Approvals returns what is stored of all servers, as of one moment.
func (db *DB) Approvals(ctx context.Context) (Approvals, error) {
	if db == nil {
		return Approvals{}, nil
	}
	tx, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Approvals{}, fmt.Errorf("read approvals: %w", err)
	}
	defer tx.Rollback()
	return readApprovals(ctx, tx, "")
}

// Approvals returns what is stored of one server.
func (tx *Tx) Approvals(ctx context.Context, server string) (Approvals, error) {
	return readApprovals(ctx, tx.tx, server)
}

// readApprovals reads what is stored of a server; "" stands for all.
func readApprovals(ctx context.Context, q querier, server string) (a Approvals, err error) {
	err = q.QueryRowContext(ctx, `SELECT (SELECT value FROM state WHERE key = 'approvals'),
		EXISTS (SELECT 1 FROM state WHERE key = 'approvals_confirmed')`).Scan(&a.Number, &a.Confirmed)
	if err == nil {
		a.Forms, err = readForms(ctx, q, server)
	}
	if err == nil {
		a.Blocks, err = read(ctx, q, "SELECT server, kind, name, who, at FROM blocks"+ofServer(server), server,
			func(rows *sql.Rows, b *Block) error {
				var at int64
				err := rows.Scan(&b.Server, &b.Kind, &b.Name, &b.Who, &at)
				b.At = instant(at)
				return err
			})
	}
	if err == nil {
		a.Baselines, err = read(ctx, q, "SELECT server, kind, who, at FROM baselines"+ofServer(server), server,
			func(rows *sql.Rows, b *Baseline) error {
				var at int64
				err := rows.Scan(&b.Server, &b.Kind, &b.Who, &at)
				b.At = instant(at)
				return err
			})
	}
	if err != nil {
		return Approvals{}, fmt.Errorf("read approvals: %w", err)
	}
	return a, nil
}

func readForms(ctx context.Context, q querier, server string) ([]Form, error) {
	return read(ctx, q, "SELECT server, kind, name, hash, raw_hash, approved, who, seen_at, decided_at FROM approvals"+
		ofServer(server)+" ORDER BY server, kind, name, seen_at, rowid", server,
		func(rows *sql.Rows, f *Form) error {
			var seen, decided int64
			err := rows.Scan(&f.Server, &f.Kind, &f.Name, &f.Hash, &f.RawHash, &f.Approved, &f.Who, &seen, &decided)
			f.SeenAt, f.DecidedAt = instant(seen), instant(decided)
			return err
		})
}

// ofServer is the condition of a query about one server; about all for "".
func ofServer(server string) string {
	if server == "" {
		return ""
	}
	return " WHERE server = ?"
}

// read runs a query made with ofServer.
func read[T any](ctx context.Context, q querier, query, server string, scan func(*sql.Rows, *T) error) ([]T, error) {
	var args []any
	if server != "" {
		args = append(args, server)
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

// ApprovalsNumber is the Number of [Approvals], without the rest. It is 0 on a
// nil DB only.
func (db *DB) ApprovalsNumber(ctx context.Context) (n int64, err error) {
	if db == nil {
		return 0, nil
	}
	if err := db.pool.QueryRowContext(ctx, "SELECT value FROM state WHERE key = 'approvals'").Scan(&n); err != nil {
		return 0, fmt.Errorf("read number of approvals: %w", err)
	}
	return n, nil
}

// FormRaw returns the Raw of a form, nil where there is no such form.
func (db *DB) FormRaw(ctx context.Context, f Form) (raw json.RawMessage, err error) {
	if db == nil {
		return nil, nil
	}
	err = db.pool.QueryRowContext(ctx, "SELECT raw FROM approvals WHERE server = ? AND kind = ? AND name = ? AND hash = ?",
		f.Server, f.Kind, f.Name, f.Hash).Scan((*[]byte)(&raw))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read form of %s: %w", f.Name, err)
	}
	return raw, nil
}

// PutForms writes forms. Of one that is there already, only Approved, Who and
// DecidedAt change.
func (tx *Tx) PutForms(ctx context.Context, forms ...Form) error {
	put, err := tx.tx.PrepareContext(ctx, `INSERT INTO approvals (server, kind, name, hash, raw_hash, approved, who, seen_at, decided_at, raw)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (server, kind, name, hash) DO UPDATE SET
		approved = excluded.approved, who = excluded.who, decided_at = excluded.decided_at`)
	if err != nil {
		return fmt.Errorf("write approvals: %w", err)
	}
	defer put.Close()
	for _, f := range forms {
		_, err := put.ExecContext(ctx, f.Server, f.Kind, f.Name, f.Hash, f.RawHash, f.Approved, f.Who, millis(f.SeenAt), millis(f.DecidedAt), notNull(f.Raw))
		if err != nil {
			return fmt.Errorf("write form of %s: %w", f.Name, err)
		}
	}
	return tx.approvalsChanged(ctx)
}

// DeleteForms forgets forms.
func (tx *Tx) DeleteForms(ctx context.Context, forms ...Form) error {
	for _, f := range forms {
		_, err := tx.tx.ExecContext(ctx, "DELETE FROM approvals WHERE server = ? AND kind = ? AND name = ? AND hash = ?", f.Server, f.Kind, f.Name, f.Hash)
		if err != nil {
			return fmt.Errorf("delete form of %s: %w", f.Name, err)
		}
	}
	return tx.approvalsChanged(ctx)
}

// PutBlock blocks an item. One that is blocked already stays as it is.
func (tx *Tx) PutBlock(ctx context.Context, b Block) error {
	_, err := tx.tx.ExecContext(ctx, "INSERT OR IGNORE INTO blocks (server, kind, name, who, at) VALUES (?, ?, ?, ?, ?)",
		b.Server, b.Kind, b.Name, b.Who, millis(b.At))
	if err != nil {
		return fmt.Errorf("block %s: %w", b.Name, err)
	}
	return tx.approvalsChanged(ctx)
}

// DeleteBlock takes a block away.
func (tx *Tx) DeleteBlock(ctx context.Context, b Block) error {
	_, err := tx.tx.ExecContext(ctx, "DELETE FROM blocks WHERE server = ? AND kind = ? AND name = ?", b.Server, b.Kind, b.Name)
	if err != nil {
		return fmt.Errorf("unblock %s: %w", b.Name, err)
	}
	return tx.approvalsChanged(ctx)
}

// PutBaselines marks lists as approved. What is marked already stays as it is.
func (tx *Tx) PutBaselines(ctx context.Context, baselines ...Baseline) error {
	for _, b := range baselines {
		_, err := tx.tx.ExecContext(ctx, "INSERT OR IGNORE INTO baselines (server, kind, who, at) VALUES (?, ?, ?, ?)", b.Server, b.Kind, b.Who, millis(b.At))
		if err != nil {
			return fmt.Errorf("write baseline of %s: %w", b.Server, err)
		}
	}
	return tx.approvalsChanged(ctx)
}

// ConfirmApprovals marks the approvals as good enough to start from, whatever
// was lost with an earlier store.
func (tx *Tx) ConfirmApprovals(ctx context.Context) error {
	if _, err := tx.tx.ExecContext(ctx, "INSERT OR REPLACE INTO state VALUES ('approvals_confirmed', 1)"); err != nil {
		return fmt.Errorf("confirm approvals: %w", err)
	}
	return tx.approvalsChanged(ctx)
}

func (tx *Tx) approvalsChanged(ctx context.Context) error {
	if _, err := tx.tx.ExecContext(ctx, "UPDATE state SET value = value + 1 WHERE key = 'approvals'"); err != nil {
		return fmt.Errorf("write number of approvals: %w", err)
	}
	return nil
}
