package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Item is one thing a server offers.
type Item struct {
	// Key is the server's.
	Key Key
	// Kind is "tool", "resource", "template" or "prompt"; others are kept but
	// not counted.
	Kind string
	// Position is the place among the server's items of its kind, from 0.
	Position int
	// Name is the server's own: a tool's or prompt's name, a URI, a template.
	Name string
	// Raw is the server's JSON, byte for byte.
	Raw json.RawMessage
	// Hash is the hex SHA-256 of Raw.
	Hash string
}

// listing is what is stored of a server's items, without the raw JSON.
type listing struct {
	id         int64 // of the server's row, 0 when there is none
	generation int64
	listed     bool // there was a list before, if only an empty one
	items      []Item
}

// slot is where an item stands.
type slot struct {
	kind     string
	position int
}

// Items returns the items of all the keys, in the order of the keys, then by
// kind, then by position. Keys of which nothing is stored, and repeated keys,
// add nothing. There may be 8,000 keys.
func (db *DB) Items(ctx context.Context, keys []Key) (items []Item, err error) {
	if db == nil || len(keys) == 0 {
		return nil, nil
	}
	conn, err := db.pool.Conn(ctx)
	if err == nil {
		// A start waits for these rows. The driver's own cost a third less than
		// those of database/sql, which copies every value once more.
		err = conn.Raw(func(c any) error {
			items, err = readItems(ctx, c.(driver.QueryerContext), keys)
			return err
		})
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	return items, nil
}

func readItems(ctx context.Context, conn driver.QueryerContext, keys []Key) (items []Item, err error) {
	order := make(map[Key]int, len(keys))
	var args []driver.NamedValue
	for i, k := range keys {
		if _, ok := order[k]; ok {
			continue
		}
		order[k] = i
		for _, v := range []driver.Value{int64(i), k.Name, k.Fingerprint, k.Audience} {
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: v})
		}
	}
	rows, err := conn.QueryContext(ctx, `WITH wanted (ord, name, fingerprint, audience) AS (VALUES (?,?,?,?)`+
		strings.Repeat(",(?,?,?,?)", len(order)-1)+`)
		SELECT w.ord, i.kind, i.position, i.name, i.raw, i.hash FROM wanted w
		CROSS JOIN servers s ON s.name = w.name AND s.fingerprint = w.fingerprint AND s.audience = w.audience
		CROSS JOIN items i ON i.server_id = s.id`, args)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for row := make([]driver.Value, 6); ; {
		if err := rows.Next(row); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		ord, _ := row[0].(int64)
		position, _ := row[2].(int64)
		item := Item{Key: keys[ord], Position: int(position)}
		item.Kind, _ = row[1].(string)
		item.Name, _ = row[3].(string)
		item.Raw, _ = row[4].([]byte) // a copy of the driver's, made for this row
		item.Hash, _ = row[5].(string)
		items = append(items, item)
	}
	// SQLite would carry every raw through its sorter.
	slices.SortFunc(items, func(a, b Item) int {
		if a.Key != b.Key {
			return cmp.Compare(order[a.Key], order[b.Key])
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Position, b.Position))
	})
	return items, nil
}

// ReplaceItems is [Tx.ReplaceItems] in a transaction of its own. A list that is
// stored already is found out by reading alone.
func (db *DB) ReplaceItems(ctx context.Context, key Key, items []Item) (generation int64, changed bool, err error) {
	if db == nil {
		return 0, false, nil
	}
	wanted := numbered(items)
	read, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, false, fmt.Errorf("read items of %s: %w", key.Name, err)
	}
	stored, err := readListing(ctx, read, key)
	read.Rollback()
	if err != nil || stored.listed && stored.same(wanted) {
		return stored.generation, false, err
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		generation, changed, err = tx.replace(ctx, key, wanted)
		return err
	})
	return generation, changed && err == nil, err
}

// ReplaceItems makes items all that the server offers, in their order; of an
// Item only Kind, Name and Raw are read. It sets the server's Counts,
// Generation and ListedAt, and makes its row if need be. Where that is what was
// stored, nothing is written, except that a server that was never listed
// becomes one that was. generation is the server's, which is the global one
// when changed is true.
func (tx *Tx) ReplaceItems(ctx context.Context, key Key, items []Item) (generation int64, changed bool, err error) {
	return tx.replace(ctx, key, numbered(items))
}

