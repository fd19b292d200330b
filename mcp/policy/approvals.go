package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// Status is how an item stands with the one who reviews.
type Status string

// The statuses of items. Only Approved ones are to be listed and used.
const (
	// Unknown is an item that no server was ever seen to list; a resource may
	// be read without being listed.
	Unknown Status = ""
	// Approved is an item in a form that somebody approved, or that was there
	// at the first discovery.
	Approved Status = "approved"
	// Pending is an item of which no form was ever approved.
	Pending Status = "pending"
	// Changed is an item that was approved in another form.
	Changed Status = "changed"
	// Blocked is an item that somebody has forbidden, whatever its form.
	Blocked Status = "blocked"
)

// ApprovalOptions say how Approvals are kept.
type ApprovalOptions struct {
	// Store returns the shared store, nil where it cannot be used; it may block
	// while the store is being opened.
	Store func() *store.DB
	// DataDir is the folder of the key file, by which the loss of a store is
	// noticed.
	DataDir string
	// Enabled tells whether items are held at all (quarantine_enabled). What
	// would be held is recorded all the same, so that switching it on again
	// holds what has changed meanwhile; what somebody blocked stays blocked.
	// nil is always.
	Enabled func() bool
	// AutoApprove tells whether new and changed items of a server are approved
	// as they come (auto_approve_tool_changes); nil is never.
	AutoApprove func(server string) bool
	Now         func() time.Time
}

// Approvals is the quarantine of items: which form of which item may be used.
// An item is known by server, kind and name; its form by the fingerprint of its
// definition. An item may have several approved forms at a time, since clients
// with different environments may be offered different ones; each form is
// judged by itself, and so nothing that two clients see goes back and forth.
//
// What several processes share is in the store. Each has a view of it in
// memory, which [Approvals.Refresh] brings up to date; asking for the status of
// an item costs a lookup and never waits. All methods may be called from several
// goroutines.
type Approvals struct {
	options ApprovalOptions
	view    atomic.Pointer[view]
	working chan struct{} // holds one: who judges or loads, and with it seen
	seen    map[string]sight
}

