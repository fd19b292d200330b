package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Key names what is known of one server under one configuration and one
// audience.
type Key struct {
	// Name is the server's configured name.
	Name string
	// Fingerprint is the hash of its configuration.
	Fingerprint string
	// Audience is what was announced to it: sorted capability names with commas
	// between them, or "".
	Audience string
}

// Counts are the numbers of stored items of the kinds "tool", "resource",
// "template" and "prompt".
type Counts struct{ Tools, Resources, Templates, Prompts int }

// Server is what is known of a server. Times have milliseconds; a zero time
// means never.
type Server struct {
	Key
	// State is a word of the caller's.
	State string
	// LastError is the text of the last failure, "" when there is none.
	LastError string
	// Protocol is the negotiated protocol version, Era the caller's word for
	// its family.
	Protocol, Era string
	// Capabilities and ServerInfo are raw JSON of the initialize reply, or nil.
	Capabilities, ServerInfo json.RawMessage
	// Instructions is the text of the initialize reply.
	Instructions string
	// Counts and Generation are set by ReplaceItems. Generation is the value of
	// DB.Generation at the last change of this server's items, 0 before the
	// first.
	Counts     Counts
	Generation int64
	// AttemptedAt is the last attempt to connect, ConnectedAt the last that
	// succeeded.
	AttemptedAt, ConnectedAt time.Time
	// ListedAt is when the items were last found to be as stored.
	ListedAt time.Time
	// Failures counts the attempts that failed since the last success.
	Failures int
	// NextAttemptAt is when the next attempt is due.
	NextAttemptAt time.Time
	// RestartWantedAt is set by RequestRestart and never cleared: a restart is
	// due while it is later than the last start.
	RestartWantedAt time.Time
}

// Servers returns all that is known, ordered by name, fingerprint and audience.
// Rows of servers that are no longer configured, or are configured otherwise,
// are among them.
func (db *DB) Servers(ctx context.Context) ([]Server, error) {
	if db == nil {
		return nil, nil
	}
	rows, err := db.pool.QueryContext(ctx, `SELECT name, fingerprint, audience, state, last_error, protocol, era,
		capabilities, server_info, instructions, tools, resources, templates, prompts, generation,
		attempted_at, connected_at, listed_at, failures, next_attempt_at, restart_wanted_at
		FROM servers ORDER BY name, fingerprint, audience`)
	var list []Server
	if err == nil {
		list, err = collect(rows, scanServer)
	}
	if err != nil {
		return nil, fmt.Errorf("read servers: %w", err)
	}
	return list, nil
}

func scanServer(rows *sql.Rows, s *Server) error {
	var attempted, connected, listed, next, restart int64
	err := rows.Scan(&s.Name, &s.Fingerprint, &s.Audience, &s.State, &s.LastError, &s.Protocol, &s.Era,
		(*[]byte)(&s.Capabilities), (*[]byte)(&s.ServerInfo), &s.Instructions,
		&s.Counts.Tools, &s.Counts.Resources, &s.Counts.Templates, &s.Counts.Prompts, &s.Generation,
		&attempted, &connected, &listed, &s.Failures, &next, &restart)
	s.AttemptedAt, s.ConnectedAt, s.ListedAt = instant(attempted), instant(connected), instant(listed)
	s.NextAttemptAt, s.RestartWantedAt = instant(next), instant(restart)
	return err
}

// PutServer is [Tx.PutServer] in a transaction of its own.
func (db *DB) PutServer(ctx context.Context, s Server) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutServer(ctx, s) })
}

