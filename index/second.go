package index

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"mcpproxy/mcp/catalog"
)

const (
	// candidates is how many of the best hits a second scorer is asked about.
	candidates = 50
	// patience is how long a search waits for a second scorer.
	patience = 2 * time.Second
)

// Scorer gives a second opinion on items that fit a query.
type Scorer interface {
	// Scores returns a number for each of at most 50 items, in their order: 1 =
	// means what the query means, 0 or less = has nothing to do with it. It ends
	// with ctx. It may be called by several goroutines at once.
	Scores(ctx context.Context, query string, items []*catalog.Item) ([]float64, error)
}

// second is a scorer at work.
type second struct {
	scorer   Scorer
	weight   float64
	patience time.Duration
	failed   func(error)
}

// rank orders the hits anew: of each its score, and the weight times the second
// score times the best score by words. Items that the query names stay first.
// Without an answer in time the hits stay as they are.
func (s *second) rank(ctx context.Context, text string, hits []Hit) {
	asked := hits[:min(candidates, len(hits))]
	items := make([]*catalog.Item, len(asked))
	best := 0.0
	for i, hit := range asked {
		items[i] = hit.Item
		if !hit.exact {
			best = max(best, hit.Score)
		}
	}
	if best == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	scores, err := s.scorer.Scores(limited, text, items)
	if err == nil && len(scores) != len(items) {
		err = fmt.Errorf("%d scores of %d items", len(scores), len(items))
	}
	if err != nil {
		if ctx.Err() == nil {
			s.failed(fmt.Errorf("the second scorer of the search gave no answer, words alone decide: %w", err))
		}
		return
	}
	for i := range asked {
		share := 0.0
		if hit := &asked[i]; hit.exact {
			share = 1
		} else if !math.IsNaN(scores[i]) {
			share = min(max(scores[i], 0), 1)
		}
		added := s.weight * share * best
		asked[i].Score += added
		if e := asked[i].Explanation; e != nil {
			e.Second = added
		}
	}
	slices.SortStableFunc(asked, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}
