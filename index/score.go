package index

import (
	"context"
	"math"
)

// scratch is the memory of one search, by item. It is given back clean.
type scratch struct {
	verdict []byte
	// of the term that is looked up
	mass   []float64
	inName []bool
	found  []uint32
	// of the word of the query, the best of its alternatives
	best, bestName []float64
	answered       []uint32
	// of the whole query
	total, covered, named []float64
	seen                  []bool
	items                 []uint32
}

func newScratch(n int) *scratch {
	return &scratch{
		verdict: make([]byte, n), mass: make([]float64, n), inName: make([]bool, n),
		best: make([]float64, n), bestName: make([]float64, n),
		total: make([]float64, n), covered: make([]float64, n), named: make([]float64, n), seen: make([]bool, n),
	}
}

// clean makes the scratch as new. The parts of term and word are clean already,
// unless a lookup failed.
func (s *scratch) clean(failed bool) {
	clear(s.verdict)
	if failed {
		clear(s.mass)
		clear(s.inName)
		clear(s.best)
		clear(s.bestName)
	}
	for _, item := range s.items {
		s.total[item], s.covered[item], s.named[item], s.seen[item] = 0, 0, 0, false
	}
	s.found, s.answered, s.items = s.found[:0], s.answered[:0], s.items[:0]
}

func (s *scratch) see(item uint32) {
	if !s.seen[item] {
		s.seen[item] = true
		s.items = append(s.items, item)
	}
}

// weigh is the contribution of a field to the mass of a term: how often the
// term stands there, against how long the field is.
func (f field) weigh(p posting, mean float64) float64 {
	return f.weight * p.count / (1 - f.norm + f.norm*p.length/mean)
}

// saturate is BM25's measure of a mass.
func saturate(mass float64) float64 { return mass * (saturation + 1) / (mass + saturation) }

// gather adds up the mass of a term in all items and returns its rarity. The
// caller cleans mass and inName of the items in found.
func (s *scratch) gather(ctx context.Context, l *lookup, term string) (float64, error) {
	s.found = s.found[:0]
	for f, field := range l.fields {
		mean := l.tables.means[f]
		err := l.each(ctx, field.label, term, true, func(p posting) bool {
			if s.mass[p.item] == 0 {
				s.found = append(s.found, p.item)
			}
			s.mass[p.item] += field.weigh(p, mean)
			s.inName[p.item] = s.inName[p.item] || f == fieldName
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	return rarity(len(s.found), len(l.tables.order)), nil
}

// score gives every item that answers a word of the query its BM25F score, with
// the share of the query it answers, the share of its name that is said, and
// the pairs that stay together.
func (s *scratch) score(ctx context.Context, l *lookup, p *plan) error {
	all := 0.0
	rare := map[string]float64{}
	for _, w := range p.terms {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		worth := 0.0
		s.answered = s.answered[:0]
		for i, alt := range w.alternatives {
			idf, err := s.gather(ctx, l, alt.term)
			if err != nil {
				return err
			}
			if i == 0 || worth == 0 {
				worth = idf
				if len(s.found) == 0 {
					worth = 0
				}
				rare[w.term] = worth
			}
			for _, item := range s.found {
				if value := alt.weight * idf * saturate(s.mass[item]); value > s.best[item] {
					if s.best[item] == 0 {
						s.answered = append(s.answered, item)
					}
					s.best[item] = value
				}
				if s.inName[item] {
					s.bestName[item] = max(s.bestName[item], idf*alt.weight)
				}
				s.mass[item], s.inName[item] = 0, false
			}
		}
		if worth == 0 {
			worth = rarity(0, len(l.tables.order))
		}
		all += worth * w.emphasis()
		for _, item := range s.answered {
			if l.filter.passes(item) {
				s.see(item)
				s.total[item] += s.best[item] * w.emphasis()
				s.covered[item] += worth * w.emphasis()
				s.named[item] += s.bestName[item]
			}
			s.best[item], s.bestName[item] = 0, 0
		}
	}
	for _, item := range s.items {
		s.total[item] *= s.coverage(item, all) * s.naming(item, l.tables)
	}
	return s.addPairs(ctx, l, p, rare)
}

func (s *scratch) coverage(item uint32, all float64) float64 {
	return math.Pow(s.covered[item]/all, coveragePower)
}

func (s *scratch) naming(item uint32, t *tables) float64 {
	if t.names[item] == 0 {
		return 1
	}
	return 1 + nameShare*min(s.named[item]/float64(t.names[item]), 1)
}

// addPairs rewards items in which words stand together that stand together in
// the query.
func (s *scratch) addPairs(ctx context.Context, l *lookup, p *plan, rare map[string]float64) error {
	for _, pair := range p.pairs {
		bonus := pairWeight * min(rare[pair[0]], rare[pair[1]])
		if bonus == 0 {
			continue
		}
		err := l.each(ctx, pairField, pair[0]+" "+pair[1], false, func(p posting) bool {
			if s.seen[p.item] {
				s.total[p.item] += bonus
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
