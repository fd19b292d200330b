package policy

import (
	"context"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// Who approved an item where it was no person.
const (
	// ByDiscovery is the first discovery of a server.
	ByDiscovery = "first discovery"
	// ByRule is the server's auto_approve_tool_changes.
	ByRule = "auto_approve_tool_changes"
	// ByReturn is an item that came back to a form that was approved before.
	ByReturn = "approved before"
)

// Judge compares what servers offer with what was approved, and writes down what
// is new. It returns what this process was the first to find: of several that
// find the same at once, one. A list that was judged before costs nothing, one
// that holds nothing new a lookup per item, and no write.
//
// The first list of a kind that a server ever gave is its baseline and approved,
// even an empty one. Where a store was lost there is no first time: everything
// is Pending until somebody approves it. Of a server that was inspected while
// it was held, what the inspection found is the baseline.
//
// Servers that are not Known, and their Unread kinds, are left out. Without a
// store nothing is judged, and there is no error.
func (a *Approvals) Judge(ctx context.Context, snapshot *catalog.Snapshot) (events []Event, err error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.leave()
	v, err := a.load(ctx)
	if err != nil || v == nil {
		return nil, err
	}
	var judged []string
	for _, server := range snapshot.Servers() {
		auto := a.options.AutoApprove(server.Name)
		last := a.seen[server.Name]
		if !server.Known || last.server == server && last.number == v.number && last.auto == auto {
			continue
		}
		found, err := a.judgeServer(ctx, v, server, auto)
		if err != nil {
			return events, err
		}
		events = append(events, found...)
		judged = append(judged, server.Name)
	}
	if len(judged) == 0 {
		return nil, nil
	}
	if v, err = a.load(ctx); err != nil {
		return events, err
	}
	for _, name := range judged {
		s := a.seen[name]
		s.number = v.number
		a.seen[name] = s
	}
	return events, nil
}

// sight is what this process last saw of a server.
type sight struct {
	server *catalog.Server
	number int64 // of the view it was judged by
	auto   bool
	held   []store.Form // those that it offered and that were not approved
}

// judgeServer judges by the view, and where that leaves something to write, once
// more in a transaction, which nobody else writes in.
func (a *Approvals) judgeServer(ctx context.Context, v *view, server *catalog.Server, auto bool) ([]Event, error) {
	c := court{server: server, before: a.seen[server.Name].held, auto: auto, now: a.options.Now()}
	verdict := c.judge(v)
	if !verdict.isEmpty() {
		err := a.write(ctx, server.Name, func(ctx context.Context, tx *store.Tx, v *view) error {
			verdict = c.judge(v)
			return verdict.write(ctx, tx)
		})
		if err != nil {
			return nil, err
		}
	}
	a.seen[server.Name] = sight{server: server, auto: auto, held: verdict.held}
	return verdict.events, nil
}

// write runs op in a transaction, with what is stored of a server in it.
func (a *Approvals) write(ctx context.Context, server string, op func(context.Context, *store.Tx, *view) error) error {
	db := a.options.Store()
	if err := a.bind(ctx, db); err != nil {
		return err
	}
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		stored, err := tx.Approvals(ctx, server)
		if err != nil {
			return err
		}
		mark, err := tx.KeyMark(ctx)
		if err != nil {
			return err
		}
		v := newView(stored)
		v.lost = mark.Orphan && !stored.Confirmed
		return op(ctx, tx, v)
	})
}