func (tx *Tx) replace(ctx context.Context, key Key, wanted []Item) (generation int64, changed bool, err error) {
	stored, err := readListing(ctx, tx.tx, key)
	if err != nil {
		return 0, false, err
	}
	generation, changed = stored.generation, !stored.same(wanted)
	if stored.listed && !changed {
		return generation, false, nil
	}
	if changed {
		if generation, err = tx.nextGeneration(ctx); err != nil {
			return 0, false, err
		}
	}
	count := map[string]int{}
	for _, item := range wanted {
		count[item.Kind]++
	}
	now := tx.now.UnixMilli()
	err = tx.tx.QueryRowContext(ctx, `INSERT INTO servers
		(name, fingerprint, audience, tools, resources, templates, prompts, generation, listed_at, touched_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name, fingerprint, audience) DO UPDATE SET
		tools = excluded.tools, resources = excluded.resources, templates = excluded.templates, prompts = excluded.prompts,
		generation = excluded.generation, listed_at = excluded.listed_at, touched_at = excluded.touched_at
		RETURNING id`,
		key.Name, key.Fingerprint, key.Audience, count["tool"], count["resource"], count["template"], count["prompt"],
		generation, now, now).Scan(&stored.id)
	if err == nil && changed {
		err = tx.writeItems(ctx, stored, wanted)
	}
	if err != nil {
		return 0, false, fmt.Errorf("write items of %s: %w", key.Name, err)
	}
	return generation, changed, nil
}

// writeItems turns the stored items of a server into wanted, touching only rows
// that differ.
func (tx *Tx) writeItems(ctx context.Context, stored listing, wanted []Item) error {
	before := make(map[slot]Item, len(stored.items))
	for _, item := range stored.items {
		before[slot{item.Kind, item.Position}] = item
	}
	put, err := tx.tx.PrepareContext(ctx, `INSERT INTO items (server_id, kind, position, name, raw, hash) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (server_id, kind, position) DO UPDATE SET name = excluded.name, raw = excluded.raw, hash = excluded.hash`)
	if err != nil {
		return err
	}
	defer put.Close()
	for _, item := range wanted {
		at := slot{item.Kind, item.Position}
		old, ok := before[at]
		delete(before, at)
		if ok && old.Name == item.Name && old.Hash == item.Hash {
			continue
		}
		if _, err := put.ExecContext(ctx, stored.id, item.Kind, item.Position, item.Name, notNull(item.Raw), item.Hash); err != nil {
			return err
		}
	}
	for at := range before { // what is left is wanted no longer
		_, err := tx.tx.ExecContext(ctx, "DELETE FROM items WHERE server_id = ? AND kind = ? AND position = ?", stored.id, at.kind, at.position)
		if err != nil {
			return err
		}
	}
	return nil
}

// numbered copies items with their positions and hashes filled in, in the order
// they are stored in.
func numbered(items []Item) []Item {
	next := map[string]int{}
	list := slices.Clone(items)
	for i := range list {
		item := &list[i]
		sum := sha256.Sum256(item.Raw)
		item.Position, item.Hash = next[item.Kind], hex.EncodeToString(sum[:])
		next[item.Kind]++
	}
	slices.SortStableFunc(list, func(a, b Item) int { return cmp.Compare(a.Kind, b.Kind) })
	return list
}

func readListing(ctx context.Context, tx *sql.Tx, key Key) (l listing, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, generation, listed_at <> 0 FROM servers
		WHERE name = ? AND fingerprint = ? AND audience = ?`, key.Name, key.Fingerprint, key.Audience).
		Scan(&l.id, &l.generation, &l.listed)
	if errors.Is(err, sql.ErrNoRows) {
		return listing{}, nil
	}
	if err == nil {
		var rows *sql.Rows
		rows, err = tx.QueryContext(ctx, "SELECT kind, position, name, hash FROM items WHERE server_id = ? ORDER BY kind, position", l.id)
		if err == nil {
			l.items, err = collect(rows, func(rows *sql.Rows, item *Item) error {
				return rows.Scan(&item.Kind, &item.Position, &item.Name, &item.Hash)
			})
		}
	}
	if err != nil {
		return listing{}, fmt.Errorf("read items of %s: %w", key.Name, err)
	}
	return l, nil
}

// same reports whether wanted, as numbered returns it, is what is stored.
func (l listing) same(wanted []Item) bool {
	return slices.EqualFunc(l.items, wanted, func(a, b Item) bool {
		return a.Kind == b.Kind && a.Position == b.Position && a.Name == b.Name && a.Hash == b.Hash
	})
}

// nextGeneration moves the global generation on.
func (tx *Tx) nextGeneration(ctx context.Context) (n int64, err error) {
	err = tx.tx.QueryRowContext(ctx, "UPDATE state SET value = value + 1 WHERE key = 'generation' RETURNING value").Scan(&n)
	return n, err
}
