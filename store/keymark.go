package store

import (
	"context"
	"database/sql"
	"fmt"
)

// KeyMark says which key file a store goes with.
type KeyMark struct {
	// ID names the key; 0 where the store has not met a key yet.
	ID int64
	// Orphan is set when the key was there before the store was: the store that
	// it went with is gone.
	Orphan bool
}

const keyMarkQuery = `SELECT coalesce((SELECT value FROM state WHERE key = 'key'), 0),
	coalesce((SELECT value FROM state WHERE key = 'key_orphan'), 0)`

// KeyMark returns the mark, the zero value where there is none.
func (db *DB) KeyMark(ctx context.Context) (KeyMark, error) {
	if db == nil {
		return KeyMark{}, nil
	}
	return scanKeyMark(db.pool.QueryRowContext(ctx, keyMarkQuery))
}

// KeyMark is [DB.KeyMark] within the transaction.
func (tx *Tx) KeyMark(ctx context.Context) (KeyMark, error) {
	return scanKeyMark(tx.tx.QueryRowContext(ctx, keyMarkQuery))
}

// PutKeyMark replaces the mark.
func (tx *Tx) PutKeyMark(ctx context.Context, m KeyMark) error {
	_, err := tx.tx.ExecContext(ctx, "INSERT OR REPLACE INTO state VALUES ('key', ?), ('key_orphan', ?)", m.ID, m.Orphan)
	if err != nil {
		return fmt.Errorf("write mark of the key: %w", err)
	}
	return nil
}

func scanKeyMark(row *sql.Row) (m KeyMark, err error) {
	if err := row.Scan(&m.ID, &m.Orphan); err != nil {
		return KeyMark{}, fmt.Errorf("read mark of the key: %w", err)
	}
	return m, nil
}
