package index

import (
	"context"
)

// Explanation says why an item has its score:
// (sum of the words) x coverage x naming + clause + pairs + exact + second.
type Explanation struct {
	Words []WordScore `json:"words"`
	// Coverage grows with the share of the query that the item answers, 0 to 1.
	Coverage float64 `json:"coverage"`
	// Naming grows with the shares of the item's name and of its server's that the
	// query says, 1 to 1.65.
	Naming float64 `json:"naming"`
	// Clause is what is added for the sentence of the query that the item answers
	// best, where there are several.
	Clause float64 `json:"clause,omitempty"`
	// Pairs and Exact are what is added for words that stay together, and for a
	// query that is the item's name.
	Pairs float64 `json:"pairs,omitempty"`
	Exact float64 `json:"exact,omitempty"`
	// Second is the share of the second scorer.
	Second float64 `json:"second,omitempty"`
}

// WordScore is what one word of the query gives an item.
type WordScore struct {
	// Word is as the query has it, in small letters; Term what answers it in the
	// item; Via one of word, synonym, typo, compound, part.
	Word string `json:"word"`
	Term string `json:"term"`
	Via  string `json:"via"`
	// Fields are where the item has the term.
	Fields []string `json:"fields"`
	Score  float64  `json:"score"`
}

// explainer computes anew, for a few items, what the scoring did not keep.
type explainer struct {
	*lookup
	plan   *plan
	levels map[uint32]int
}

func (e *explainer) explain(ctx context.Context, s *scratch, hits []Hit) error {
	place := make(map[uint32]int, len(hits))
	for i := range hits {
		place[s.items[i]] = i
		hits[i].Explanation = &Explanation{Words: []WordScore{}, Naming: 1}
	}
	all := 0.0
	rare := map[string]float64{}
	for _, w := range e.plan.terms {
		worth := 0.0
		best := make([]WordScore, len(hits))
		for _, alt := range w.alternatives {
			mass := make([]float64, len(hits))
			where := make([][]string, len(hits))
			holders := map[uint32]bool{}
			for f, field := range e.fields {
				err := e.each(ctx, field.label, alt.term, true, func(p posting) bool {
					holders[p.item] = true
					if at, ok := place[p.item]; ok {
						mass[at] += field.weigh(p, e.tables.means[f])
						where[at] = append(where[at], field.label)
					}
					return true
				})
				if err != nil {
					return err
				}
			}
			idf := rarity(len(holders), len(e.tables.order))
			if len(holders) > 0 && worth == 0 {
				worth = idf
			}
			idf = min(idf, rarerAtMost*worth)
			rare[w.term] = worth
			for at := range hits {
				if value := alt.weight * idf * saturate(mass[at]) * w.emphasis(); value > best[at].Score {
					best[at] = WordScore{w.word, alt.term, alt.via, where[at], value}
				}
			}
		}
		if worth == 0 {
			worth = rarity(0, len(e.tables.order))
		}
		all += worth * w.emphasis()
		for at := range hits {
			if best[at].Score > 0 {
				hits[at].Explanation.Words = append(hits[at].Explanation.Words, best[at])
			}
		}
	}
	return e.finish(ctx, s, hits, rare, all)
}

// finish adds what concerns the query as a whole.
func (e *explainer) finish(ctx context.Context, s *scratch, hits []Hit, rare map[string]float64, all float64) error {
	place := make(map[uint32]*Explanation, len(hits))
	for i := range hits {
		item := s.items[i]
		place[item] = hits[i].Explanation
		if all > 0 {
			hits[i].Explanation.Coverage = s.coverage(item, all)
		}
		hits[i].Explanation.Naming = s.naming(item, e.tables)
		hits[i].Explanation.Clause = s.clause[item]
	}
	for _, pair := range e.plan.pairs {
		bonus := pairWeight * min(rare[pair[0]], rare[pair[1]])
		err := e.each(ctx, pairField, pair[0]+" "+pair[1], false, func(p posting) bool {
			if at := place[p.item]; at != nil {
				at.Pairs += bonus
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	for i := range hits {
		at := hits[i].Explanation
		if e.levels[s.items[i]] == 0 {
			continue
		}
		at.Exact = hits[i].Score - at.Pairs - at.Clause
		for _, w := range at.Words {
			at.Exact -= w.Score * at.Coverage * at.Naming
		}
	}
	return nil
}
