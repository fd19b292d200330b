package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	api "github.com/blevesearch/bleve_index_api"
)

// Search ranks the items that fit a query. Any text has a result, an empty one
// an empty result; the error is that of ctx, ErrClosed, or one of reading the
// files.
func (x *Index) Search(ctx context.Context, q Query) (Result, error) {
	q.Limit = min(max(q.Limit, 1), MaxLimit)
	limit := q.Limit
	if x.second != nil {
		q.Limit = max(limit, candidates)
	}
	result, err := x.byWords(ctx, q)
	if err != nil {
		return Result{}, err
	}
	if x.second != nil {
		x.second.rank(ctx, q.Text, result.Hits)
		result.Hits = result.Hits[:min(limit, len(result.Hits))]
	}
	return result, nil
}

// byWords is the search without the second scorer, for which nothing is to be
// locked.
func (x *Index) byWords(ctx context.Context, q Query) (Result, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return Result{}, ErrClosed
	}
	var result Result
	err := withReader(x.index, func(reader api.IndexReader) (err error) {
		result, err = x.search(ctx, reader, q)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

func (x *Index) search(ctx context.Context, reader api.IndexReader, q Query) (_ Result, err error) {
	s, _ := x.scratch.Get().(*scratch)
	failed := true
	defer func() {
		s.clean(failed)
		x.scratch.Put(s)
	}()
	f := newFilter(&q, x.items, s.verdict)
	l := &lookup{reader: reader, tables: x.tables, filter: f, fields: fields()}
	p := newPlan(q.Text)
	if err := p.expand(ctx, l); err != nil {
		return Result{}, err
	}
	if err := s.score(ctx, l, p); err != nil {
		return Result{}, err
	}
	levels, err := s.raiseExact(ctx, l, p.text, x.servers)
	if err != nil {
		return Result{}, err
	}
	// Items are numbered by name.
	slices.SortFunc(s.items, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.total[b], s.total[a]), cmp.Compare(a, b))
	})
	result := Result{Total: len(s.items), Hits: []Hit{}}
	for _, item := range s.items[:min(q.Limit, len(s.items))] {
		result.Hits = append(result.Hits, Hit{Item: x.items[item], Score: s.total[item], exact: levels[item] > 0})
	}
	if q.Explain {
		e := explainer{lookup: l, plan: p, levels: levels}
		if err := e.explain(ctx, s, result.Hits); err != nil {
			return Result{}, err
		}
	}
	failed = false
	return result, nil
}