// PutServer records the facts of a connection or of a failed attempt. Counts,
// Generation and RestartWantedAt are not among them. What is only known from a
// connection (Protocol, Era, Capabilities, ServerInfo, Instructions and
// ConnectedAt) stays as stored when ConnectedAt is zero; so do AttemptedAt and
// ListedAt when they are zero.
func (tx *Tx) PutServer(ctx context.Context, s Server) error {
	_, err := tx.tx.ExecContext(ctx, `INSERT INTO servers (name, fingerprint, audience, state, last_error, protocol, era,
		capabilities, server_info, instructions, attempted_at, connected_at, listed_at, failures, next_attempt_at, touched_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name, fingerprint, audience) DO UPDATE SET
		state = excluded.state, last_error = excluded.last_error, failures = excluded.failures,
		next_attempt_at = excluded.next_attempt_at, touched_at = excluded.touched_at,
		attempted_at = coalesce(nullif(excluded.attempted_at, 0), attempted_at),
		listed_at = coalesce(nullif(excluded.listed_at, 0), listed_at),
		connected_at = iif(excluded.connected_at <> 0, excluded.connected_at, connected_at),
		protocol = iif(excluded.connected_at <> 0, excluded.protocol, protocol),
		era = iif(excluded.connected_at <> 0, excluded.era, era),
		capabilities = iif(excluded.connected_at <> 0, excluded.capabilities, capabilities),
		server_info = iif(excluded.connected_at <> 0, excluded.server_info, server_info),
		instructions = iif(excluded.connected_at <> 0, excluded.instructions, instructions)`,
		s.Name, s.Fingerprint, s.Audience, s.State, s.LastError, s.Protocol, s.Era,
		[]byte(s.Capabilities), []byte(s.ServerInfo), s.Instructions,
		millis(s.AttemptedAt), millis(s.ConnectedAt), millis(s.ListedAt), s.Failures, millis(s.NextAttemptAt), tx.now.UnixMilli())
	if err != nil {
		return fmt.Errorf("write server %s: %w", s.Name, err)
	}
	return nil
}

// RequestRestart is [Tx.RequestRestart] in a transaction of its own.
func (db *DB) RequestRestart(ctx context.Context, name string, at time.Time) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.RequestRestart(ctx, name, at) })
}

// RequestRestart asks whoever runs the server, under any configuration, to
// start it again. It never moves an earlier request back. A server nothing is
// known of runs nowhere, and nothing is written.
func (tx *Tx) RequestRestart(ctx context.Context, name string, at time.Time) error {
	_, err := tx.tx.ExecContext(ctx, "UPDATE servers SET restart_wanted_at = max(restart_wanted_at, ?) WHERE name = ?", millis(at), name)
	if err != nil {
		return fmt.Errorf("request restart of %s: %w", name, err)
	}
	return nil
}

// Prune is [Tx.Prune] in a transaction of its own.
func (db *DB) Prune(ctx context.Context, keep []Key, age time.Duration) (removed int, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		removed, err = tx.Prune(ctx, keep, age)
		return err
	})
	return removed, err
}

// Prune forgets servers, and their items, that are not in keep and were not
// written to for longer than age, and returns how many.
func (tx *Tx) Prune(ctx context.Context, keep []Key, age time.Duration) (removed int, err error) {
	type row struct {
		id int64
		Key
	}
	var old []row
	limit := tx.now.Add(-age).UnixMilli()
	rows, err := tx.tx.QueryContext(ctx, "SELECT id, name, fingerprint, audience FROM servers WHERE touched_at < ?", limit)
	if err == nil {
		old, err = collect(rows, func(rows *sql.Rows, r *row) error {
			return rows.Scan(&r.id, &r.Name, &r.Fingerprint, &r.Audience)
		})
	}
	old = slices.DeleteFunc(old, func(r row) bool { return slices.Contains(keep, r.Key) })
	var items int64
	for _, r := range old {
		var result sql.Result
		if result, err = tx.tx.ExecContext(ctx, "DELETE FROM items WHERE server_id = ?", r.id); err != nil {
			break
		}
		n, _ := result.RowsAffected() // SQLite always knows
		items += n
		if _, err = tx.tx.ExecContext(ctx, "DELETE FROM servers WHERE id = ?", r.id); err != nil {
			break
		}
	}
	if err == nil && items > 0 {
		_, err = tx.nextGeneration(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("prune servers: %w", err)
	}
	return len(old), nil
}
