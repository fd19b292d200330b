package router

import (
	"context"
	"sync"

	"mcpproxy/index"
	"mcpproxy/mcp/catalog"
)

// finder keeps the search index of the snapshot that was searched last. It is
// made when it is first needed, and anew when what is offered has changed.
type finder struct {
	options index.Options
	turn    chan struct{} // holds one while nobody replaces the index

	mu    sync.Mutex
	index *index.Index
	of    *catalog.Snapshot
}

func newFinder(options index.Options) *finder {
	f := &finder{options: options, turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// at returns the index of a snapshot. It stays open until the next is made, and a
// search under way is waited for.
func (f *finder) at(ctx context.Context, snapshot *catalog.Snapshot) (*index.Index, error) {
	if x := f.present(snapshot); x != nil {
		return x, nil
	}
	select {
	case <-f.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { f.turn <- struct{}{} }()
	if x := f.present(snapshot); x != nil {
		return x, nil
	}
	descriptions := map[string]string{}
	for _, server := range snapshot.Servers() {
		descriptions[server.Name] = server.About
	}
	f.mu.Lock()
	old := f.index
	f.mu.Unlock()
	next, err := old.Next(ctx, index.FromSnapshot(snapshot, descriptions), f.options)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.index, f.of = next, snapshot
	f.mu.Unlock()
	if old != nil && old != next {
		_ = old.Close() // it was only read
	}
	return next, nil
}

func (f *finder) present(snapshot *catalog.Snapshot) *index.Index {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of != snapshot {
		return nil
	}
	return f.index
}

// search is index.Search on what a snapshot holds. An index that was replaced
// meanwhile is not searched any more; the one of the snapshot is then made again.
func (f *finder) search(ctx context.Context, snapshot *catalog.Snapshot, q index.Query) (index.Result, error) {
	for {
		x, err := f.at(ctx, snapshot)
		if err != nil {
			return index.Result{}, err
		}
		result, err := x.Search(ctx, q)
		if err != index.ErrClosed {
			return result, err
		}
	}
}

func (f *finder) close() error {
	<-f.turn
	defer func() { f.turn <- struct{}{} }()
	f.mu.Lock()
	x := f.index
	f.index, f.of = nil, nil
	f.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.Close()
}
