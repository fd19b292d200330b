package index

import (
	"context"
	"math"
)

// scratch is the memory of one search, by item. It is given back clean.
type scratch struct {
	verdict []byte
	// of the term that is looked up
	mass  []float64
	in    []presence
	found []uint32
	// of the word of the query, the best of its alternatives
	best, bestName, bestServer, bestWeight []float64
	answered                               []uint32
	// of the whole query
	total, covered, named, served []float64
	seen                          []bool
	items                         []uint32
	// what each word gave to whom; ends is where the parts of a word end
	parts  []part
	ends   []int
	worths []float64
	// of the clause, and of the best clause
	clauseSum, clauseCovered, clause []float64
}

// presence says in which of the names a term stands.
type presence byte

const (
	inName presence = 1 << iota
	inServer
)

// part is what a word of the query gives an item, and how much of the query is
// answered by it.
type part struct {
	item           uint32
	value, covered float64
}

func newScratch(n int) *scratch {
	s := &scratch{verdict: make([]byte, n), in: make([]presence, n), seen: make([]bool, n)}
	for _, each := range []*[]float64{
		&s.mass, &s.best, &s.bestName, &s.bestServer, &s.bestWeight, &s.total, &s.covered, &s.named, &s.served,
		&s.clauseSum, &s.clauseCovered, &s.clause,
	} {
		*each = make([]float64, n)
	}
	return s
}

// clean makes the scratch as new. The parts of term and word are clean already,
// unless a lookup failed.
func (s *scratch) clean(failed bool) {
	clear(s.verdict)
	if failed {
		clear(s.mass)
		clear(s.in)
		clear(s.best)
		clear(s.bestName)
		clear(s.bestServer)
		clear(s.bestWeight)
	}
	for _, item := range s.items {
		s.total[item], s.covered[item], s.named[item], s.served[item] = 0, 0, 0, 0
		s.clause[item], s.seen[item] = 0, false
	}
	s.found, s.answered, s.items = s.found[:0], s.answered[:0], s.items[:0]
	s.parts, s.ends, s.worths = s.parts[:0], s.ends[:0], s.worths[:0]
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
// caller cleans mass and in of the items in found.
func (s *scratch) gather(ctx context.Context, l *lookup, term string) (float64, error) {
	s.found = s.found[:0]
	where := l.tables.words.has(term)
	for f, field := range l.fields {
		if where&(1<<f) == 0 {
			continue
		}
		mean := l.tables.means[f]
		err := l.each(ctx, field.label, term, true, func(p posting) bool {
			if s.mass[p.item] == 0 {
				s.found = append(s.found, p.item)
			}
			s.mass[p.item] += field.weigh(p, mean)
			switch f {
			case fieldName:
				s.in[p.item] |= inName
			case fieldServer:
				s.in[p.item] |= inServer
			}
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	return rarity(len(s.found), len(l.tables.order)), nil
}

// score gives every item that answers a word of the query its BM25F score, with
// the share of the query it answers, the shares of its name and of its server's
// that are said, the clause it answers best, and the pairs that stay together.
func (s *scratch) score(ctx context.Context, l *lookup, p *plan) error {
	all := 0.0
	rare := map[string]float64{}
	for _, w := range p.terms {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		worth, err := s.answer(ctx, l, w)
		if err != nil {
			return err
		}
		rare[w.term] = worth
		if worth == 0 {
			worth = rarity(0, len(l.tables.order))
		}
		worth *= w.emphasis()
		all += worth
		for _, item := range s.answered {
			if l.filter.passes(item) {
				s.see(item)
				got := part{item, s.best[item] * w.emphasis(), worth * s.bestWeight[item]}
				s.parts = append(s.parts, got)
				s.total[item] += got.value
				s.covered[item] += got.covered
				s.named[item] += s.bestName[item]
				s.served[item] += s.bestServer[item]
			}
			s.best[item], s.bestName[item], s.bestServer[item], s.bestWeight[item] = 0, 0, 0, 0
		}
		s.ends = append(s.ends, len(s.parts))
		s.worths = append(s.worths, worth)
	}
	for _, item := range s.items {
		s.total[item] *= s.coverage(item, all) * s.naming(item, l.tables)
	}
	s.addClauses(l.tables, p)
	return s.addPairs(ctx, l, p, rare)
}

// answer gathers the best of the alternatives of a word, by item, and returns
// the rarity of the word; 0 where no item has one of them.
func (s *scratch) answer(ctx context.Context, l *lookup, w *wanted) (worth float64, err error) {
	s.answered = s.answered[:0]
	for _, alt := range w.alternatives {
		idf, err := s.gather(ctx, l, alt.term)
		if err != nil {
			return 0, err
		}
		if worth == 0 && len(s.found) > 0 {
			worth = idf
		}
		// A rare synonym must not outweigh the word that was said, above all in a small
		// catalogue, in which every item can hold that.
		idf = min(idf, rarerAtMost*worth)
		for _, item := range s.found {
			if value := alt.weight * idf * saturate(s.mass[item]); value > s.best[item] {
				if s.best[item] == 0 {
					s.answered = append(s.answered, item)
				}
				s.best[item] = value
			}
			s.bestWeight[item] = max(s.bestWeight[item], alt.weight)
			if s.in[item]&inName != 0 {
				s.bestName[item] = max(s.bestName[item], idf*alt.weight)
			}
			if s.in[item]&inServer != 0 {
				s.bestServer[item] = max(s.bestServer[item], idf*alt.weight)
			}
			s.mass[item], s.in[item] = 0, 0
		}
	}
	return worth, nil
}

func (s *scratch) coverage(item uint32, all float64) float64 {
	return math.Pow(s.covered[item]/all, coveragePower)
}

func (s *scratch) naming(item uint32, t *tables) float64 {
	naming := 1.0
	if t.names[item] > 0 {
		naming += nameShare * min(s.named[item]/float64(t.names[item]), 1)
	}
	if t.servers[item] > 0 {
		naming += serverShare * min(s.served[item]/float64(t.servers[item]), 1)
	}
	return naming
}

// addClauses rewards items that answer one sentence of several: a request of
// several needs is met by several items, of which none covers the whole.
func (s *scratch) addClauses(t *tables, p *plan) {
	if len(p.clauses) < 2 {
		return
	}
	var touched []uint32
	for _, clause := range p.clauses {
		all := 0.0
		touched = touched[:0]
		for _, term := range clause {
			all += s.worths[term]
			start := 0
			if term > 0 {
				start = s.ends[term-1]
			}
			for _, got := range s.parts[start:s.ends[term]] {
				if s.clauseSum[got.item] == 0 {
					touched = append(touched, got.item)
				}
				s.clauseSum[got.item] += got.value
				s.clauseCovered[got.item] += got.covered
			}
		}
		for _, item := range touched {
			score := s.clauseSum[item] * math.Pow(s.clauseCovered[item]/all, coveragePower)
			s.clause[item] = max(s.clause[item], score)
			s.clauseSum[item], s.clauseCovered[item] = 0, 0
		}
	}
	for _, item := range s.items {
		s.clause[item] *= clauseShare * s.naming(item, t)
		s.total[item] += s.clause[item]
	}
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
