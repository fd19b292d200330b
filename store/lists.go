package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// keepLists is how many rendered replies are kept.
const keepLists = 64

// List returns the bytes last put under key, or nil when there are none (any
// more).
func (db *DB) List(ctx context.Context, key string) ([]byte, error) {
	if db == nil {
		return nil, nil
	}
	var body []byte
	err := db.pool.QueryRowContext(ctx, "SELECT body FROM lists WHERE key = ?", key).Scan(&body)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read list: %w", err)
	}
	return body, nil
}

// PutList is [Tx.PutList] in a transaction of its own.
func (db *DB) PutList(ctx context.Context, key string, body []byte) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutList(ctx, key, body) })
}

// PutList keeps body under key, in place of what was there. Of all keys the 64
// written last are kept.
func (tx *Tx) PutList(ctx context.Context, key string, body []byte) error {
	_, err := tx.tx.ExecContext(ctx, "INSERT OR REPLACE INTO lists (key, body, written_at) VALUES (?, ?, ?)", key, notNull(body), tx.now.UnixMilli())
	if err == nil {
		_, err = tx.tx.ExecContext(ctx, `DELETE FROM lists WHERE rowid <=
			(SELECT rowid FROM lists ORDER BY rowid DESC LIMIT 1 OFFSET ?)`, keepLists)
	}
	if err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}