// NewApprovals returns the Approvals of a store. Nothing is read before it is
// needed.
func NewApprovals(options ApprovalOptions) *Approvals {
	if options.Enabled == nil {
		options.Enabled = func() bool { return true }
	}
	if options.AutoApprove == nil {
		options.AutoApprove = func(string) bool { return false }
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Approvals{options: options, working: make(chan struct{}, 1), seen: map[string]sight{}}
}

// Usable reports whether there is a store to judge with. Without one every item
// is Unknown.
func (a *Approvals) Usable() bool { return a.options.Store() != nil }

// Stamp names the approvals as the store has them now: equal stamps mean that
// equal items may be used. It costs one query and is "" where there is nothing
// to name.
func (a *Approvals) Stamp(ctx context.Context) string {
	number, err := a.options.Store().ApprovalsNumber(ctx)
	if err != nil || number == 0 {
		return ""
	}
	return fmt.Sprint(number, a.options.Enabled())
}

// Status is how an item stands by what was last read from the store. An item
// whose definition was not judged is never Approved; one without a definition,
// which nobody lists, is judged by its name.
func (a *Approvals) Status(item *catalog.Item) Status {
	v := a.view.Load()
	if v == nil {
		return Unknown
	}
	return v.status(item)
}

// Allows reports whether an item may be listed and used by what is known of it:
// if it is Approved, or not Blocked where quarantine is off. What nobody lists
// is allowed once the store was read, but for a tool or prompt of a server that
// has listed its own before, which would be new, and for anything of a server of
// which nothing was approved since a store was lost.
func (a *Approvals) Allows(item *catalog.Item) bool {
	switch a.Status(item) {
	case Approved:
		return true
	case Blocked:
		return false
	case Unknown:
		return item.Raw == nil && a.allowsUnlisted(item.Ref) || !a.options.Enabled()
	}
	return !a.options.Enabled()
}

// allowsUnlisted is Allows for what was never seen to be listed; an empty name
// stands for whatever a server may have.
func (a *Approvals) allowsUnlisted(ref catalog.Ref) bool {
	v := a.view.Load()
	switch {
	case v == nil:
		return false
	case ref.Name == "" || a.options.AutoApprove(ref.Server):
		return true
	case v.lost && !v.approves(ref.Server):
		return false
	case ref.Kind == catalog.Tool || ref.Kind == catalog.Prompt:
		return !slices.Contains(v.baselines[ref.Server], ref.Kind)
	}
	return true
}

// Refresh reads the approvals anew if another process has changed them, and
// reports whether that was so.
func (a *Approvals) Refresh(ctx context.Context) (changed bool, err error) {
	if err := a.enter(ctx); err != nil {
		return false, err
	}
	defer a.leave()
	before := a.view.Load()
	now, err := a.load(ctx)
	return now != before, err
}

// enter waits for its turn.
func (a *Approvals) enter(ctx context.Context) error {
	select {
	case a.working <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Approvals) leave() { <-a.working }

// load returns a view that is up to date; nil without a store. The caller has
// the turn.
func (a *Approvals) load(ctx context.Context) (*view, error) {
	db := a.options.Store()
	if db == nil {
		return nil, nil
	}
	v := a.view.Load()
	number, err := db.ApprovalsNumber(ctx)
	if err != nil || v != nil && v.number == number {
		return v, err
	}
	stored, err := db.Approvals(ctx)
	if err != nil {
		return v, err
	}
	mark, err := a.keyMark(ctx, db)
	if err != nil {
		return v, err
	}
	v = newView(stored)
	v.lost = mark.Orphan && !stored.Confirmed
	a.view.Store(v)
	return v, nil
}

// keyMark is what the store knows of its key. One that knows nothing while there
// is a key file is told first: whether it is lost counts before anything is
// written.
func (a *Approvals) keyMark(ctx context.Context, db *store.DB) (store.KeyMark, error) {
	mark, err := db.KeyMark(ctx)
	if err != nil || mark.ID != 0 {
		return mark, err
	}
	if _, err := auth.ReadKey(a.options.DataDir); errors.Is(err, fs.ErrNotExist) {
		return mark, nil
	}
	if err := a.bind(ctx, db); err != nil {
		return mark, err
	}
	return db.KeyMark(ctx)
}

// bind ties the store to the key file, before anything is kept in it.
func (a *Approvals) bind(ctx context.Context, db *store.DB) error {
	_, err := auth.Bind(ctx, db, a.options.DataDir)
	return err
}

// view is what the store says, for looking things up. It is never changed.
type view struct {
	number    int64
	lost      bool // an earlier store is gone, and nobody has confirmed this one
	entries   map[catalog.Ref]*entry
	baselines map[string][]catalog.Kind
}

// entry is what is known of an item.
type entry struct {
	blocked bool
	forms   []store.Form // in the order in which they were seen
}

func newView(stored store.Approvals) *view {
	v := &view{number: stored.Number, entries: map[catalog.Ref]*entry{}, baselines: map[string][]catalog.Kind{}}
	for _, f := range stored.Forms {
		e := v.make(refOf(f))
		e.forms = append(e.forms, f)
	}
	for _, b := range stored.Blocks {
		v.make(catalog.Ref{Server: b.Server, Kind: catalog.Kind(b.Kind), Name: b.Name}).blocked = true
	}
	for _, b := range stored.Baselines {
		v.baselines[b.Server] = append(v.baselines[b.Server], catalog.Kind(b.Kind))
	}
	return v
}

func (v *view) make(ref catalog.Ref) *entry {
	if v.entries[ref] == nil {
		v.entries[ref] = &entry{}
	}
	return v.entries[ref]
}

func refOf(f store.Form) catalog.Ref {
	return catalog.Ref{Server: f.Server, Kind: catalog.Kind(f.Kind), Name: f.Name}
}

func (v *view) status(item *catalog.Item) Status {
	e := v.entries[item.Ref]
	if item.Raw == nil {
		return e.statusUnlisted()
	}
	return e.status(e.form(item))
}

// approves reports whether anything of a server is approved.
func (v *view) approves(server string) bool {
	for ref, e := range v.entries {
		if ref.Server == server && e.approved() {
			return true
		}
	}
	return false
}

// form is the form of the item that was recorded, nil if it was not.
func (e *entry) form(item *catalog.Item) *store.Form {
	if e == nil {
		return nil
	}
	raw := item.Hash()
	for i := range e.forms {
		if e.forms[i].RawHash == raw {
			return &e.forms[i]
		}
	}
	hash := item.Fingerprint()
	for i := range e.forms {
		if e.forms[i].Hash == hash {
			return &e.forms[i]
		}
	}
	return nil
}

// status is that of the item in a form; nil is one that was not recorded.
func (e *entry) status(f *store.Form) Status {
	switch {
	case e == nil:
		return Pending
	case e.blocked:
		return Blocked
	case f != nil && f.Approved:
		return Approved
	case e.approved():
		return Changed
	}
	return Pending
}

// statusUnlisted is that of an item of which the form is not known: it stands
// for every form that was ever seen.
func (e *entry) statusUnlisted() Status {
	if e == nil {
		return Unknown
	}
	held := slices.IndexFunc(e.forms, func(f store.Form) bool { return !f.Approved })
	if held >= 0 {
		return e.status(&e.forms[held])
	}
	return e.status(e.newestApproved())
}

// approved reports whether any form was ever approved.
func (e *entry) approved() bool { return e.newestApproved() != nil }

// newestApproved is the form that was approved last, nil if none was.
func (e *entry) newestApproved() (newest *store.Form) {
	if e == nil {
		return nil
	}
	for i := range e.forms {
		if f := &e.forms[i]; f.Approved && (newest == nil || !f.DecidedAt.Before(newest.DecidedAt)) {
			newest = f
		}
	}
	return newest
}
