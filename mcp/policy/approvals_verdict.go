package policy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// Bounds of what is kept of one item. The oldest forms go first.
const (
	maxApprovedForms = 16
	maxHeldForms     = 8
)

// court is the judging of one server.
type court struct {
	server *catalog.Server
	before []store.Form // the held forms that this process saw last time
	auto   bool
	now    time.Time
}

// verdict is what is to be written, and what a person may want to know.
type verdict struct {
	put, drop []store.Form
	baselines []store.Baseline
	held      []store.Form // that the server offers
	events    []Event
}

func (d *verdict) isEmpty() bool { return len(d.put)+len(d.drop)+len(d.baselines) == 0 }

func (d *verdict) write(ctx context.Context, tx *store.Tx) error {
	if len(d.drop) > 0 {
		if err := tx.DeleteForms(ctx, d.drop...); err != nil {
			return err
		}
	}
	if len(d.put) > 0 {
		if err := tx.PutForms(ctx, d.put...); err != nil {
			return err
		}
	}
	if len(d.baselines) > 0 {
		return tx.PutBaselines(ctx, d.baselines...)
	}
	return nil
}

// judge changes nothing: it may be asked again with a newer view.
func (c *court) judge(v *view) (d verdict) {
	known := v.baselines[c.server.Name]
	inspected := len(known) == 0 && v.knows(c.server.Name)
	discovered := 0
	for _, kind := range catalog.Kinds() {
		if slices.Contains(c.server.Unread, kind) {
			continue
		}
		fresh := !v.lost && !slices.Contains(known, kind)
		for _, item := range c.server.Items(kind) {
			e := v.entries[item.Ref]
			f := e.form(item)
			switch {
			case f != nil && f.Approved:
			case e != nil && e.blocked:
				d.hold(e, f, item, c.now)
			case c.auto:
				was := e.status(f)
				d.approve(e, f, item, decision{ByRule, c.now})
				d.events = append(d.events, Event{Ref: item.Ref, Status: Approved, Was: was, Hash: item.Fingerprint(), Who: ByRule})
			case fresh && (f != nil || !inspected):
				d.approve(e, f, item, decision{ByDiscovery, c.now})
				discovered++
			default:
				d.hold(e, f, item, c.now)
			}
		}
		if fresh {
			d.baselines = append(d.baselines, store.Baseline{Server: c.server.Name, Kind: string(kind), Who: ByDiscovery, At: c.now})
		}
	}
	if len(d.baselines) > 0 {
		d.events = append(d.events, Event{Ref: catalog.Ref{Server: c.server.Name}, Status: Approved, Who: ByDiscovery, Items: discovered})
	}
	for _, old := range c.before {
		c.supersede(v, &d, old)
	}
	return d
}

// knows reports whether any form of a server's items was recorded.
func (v *view) knows(server string) bool {
	for ref, e := range v.entries {
		if ref.Server == server && len(e.forms) > 0 {
			return true
		}
	}
	return false
}

// supersede drops a held form that this process has seen the server give up, so
// that nobody approves what is no longer offered.
func (c *court) supersede(v *view, d *verdict, old store.Form) {
	ref := refOf(old)
	e := v.entries[ref]
	if slices.Contains(c.server.Unread, ref.Kind) || e == nil ||
		!slices.ContainsFunc(e.forms, func(f store.Form) bool { return f.Hash == old.Hash && !f.Approved }) {
		return
	}
	items := c.server.Items(ref.Kind)
	i := slices.IndexFunc(items, func(item *catalog.Item) bool { return item.Name == ref.Name })
	if i >= 0 && items[i].Fingerprint() == old.Hash {
		return
	}
	d.drop = append(d.drop, old)
	if i < 0 {
		return
	}
	if f := e.form(items[i]); f != nil && f.Approved && !e.blocked {
		d.events = append(d.events, Event{Ref: ref, Status: Approved, Was: Changed, Hash: f.Hash, Who: ByReturn})
	}
}

// decision is who approved something, and when.
type decision struct {
	who string
	at  time.Time
}

// approve writes the form of an item as approved. f is the form as it was
// recorded; item is read only where it is nil.
func (d *verdict) approve(e *entry, f *store.Form, item *catalog.Item, by decision) {
	var form store.Form
	if f != nil {
		form = *f
	} else {
		form = formOf(item, by.at)
	}
	form.Approved, form.Who, form.DecidedAt = true, by.who, by.at
	d.put = append(d.put, form)
	d.crowd(e, true, maxApprovedForms)
}

// hold writes down the form of an item that is not approved.
func (d *verdict) hold(e *entry, f *store.Form, item *catalog.Item, now time.Time) {
	if f != nil {
		d.held = append(d.held, *f)
		return
	}
	form := formOf(item, now)
	d.put = append(d.put, form)
	d.held = append(d.held, form)
	d.crowd(e, false, maxHeldForms)
	if status := e.status(nil); status != Blocked {
		was := Unknown
		if status == Changed {
			was = Approved
		}
		d.events = append(d.events, Event{Ref: item.Ref, Status: status, Was: was, Hash: form.Hash})
	}
}

// crowd drops the oldest approved or held forms of an item that gets one more.
func (d *verdict) crowd(e *entry, approved bool, most int) {
	if e == nil {
		return
	}
	var list []store.Form
	for _, f := range e.forms {
		if f.Approved == approved {
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b store.Form) int {
		return cmp.Or(a.DecidedAt.Compare(b.DecidedAt), a.SeenAt.Compare(b.SeenAt))
	})
	d.drop = append(d.drop, list[:max(0, len(list)+1-most)]...)
}

func formOf(item *catalog.Item, now time.Time) store.Form {
	return store.Form{
		Server: item.Server, Kind: string(item.Kind), Name: item.Name,
		Hash: item.Fingerprint(), RawHash: item.Hash(), Raw: item.Raw, SeenAt: now,
	}
}
