package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// StaleError says that what was to be approved is not what is held now: the
// server has changed it since it was shown, or somebody else has decided.
type StaleError struct{ Ref catalog.Ref }

// Error says what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%s %s of server %s is held in another form than the one that was shown, or not at all; look again: %s",
		e.Ref.Kind, e.Ref.Name, e.Ref.Server, ReviewCommand(e.Ref))
}

// Approve approves exactly one form of an item, the one whose fingerprint is
// hash, and takes a block away. With hash "" only the block is taken away. It
// returns nothing where nothing had to be changed. The error is a [*StaleError]
// where that form is not recorded (any more), [auth.ErrNoStore] without a store,
// or the store's.
func (a *Approvals) Approve(ctx context.Context, ref catalog.Ref, hash, who string) ([]Event, error) {
	return a.decide(ctx, ref.Server, func(v *view, d *verdict, now time.Time) (unblock []catalog.Ref, err error) {
		e := v.entries[ref]
		var f *store.Form
		if e != nil && hash != "" {
			if i := slices.IndexFunc(e.forms, func(f store.Form) bool { return f.Hash == hash }); i >= 0 {
				f = &e.forms[i]
			}
		}
		if f == nil && hash != "" || e == nil {
			return nil, &StaleError{ref}
		}
		was := e.status(f)
		if e.blocked {
			unblock = append(unblock, ref)
		}
		if f != nil && !f.Approved {
			d.approve(e, f, nil, decision{who, now})
		} else if !e.blocked {
			return nil, nil
		}
		status := Approved
		if hash == "" {
			free := *e
			free.blocked = false
			status = free.statusUnlisted()
		}
		d.events = append(d.events, Event{Ref: ref, Status: status, Was: was, Hash: hash, Who: who})
		return unblock, nil
	})
}

// ApproveAll approves all that a server offers, as it was shown, except what is
// blocked, and makes it the server's baseline: what comes later is judged by
// itself.
func (a *Approvals) ApproveAll(ctx context.Context, offered *catalog.Server, who string) ([]Event, error) {
	return a.decide(ctx, offered.Name, func(v *view, d *verdict, now time.Time) ([]catalog.Ref, error) {
		for _, kind := range catalog.Kinds() {
			for _, item := range offered.Items(kind) {
				e := v.entries[item.Ref]
				f := e.form(item)
				if f != nil && f.Approved || e != nil && e.blocked {
					continue
				}
				was := e.status(f)
				d.approve(e, f, item, decision{who, now})
				d.events = append(d.events, Event{Ref: item.Ref, Status: Approved, Was: was, Hash: item.Fingerprint(), Who: who})
			}
			if !slices.Contains(offered.Unread, kind) && !slices.Contains(v.baselines[offered.Name], kind) {
				d.baselines = append(d.baselines, store.Baseline{Server: offered.Name, Kind: string(kind), Who: who, At: now})
			}
		}
		return nil, nil
	})
}

// Block forbids an item whatever its form, until Approve. It returns nothing
// where that was so already.
func (a *Approvals) Block(ctx context.Context, ref catalog.Ref, who string) (events []Event, err error) {
	db := a.options.Store()
	if db == nil {
		return nil, auth.ErrNoStore
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.leave()
	err = a.write(ctx, ref.Server, func(ctx context.Context, tx *store.Tx, v *view) error {
		events = nil
		e := v.entries[ref]
		if e != nil && e.blocked {
			return nil
		}
		was := Unknown
		if e != nil {
			was = e.statusUnlisted()
		}
		events = []Event{{Ref: ref, Status: Blocked, Was: was, Who: who}}
		return tx.PutBlock(ctx, store.Block{Server: ref.Server, Kind: string(ref.Kind), Name: ref.Name, Who: who, At: a.options.Now()})
	})
	if err != nil {
		return nil, err
	}
	_, err = a.load(ctx)
	return events, err
}

// Lost reports whether an earlier store is gone and nobody has confirmed what
// is in this one: what servers offer for the first time is then Pending.
func (a *Approvals) Lost(ctx context.Context) (bool, error) {
	if _, err := a.Refresh(ctx); err != nil {
		return false, err
	}
	v := a.view.Load()
	return v != nil && v.lost, nil
}

// Confirm ends that a store counts as lost: first discoveries are approved
// again.
func (a *Approvals) Confirm(ctx context.Context, who string) (events []Event, err error) {
	db := a.options.Store()
	if db == nil {
		return nil, auth.ErrNoStore
	}
	lost, err := a.Lost(ctx)
	if err != nil || !lost {
		return nil, err
	}
	if err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.ConfirmApprovals(ctx) }); err != nil {
		return nil, err
	}
	_, err = a.Refresh(ctx)
	return []Event{{Status: Approved, Who: who}}, err
}

// Inspected records what a held server offers as a person is shown it. If the
// server was never trusted before, that is what is approved when it is released;
// anything else is then Pending.
func (a *Approvals) Inspected(ctx context.Context, server *catalog.Server) ([]Event, error) {
	return a.decide(ctx, server.Name, func(v *view, d *verdict, now time.Time) ([]catalog.Ref, error) {
		for ref, e := range v.entries {
			for _, f := range e.forms {
				if ref.Server == server.Name && !f.Approved && !offers(server, f) {
					d.drop = append(d.drop, f)
				}
			}
		}
		for _, kind := range catalog.Kinds() {
			for _, item := range server.Items(kind) {
				e := v.entries[item.Ref]
				if f := e.form(item); f == nil {
					d.hold(e, nil, item, now)
				}
			}
		}
		return nil, nil
	})
}

func offers(server *catalog.Server, f store.Form) bool {
	return slices.ContainsFunc(server.Items(catalog.Kind(f.Kind)), func(item *catalog.Item) bool {
		return item.Name == f.Name && item.Fingerprint() == f.Hash
	})
}

// decide carries out a decision about a server in one transaction.
func (a *Approvals) decide(ctx context.Context, server string, op func(*view, *verdict, time.Time) (unblock []catalog.Ref, err error)) ([]Event, error) {
	if a.options.Store() == nil {
		return nil, auth.ErrNoStore
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.leave()
	var d verdict
	err := a.write(ctx, server, func(ctx context.Context, tx *store.Tx, v *view) error {
		d = verdict{}
		unblock, err := op(v, &d, a.options.Now())
		if err != nil {
			return err
		}
		for _, ref := range unblock {
			if err := tx.DeleteBlock(ctx, store.Block{Server: ref.Server, Kind: string(ref.Kind), Name: ref.Name}); err != nil {
				return err
			}
		}
		return d.write(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	_, err = a.load(ctx)
	return d.events, err
}
