package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Token is an agent token as it is kept: everything but its secret. Times have
// milliseconds and are zero for never.
type Token struct {
	// Name is unique.
	Name string
	// MAC stands for the secret, and KeyID names the key it was made with. No
	// two tokens have the same MAC.
	MAC   []byte
	KeyID int64
	// Servers are names, or "*" alone; none is no server.
	Servers []string
	// Tier is the highest tier of tools: "read", "write" or "destructive".
	Tier string
	// ProfilePin is the one profile it may be used with, "" for any.
	ProfilePin string
	// CreatedAt is when the token was made, IssuedAt its present secret.
	CreatedAt, IssuedAt time.Time
	ExpiresAt           time.Time
	RevokedAt           time.Time
	// UsedAt is when it was last used; only [Tx.TouchToken] writes it.
	UsedAt time.Time
}

const tokenColumns = "name, mac, key_id, servers, tier, profile_pin, created_at, issued_at, expires_at, revoked_at, used_at"

// Tokens returns all tokens ordered by name.
func (db *DB) Tokens(ctx context.Context) ([]Token, error) {
	if db == nil {
		return nil, nil
	}
	rows, err := db.pool.QueryContext(ctx, "SELECT "+tokenColumns+" FROM tokens ORDER BY name")
	var list []Token
	if err == nil {
		list, err = collect(rows, func(rows *sql.Rows, t *Token) error { return scanToken(rows, t) })
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return list, nil
}

// TokensVersion is a number that is another one after every change of tokens
// other than of UsedAt, by any process.
func (db *DB) TokensVersion(ctx context.Context) (int64, error) {
	if db == nil {
		return 0, nil
	}
	var n int64
	if err := db.pool.QueryRowContext(ctx, "SELECT value FROM state WHERE key = 'tokens'").Scan(&n); err != nil {
		return 0, fmt.Errorf("read version of tokens: %w", err)
	}
	return n, nil
}

// Token returns the token of a name; ok is false where there is none.
func (tx *Tx) Token(ctx context.Context, name string) (t Token, ok bool, err error) {
	err = scanToken(tx.tx.QueryRowContext(ctx, "SELECT "+tokenColumns+" FROM tokens WHERE name = ?", name), &t)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Token{}, false, nil
	case err != nil:
		return Token{}, false, fmt.Errorf("read token %s: %w", name, err)
	}
	return t, true, nil
}

// PutToken writes a token in place of what was kept under its name, except for
// UsedAt: that is never from then on if the MAC is another.
func (tx *Tx) PutToken(ctx context.Context, t Token) error {
	servers, err := json.Marshal(append([]string{}, t.Servers...))
	if err == nil {
		_, err = tx.tx.ExecContext(ctx, `INSERT INTO tokens
			(name, mac, key_id, servers, tier, profile_pin, created_at, issued_at, expires_at, revoked_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET key_id = excluded.key_id, servers = excluded.servers, tier = excluded.tier,
			profile_pin = excluded.profile_pin, created_at = excluded.created_at, issued_at = excluded.issued_at,
			expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
			used_at = iif(mac = excluded.mac, used_at, 0), mac = excluded.mac`,
			t.Name, notNull(t.MAC), t.KeyID, string(servers), t.Tier, t.ProfilePin,
			millis(t.CreatedAt), millis(t.IssuedAt), millis(t.ExpiresAt), millis(t.RevokedAt))
	}
	if err != nil {
		return fmt.Errorf("write token %s: %w", t.Name, err)
	}
	return nil
}

// DeleteToken forgets a token, if there is one of that name.
func (tx *Tx) DeleteToken(ctx context.Context, name string) error {
	if _, err := tx.tx.ExecContext(ctx, "DELETE FROM tokens WHERE name = ?", name); err != nil {
		return fmt.Errorf("delete token %s: %w", name, err)
	}
	return nil
}

// TouchToken records that the token of a MAC was used at a time, unless a later
// use is recorded.
func (tx *Tx) TouchToken(ctx context.Context, mac []byte, at time.Time) error {
	if _, err := tx.tx.ExecContext(ctx, "UPDATE tokens SET used_at = ? WHERE mac = ? AND used_at < ?", millis(at), mac, millis(at)); err != nil {
		return fmt.Errorf("write last use of a token: %w", err)
	}
	return nil
}

// scanToken reads the tokenColumns of a row.
func scanToken(row interface{ Scan(...any) error }, t *Token) error {
	var servers []byte
	var created, issued, expires, revoked, used int64
	err := row.Scan(&t.Name, &t.MAC, &t.KeyID, &servers, &t.Tier, &t.ProfilePin, &created, &issued, &expires, &revoked, &used)
	if err != nil {
		return err
	}
	t.CreatedAt, t.IssuedAt, t.ExpiresAt = instant(created), instant(issued), instant(expires)
	t.RevokedAt, t.UsedAt = instant(revoked), instant(used)
	return json.Unmarshal(servers, &t.Servers)
}
