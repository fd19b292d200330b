package policy

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// Reviewed is one form of an item as a person reviews it.
type Reviewed struct {
	// Item is the form.
	Item   *catalog.Item
	Status Status
	// Offered tells that a server was last seen to offer this form. Others are
	// of clients that are offered something else, or gone.
	Offered bool
	// Who approved it and when; "" and zero while it is held.
	Who       string
	DecidedAt time.Time
	// SeenAt is when it was first seen, zero where that was not recorded yet.
	SeenAt time.Time
}

// Held reports whether a person has something to decide or to take back.
func (r *Reviewed) Held() bool { return r.Status != Approved }

// Offered returns what the servers were last seen to offer, to whichever
// client, from the store: one Server for each key of which lists are known, with
// every form of an item, in the order of the keys. Of a key, Audience is not
// read.
func (a *Approvals) Offered(ctx context.Context, keys []store.Key) ([]*catalog.Server, error) {
	db := a.options.Store()
	rows, err := db.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var servers []*catalog.Server
	for _, key := range keys {
		var stored []store.Key
		for _, row := range rows {
			if row.Name == key.Name && row.Fingerprint == key.Fingerprint && !row.ListedAt.IsZero() {
				stored = append(stored, row.Key)
			}
		}
		if len(stored) == 0 {
			continue
		}
		items, err := db.Items(ctx, stored)
		if err != nil {
			return nil, err
		}
		servers = append(servers, merge(key.Name, items))
	}
	return servers, nil
}

// merge makes a server of stored lists. An item that is in several of them in
// one form is one item.
func merge(name string, items []store.Item) *catalog.Server {
	server := &catalog.Server{Name: name, Prefix: name, Known: true}
	type form struct {
		ref  catalog.Ref
		hash string
	}
	seen := map[form]bool{}
	for _, row := range items {
		ref := catalog.Ref{Server: name, Kind: catalog.Kind(row.Kind), Name: row.Name}
		item := catalog.New(ref, row.Raw, nil)
		f := form{ref, item.Fingerprint()}
		if !slices.Contains(catalog.Kinds(), ref.Kind) || seen[f] {
			continue
		}
		seen[f] = true
		server.SetItems(ref.Kind, append(server.Items(ref.Kind), item))
	}
	return server
}

// Review returns every form of every item that the servers were last seen to
// offer, and besides those that are held or blocked, ordered by key, then as the
// servers list them. Nothing is judged: of a server that never was, nothing is
// held.
func (a *Approvals) Review(ctx context.Context, keys []store.Key) ([]Reviewed, error) {
	if _, err := a.Refresh(ctx); err != nil {
		return nil, err
	}
	v := a.view.Load()
	if v == nil {
		return nil, nil
	}
	offered, err := a.Offered(ctx, keys)
	if err != nil {
		return nil, err
	}
	var list []Reviewed
	for _, key := range keys {
		var there []Reviewed
		if i := slices.IndexFunc(offered, func(s *catalog.Server) bool { return s.Name == key.Name }); i >= 0 {
			there = v.review(offered[i])
		}
		more, err := a.elsewhere(ctx, v, key.Name, there)
		if err != nil {
			return nil, err
		}
		list = append(append(list, there...), more...)
	}
	return list, nil
}

// review says how all that a server offers stands.
func (v *view) review(server *catalog.Server) (list []Reviewed) {
	for _, kind := range catalog.Kinds() {
		judged := slices.Contains(v.baselines[server.Name], kind)
		for _, item := range server.Items(kind) {
			e := v.entries[item.Ref]
			f := e.form(item)
			if e == nil && !judged && !v.lost {
				continue // the next to discover it approves it
			}
			list = append(list, reviewed(e, f, item, true))
		}
	}
	return list
}

func reviewed(e *entry, f *store.Form, item *catalog.Item, offered bool) Reviewed {
	r := Reviewed{Item: item, Status: e.status(f), Offered: offered}
	if f != nil {
		r.Who, r.DecidedAt, r.SeenAt = f.Who, f.DecidedAt, f.SeenAt
	}
	return r
}

// Look says how an item that is offered stands, by what is in memory.
func (a *Approvals) Look(item *catalog.Item) Reviewed {
	v := a.view.Load()
	if v == nil {
		return Reviewed{Item: item, Offered: true}
	}
	e := v.entries[item.Ref]
	return reviewed(e, e.form(item), item, true)
}

// elsewhere returns the forms of a server's items that are held or blocked and
// are not among those in the list.
func (a *Approvals) elsewhere(ctx context.Context, v *view, server string, there []Reviewed) ([]Reviewed, error) {
	listed := func(ref catalog.Ref, hash string) bool {
		return slices.ContainsFunc(there, func(r Reviewed) bool {
			return r.Item.Ref == ref && (hash == "" || r.Item.Fingerprint() == hash)
		})
	}
	var list []Reviewed
	for ref, e := range v.entries {
		if ref.Server != server {
			continue
		}
		for i := range e.forms {
			f := &e.forms[i]
			if f.Approved || listed(ref, f.Hash) {
				continue
			}
			item, err := a.recorded(ctx, ref, f)
			if err != nil {
				return nil, err
			}
			list = append(list, reviewed(e, f, item, false))
		}
		if e.blocked && !listed(ref, "") && !slices.ContainsFunc(e.forms, func(f store.Form) bool { return !f.Approved }) {
			item, err := a.recorded(ctx, ref, e.newestApproved())
			if err != nil {
				return nil, err
			}
			list = append(list, reviewed(e, e.newestApproved(), item, false))
		}
	}
	slices.SortFunc(list, func(a, b Reviewed) int { return a.compare(b) })
	return list, nil
}

// compare orders what no server lists.
func (r Reviewed) compare(other Reviewed) int {
	kinds := catalog.Kinds()
	if d := slices.Index(kinds, r.Item.Kind) - slices.Index(kinds, other.Item.Kind); d != 0 {
		return d
	}
	if r.Item.Name != other.Item.Name {
		if r.Item.Name < other.Item.Name {
			return -1
		}
		return 1
	}
	return r.SeenAt.Compare(other.SeenAt)
}

// recorded is the item in a form as it was recorded; nil is one of which only
// the name is known.
func (a *Approvals) recorded(ctx context.Context, ref catalog.Ref, f *store.Form) (*catalog.Item, error) {
	if f == nil {
		return &catalog.Item{Ref: ref}, nil
	}
	raw, err := a.options.Store().FormRaw(ctx, *f)
	if err != nil {
		return nil, err
	}
	return catalog.New(ref, raw, nil), nil
}

// Before is the definition of an item that was approved last, nil if none was:
// what a changed one is compared with.
func (a *Approvals) Before(ctx context.Context, ref catalog.Ref) (json.RawMessage, error) {
	v := a.view.Load()
	if v == nil {
		return nil, nil
	}
	f := v.entries[ref].newestApproved()
	if f == nil {
		return nil, nil
	}
	return a.options.Store().FormRaw(ctx, *f)
}
