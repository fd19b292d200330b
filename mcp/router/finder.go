package router

import (
	"context"
	"errors"
	"slices"
	"sync"

	"mcpproxy/index"
	"mcpproxy/mcp/catalog"
)

// scope is what is searched: what a snapshot holds, all of it or what a caller may
// see. How rare a word is tells what there is, so who is told of nothing else must
// not be ranked by it.
type scope struct {
	snapshot *catalog.Snapshot
	view     string                   // "" = all; else it differs with what is allowed
	allowed  func(*catalog.Item) bool // nil = all
}

// source is what is indexed of a scope.
func (s scope) source() index.Source {
	descriptions := map[string]string{}
	for _, server := range s.snapshot.Servers() {
		descriptions[server.Name] = server.About
	}
	source := index.FromSnapshot(s.snapshot, descriptions)
	if s.allowed != nil {
		source.Items = slices.DeleteFunc(source.Items, func(item *catalog.Item) bool { return !s.allowed(item) })
	}
	return source
}

// same reports whether two scopes hold the same.
func (s scope) same(other scope) bool { return s.snapshot == other.snapshot && s.view == other.view }

// finder keeps the search index of the scope that was searched last. It is made
// when it is first needed, and anew when what is offered, or allowed, has changed.
type finder struct {
	options index.Options
	turn    chan struct{} // holds one while nobody replaces the index

	mu    sync.Mutex
	index *index.Index
	of    scope
}

func newFinder(options index.Options) *finder {
	f := &finder{options: options, turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// at returns the index of a scope. It stays open until the next is made, and a
// search under way is waited for.
func (f *finder) at(ctx context.Context, s scope) (*index.Index, error) {
	if x := f.present(s); x != nil {
		return x, nil
	}
	select {
	case <-f.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { f.turn <- struct{}{} }()
	if x := f.present(s); x != nil {
		return x, nil
	}
	options := f.options
	if s.allowed != nil {
		options.Folder = "" // that is shared by those who may see all
	}
	f.mu.Lock()
	old := f.index
	f.mu.Unlock()
	next, err := old.Next(ctx, s.source(), options)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.index, f.of = next, s
	f.mu.Unlock()
	if old != nil && old != next {
		_ = old.Close() // it was only read
	}
	return next, nil
}

func (f *finder) present(s scope) *index.Index {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.of.same(s) {
		return nil
	}
	return f.index
}

// search is index.Search on a scope. An index that was replaced meanwhile is not
// searched any more; the one of the scope is then made again.
func (f *finder) search(ctx context.Context, s scope, q index.Query) (index.Result, error) {
	for {
		x, err := f.at(ctx, s)
		if err != nil {
			return index.Result{}, err
		}
		result, err := x.Search(ctx, q)
		if !errors.Is(err, index.ErrClosed) {
			return result, err
		}
	}
}

func (f *finder) close() error {
	<-f.turn
	defer func() { f.turn <- struct{}{} }()
	f.mu.Lock()
	x := f.index
	f.index, f.of = nil, scope{}
	f.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.Close()
}
