package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrTooLarge means that a page has no room within its limit, were it alone.
var ErrTooLarge = errors.New("store: it is larger than all pages may be together")

// Page is a result that is kept for some time to be read in parts.
type Page struct {
	// Key is its own. Whoever knows it can look the page up.
	Key []byte
	// Head is what the writer wants to know of it before its parts are read.
	Head string
	// ExpiresAt has milliseconds. A page is kept beyond it until the next one is
	// written.
	ExpiresAt time.Time
	// Parts are its content in order. Page leaves them out.
	Parts []PagePart
}

// PagePart is a piece of a page.
type PagePart struct {
	// First is the offset at which it begins, in a unit of the writer's.
	First int64
	Body  []byte
}

// Bytes is about what the page takes in the file.
func (p *Page) Bytes() int64 {
	const row, sheet = 100, 4096
	size := int64(len(p.Head) + len(p.Key) + 2*row)
	for _, part := range p.Parts {
		size += (int64(len(part.Body)) + row + sheet - 1) / sheet * sheet
	}
	return size
}

// PutPages is [Tx.PutPages] in a transaction of its own.
func (db *DB) PutPages(ctx context.Context, now time.Time, most int64, pages ...Page) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutPages(ctx, now, most, pages...) })
}

// PutPages writes new pages. Those that have expired by now are removed, and then
// the oldest, until all together take at most so many bytes; the error is
// [ErrTooLarge] where the new ones take more alone, and nothing is written or
// removed.
func (tx *Tx) PutPages(ctx context.Context, now time.Time, most int64, pages ...Page) error {
	var size int64
	for i := range pages {
		size += pages[i].Bytes()
	}
	if size > most {
		return ErrTooLarge
	}
	err := tx.removePages(ctx, "expires_at <= ?", millis(now))
	if err == nil {
		err = tx.makeRoom(ctx, most-size)
	}
	for i := range pages {
		if err == nil {
			err = tx.putPage(ctx, &pages[i])
		}
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// makeRoom removes the oldest pages until the others take at most so many bytes.
func (tx *Tx) makeRoom(ctx context.Context, most int64) error {
	var total int64
	if err := tx.tx.QueryRowContext(ctx, "SELECT coalesce(sum(size), 0) FROM pages").Scan(&total); err != nil || total <= most {
		return err
	}
	rows, err := tx.tx.QueryContext(ctx, "SELECT id, size FROM pages ORDER BY id")
	if err != nil {
		return err
	}
	last, err := oldest(rows, total-most)
	if err != nil {
		return err
	}
	return tx.removePages(ctx, "id <= ?", last)
}

// oldest is the id up to which rows of id and size take so many bytes, and closes
// rows.
func oldest(rows *sql.Rows, bytes int64) (id int64, err error) {
	defer rows.Close()
	for bytes > 0 && rows.Next() {
		var size int64
		if err := rows.Scan(&id, &size); err != nil {
			return 0, err
		}
		bytes -= size
	}
	return id, rows.Err()
}

func (tx *Tx) removePages(ctx context.Context, condition string, value any) error {
	_, err := tx.tx.ExecContext(ctx, "DELETE FROM page_parts WHERE page IN (SELECT id FROM pages WHERE "+condition+")", value)
	if err == nil {
		_, err = tx.tx.ExecContext(ctx, "DELETE FROM pages WHERE "+condition, value)
	}
	return err
}

func (tx *Tx) putPage(ctx context.Context, p *Page) error {
	result, err := tx.tx.ExecContext(ctx, "INSERT INTO pages (key, head, size, expires_at) VALUES (?, ?, ?, ?)", p.Key, p.Head, p.Bytes(), millis(p.ExpiresAt))
	if err != nil {
		return err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return err
	}
	insert, err := tx.tx.PrepareContext(ctx, "INSERT INTO page_parts (page, first, body) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, part := range p.Parts {
		if _, err := insert.ExecContext(ctx, id, part.First, notNull(part.Body)); err != nil {
			return err
		}
	}
	return nil
}

// Page returns the page of a key, expired or not, and false where there is none
// (any more).
func (db *DB) Page(ctx context.Context, key []byte) (p Page, found bool, err error) {
	if db == nil {
		return Page{}, false, nil
	}
	var expires int64
	err = db.pool.QueryRowContext(ctx, "SELECT head, expires_at FROM pages WHERE key = ?", key).Scan(&p.Head, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Page{}, false, nil
	case err != nil:
		return Page{}, false, fmt.Errorf("read page: %w", err)
	}
	p.Key, p.ExpiresAt = key, instant(expires)
	return p, true, nil
}

// PageParts calls use with the parts of the page of a key, beginning with the one
// that holds an offset, until use returns false; with none where there is no such
// page. use must be brief: what is read cannot leave the write-ahead log meanwhile.
func (db *DB) PageParts(ctx context.Context, key []byte, offset int64, use func(PagePart) (more bool)) error {
	if db == nil {
		return nil
	}
	rows, err := db.pool.QueryContext(ctx, `SELECT first, body FROM page_parts, (SELECT id FROM pages WHERE key = ?1) AS it
		WHERE page = it.id AND first >= (SELECT max(first) FROM page_parts WHERE page = it.id AND first <= ?2)
		ORDER BY first`, key, offset)
	if err == nil {
		err = eachPart(rows, use)
	}
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	return nil
}

func eachPart(rows *sql.Rows, use func(PagePart) bool) error {
	defer rows.Close()
	for rows.Next() {
		var part PagePart
		if err := rows.Scan(&part.First, &part.Body); err != nil {
			return err
		}
		if !use(part) {
			return nil
		}
	}
	return rows.Err()
}

// DeletePage is [Tx.DeletePage] in a transaction of its own.
func (db *DB) DeletePage(ctx context.Context, key []byte) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.DeletePage(ctx, key) })
}

// DeletePage removes the page of a key, if there is one.
func (tx *Tx) DeletePage(ctx context.Context, key []byte) error {
	if err := tx.removePages(ctx, "key = ?", key); err != nil {
		return fmt.Errorf("delete page: %w", err)
	}
	return nil
}
