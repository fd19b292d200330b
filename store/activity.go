package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Activity is one row of the log of what was done. What its texts mean is the
// business of who writes them.
type Activity struct {
	// Seq is the place in the order of writing. It is given by AddActivity and
	// never given again.
	Seq int64
	// ID is its own. Texts of IDs sort by time.
	ID string
	// At has milliseconds, Duration microseconds.
	At       time.Time
	Duration time.Duration

	// What rows are chosen by.
	Kind, Server, Tool, Status string
	Caller, Token, Client      string
	ParentID                   string
	ActivityDetail
	Request, Response string

	// RequestBytes and ResponseBytes are what was sent, however much of it is
	// kept in Request and Response.
	RequestBytes, ResponseBytes int64
}

// ActivityDetail is what no row is chosen by. It is one column: each one more
// costs every call a microsecond.
type ActivityDetail struct {
	Instance  string `json:"instance,omitempty"`
	Session   string `json:"session,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Variant   string `json:"variant,omitempty"`
	Tier      string `json:"tier,omitempty"`
	Intent    string `json:"intent,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Error     string `json:"error,omitempty"`
	Findings  string `json:"findings,omitempty"`
	Notes     string `json:"notes,omitempty"`
}

// ActivityLimits bound the log. A zero is no limit.
type ActivityLimits struct {
	Records int64
	Bytes   int64 // of the file
	// Before is an ID: what sorts in front of it is too old.
	Before string
}

// ActivityTotal is what the log holds.
type ActivityTotal struct {
	// Last is the Seq given out last.
	Last    int64
	Records int64
	// Bytes is what the rows take in the file, within a few percent.
	Bytes int64
}

// within reports whether the log is not too large.
func (t ActivityTotal) within(l ActivityLimits) bool {
	return (l.Records <= 0 || t.Records <= l.Records) && (l.Bytes <= 0 || t.Bytes <= l.Bytes)
}

// AddActivity is [Tx.AddActivity] in a transaction of its own.
func (db *DB) AddActivity(ctx context.Context, rows []Activity, limits ActivityLimits) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.AddActivity(ctx, rows, limits) })
}

// AddActivity appends rows; one whose ID is there already is left out. Of what
// the limits do not allow then, the oldest are removed, some more than were
// added, so that the log stays within them however many write.
func (tx *Tx) AddActivity(ctx context.Context, rows []Activity, limits ActivityLimits) error {
	if len(rows) == 0 {
		return nil
	}
	if err := tx.addActivity(ctx, rows, limits); err != nil {
		return fmt.Errorf("write activity: %w", err)
	}
	return nil
}

func (tx *Tx) addActivity(ctx context.Context, rows []Activity, limits ActivityLimits) error {
	total, err := readTotal(tx.tx.QueryRowContext(ctx, "SELECT last, records, bytes FROM activity_total"))
	if err != nil {
		return err
	}
	insert, err := tx.tx.PrepareContext(ctx, `INSERT INTO activity (seq, id, at, size, kind, server, tool, status, duration,
		request_bytes, response_bytes, caller, token, client, parent_id, detail, request, response)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range rows {
		r := &rows[i]
		detail, err := json.Marshal(r.ActivityDetail)
		if err != nil {
			return err
		}
		size := r.footprint(len(detail))
		result, err := insert.ExecContext(ctx, total.Last+1, r.ID, millis(r.At), size, r.Kind, r.Server, r.Tool, r.Status, r.Duration.Microseconds(),
			r.RequestBytes, r.ResponseBytes, r.Caller, r.Token, r.Client, r.ParentID, string(detail), r.Request, r.Response)
		if err != nil {
			return err
		}
		if n, _ := result.RowsAffected(); n > 0 { // SQLite always knows
			total.Last++
			total.Records++
			total.Bytes += size
		}
	}
	if _, err := tx.removeActivity(ctx, &total, limits, 2*len(rows)+trimSpare); err != nil {
		return err
	}
	return tx.putTotal(ctx, total)
}

// trimSpare is how many rows a write may remove beyond twice those it adds, so
// that a log that is far above its limits gets there.
const trimSpare = 16

// TrimActivity is [Tx.TrimActivity] in a transaction of its own.
func (db *DB) TrimActivity(ctx context.Context, limits ActivityLimits, most int) (removed int, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		removed, err = tx.TrimActivity(ctx, limits, most)
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// TrimActivity removes the oldest rows that the limits do not allow, at most most
// of them, and returns how many it removed; fewer than most mean that it is done.
func (tx *Tx) TrimActivity(ctx context.Context, limits ActivityLimits, most int) (removed int, err error) {
	total, err := readTotal(tx.tx.QueryRowContext(ctx, "SELECT last, records, bytes FROM activity_total"))
	if err == nil {
		removed, err = tx.removeActivity(ctx, &total, limits, most)
	}
	if err == nil && removed > 0 {
		err = tx.putTotal(ctx, total)
	}
	if err != nil {
		return 0, fmt.Errorf("trim activity: %w", err)
	}
	return removed, nil
}

// removeActivity is TrimActivity with the total, which it changes and does not
// write.
func (tx *Tx) removeActivity(ctx context.Context, total *ActivityTotal, limits ActivityLimits, most int) (int, error) {
	type old struct {
		id   string
		size int64
	}
	if total.within(limits) {
		// Most writes remove nothing, which one row tells.
		var oldest string
		err := tx.tx.QueryRowContext(ctx, "SELECT coalesce(min(id), '') FROM activity").Scan(&oldest)
		if err != nil || oldest >= limits.Before {
			return 0, err
		}
	}
	rows, err := tx.tx.QueryContext(ctx, "SELECT id, size FROM activity ORDER BY id LIMIT ?", most)
	if err != nil {
		return 0, err
	}
	oldest, err := collect(rows, func(rows *sql.Rows, o *old) error { return rows.Scan(&o.id, &o.size) })
	if err != nil {
		return 0, err
	}
	n := 0
	for ; n < len(oldest) && (oldest[n].id < limits.Before || !total.within(limits)); n++ {
		total.Records--
		total.Bytes -= oldest[n].size
	}
	if n == 0 {
		return 0, nil
	}
	_, err = tx.tx.ExecContext(ctx, "DELETE FROM activity WHERE id <= ?", oldest[n-1].id)
	return n, err
}

func (tx *Tx) putTotal(ctx context.Context, t ActivityTotal) error {
	_, err := tx.tx.ExecContext(ctx, "UPDATE activity_total SET last = ?, records = ?, bytes = ?", t.Last, t.Records, t.Bytes)
	return err
}

func readTotal(row *sql.Row) (t ActivityTotal, err error) {
	err = row.Scan(&t.Last, &t.Records, &t.Bytes)
	return t, err
}

// footprint is about what the row takes in the file, in bytes: of its page, of
// the pages that hold what does not fit there, and of the index of IDs. detail is
// the length of that column.
func (a *Activity) footprint(detail int) int64 {
	// Of SQLite's file format: a page, what of it can hold rows, the longest row
	// that stands whole in its page, the least that stays there of a longer one,
	// and what another page takes of the rest.
	const page, usable, whole, least, further = 4096, 4084, 4061, 489, 4092
	const numbers = 50 // the header of the row and its integers
	length := numbers + len(a.ID) + len(a.Kind) + len(a.Server) + len(a.Tool) + len(a.Status) + len(a.Caller) + len(a.Token) +
		len(a.Client) + len(a.ParentID) + detail + len(a.Request) + len(a.Response)
	size := 2 * (len(a.ID) + 8) // index pages are not always full
	if length > whole {
		local := least + (length-least)%further
		if local > whole {
			local = least
		}
		size += (length - local + further - 1) / further * page
		length = local
	}
	return int64(size + page/max(1, usable/length))
}

// ActivityFilter chooses rows. The zero value chooses all.
type ActivityFilter struct {
	// An empty text matches every row.
	Kind, Server, Tool, Status    string
	Caller, Token, Client, Parent string
	// From is the first ID, To the first one behind the last; "" is no bound.
	From, To string
	// After is a Seq: only what was written later, in the order of writing
	// instead of that of IDs; -1 has all in that order.
	After int64
	// Limit is the number of rows at most, 0 for no limit. Last has the newest
	// rows kept instead of the oldest; the order stays.
	Limit int
	Last  bool
}

// where is the filter as SQL.
func (f ActivityFilter) where() (clause string, args []any) {
	clause = "1"
	add := func(condition, value string) {
		if value != "" {
			clause += " AND " + condition
			args = append(args, value)
		}
	}
	add("kind = ?", f.Kind)
	add("server = ?", f.Server)
	add("tool = ?", f.Tool)
	add("status = ?", f.Status)
	add("caller = ?", f.Caller)
	add("token = ?", f.Token)
	add("client = ?", f.Client)
	add("parent_id = ?", f.Parent)
	add("id >= ?", f.From)
	add("id < ?", f.To)
	if f.After != 0 {
		clause += " AND seq > ?"
		args = append(args, f.After)
	}
	return clause, args
}

const activityColumns = `seq, id, at, kind, server, tool, status, duration, request_bytes, response_bytes, caller, token, client,
	parent_id, detail, request, response`

func scanActivity(scan func(...any) error, a *Activity) error {
	var at, duration int64
	var detail []byte
	err := scan(&a.Seq, &a.ID, &at, &a.Kind, &a.Server, &a.Tool, &a.Status, &duration, &a.RequestBytes, &a.ResponseBytes,
		&a.Caller, &a.Token, &a.Client, &a.ParentID, &detail, &a.Request, &a.Response)
	a.At, a.Duration = instant(at), time.Duration(duration)*time.Microsecond
	if err != nil {
		return err
	}
	return json.Unmarshal(detail, &a.ActivityDetail)
}

// Activity returns the rows that the filter chooses, the oldest first.
func (db *DB) Activity(ctx context.Context, f ActivityFilter) ([]Activity, error) {
	if db == nil {
		return nil, nil
	}
	clause, args := f.where()
	order := "id"
	if f.After != 0 {
		order = "seq"
	}
	query := "SELECT " + activityColumns + " FROM activity WHERE " + clause + " ORDER BY " + order
	if f.Last {
		query += " DESC"
	}
	if f.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	if f.Last {
		query = "SELECT * FROM (" + query + ") ORDER BY " + order
	}
	rows, err := db.pool.QueryContext(ctx, query, args...)
	var list []Activity
	if err == nil {
		list, err = collect(rows, func(rows *sql.Rows, a *Activity) error { return scanActivity(rows.Scan, a) })
	}
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	return list, nil
}

// ActivityByID returns one row, and false where there is none.
func (db *DB) ActivityByID(ctx context.Context, id string) (a Activity, found bool, err error) {
	if db == nil {
		return Activity{}, false, nil
	}
	err = scanActivity(db.pool.QueryRowContext(ctx, "SELECT "+activityColumns+" FROM activity WHERE id = ?", id).Scan, &a)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Activity{}, false, nil
	case err != nil:
		return Activity{}, false, fmt.Errorf("read activity: %w", err)
	}
	return a, true, nil
}

// ActivityEnding returns the IDs that end with a text, the newest first, ten at
// most.
func (db *DB) ActivityEnding(ctx context.Context, end string) (ids []string, err error) {
	if db == nil || end == "" {
		return nil, nil
	}
	rows, err := db.pool.QueryContext(ctx, "SELECT id FROM activity WHERE substr(id, ?) = ? ORDER BY id DESC LIMIT 10", -utf8.RuneCountInString(end), end)
	if err == nil {
		ids, err = collect(rows, func(rows *sql.Rows, id *string) error { return rows.Scan(id) })
	}
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	return ids, nil
}

// ActivityTotal returns what the log holds. It costs one small query.
func (db *DB) ActivityTotal(ctx context.Context) (ActivityTotal, error) {
	if db == nil {
		return ActivityTotal{}, nil
	}
	t, err := readTotal(db.pool.QueryRowContext(ctx, "SELECT last, records, bytes FROM activity_total"))
	if err != nil {
		return ActivityTotal{}, fmt.Errorf("read activity: %w", err)
	}
	return t, nil
}

// EachActivity calls use for every row that the filter chooses, with Kind,
// Server, Tool, Status, Duration and the two counts of bytes alone, in no order.
// Limit, Last and After do not count. use must be brief: what is read cannot
// leave the write-ahead log meanwhile.
func (db *DB) EachActivity(ctx context.Context, f ActivityFilter, use func(*Activity)) error {
	if db == nil {
		return nil
	}
	f.After = 0
	clause, args := f.where()
	rows, err := db.pool.QueryContext(ctx, "SELECT kind, server, tool, status, duration, request_bytes, response_bytes FROM activity WHERE "+clause, args...)
	if err == nil {
		err = eachRow(rows, use)
	}
	if err != nil {
		return fmt.Errorf("read activity: %w", err)
	}
	return nil
}

func eachRow(rows *sql.Rows, use func(*Activity)) error {
	defer rows.Close()
	for rows.Next() {
		var a Activity
		var duration int64
		if err := rows.Scan(&a.Kind, &a.Server, &a.Tool, &a.Status, &duration, &a.RequestBytes, &a.ResponseBytes); err != nil {
			return err
		}
		a.Duration = time.Duration(duration) * time.Microsecond
		use(&a)
	}
	return rows.Err()
}
