package index

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	api "github.com/blevesearch/bleve_index_api"
)

// Ways in which a term of the index answers a word of the query.
const (
	viaWord     = "word"
	viaSynonym  = "synonym"
	viaTypo     = "typo"
	viaCompound = "compound"
	viaPart     = "part"
)

// alternative is a term of the index that answers a word of the query.
type alternative struct {
	term   string
	weight float64
	via    string
}

// wanted is a word of the query.
type wanted struct {
	word  string // as it was written, in small letters
	term  string // its stem
	count float64
	scale float64 // less than 1 for a word of politeness
	// alternatives begin with the term itself.
	alternatives []alternative
}

// plan is a query as it is looked up.
type plan struct {
	text  string
	terms []*wanted
	pairs [][2]string
	// clauses are the sentences of the text, by the numbers of their terms.
	clauses [][]int
}

// newPlan reads the text of a query; it looks nothing up yet.
func newPlan(text string) *plan {
	p := &plan{text: strings.TrimSpace(cut(text, maxQuery))}
	s := newStemmer()
	at := map[string]int{}
	pairs := map[[2]string]bool{}
	last, before := "", 0
	var clause []int
	for _, w := range split(p.text) {
		if len(clause) > 0 && endsClause(p.text[before:w.start]) {
			p.clauses = append(p.clauses, clause)
			clause = nil
		}
		before = w.end
		if s.stop[w.text] {
			continue
		}
		term := s.stem(w.text)
		number, known := at[term]
		switch {
		case known:
			p.terms[number].count++
		case len(p.terms) < maxTerms:
			number, known = len(p.terms), true
			at[term] = number
			p.terms = append(p.terms, newWanted(w.text, term))
		}
		if known && !slices.Contains(clause, number) {
			clause = append(clause, number)
		}
		if pair := [2]string{last, term}; last != "" && last != term && len(p.pairs) < maxTerms && !pairs[pair] {
			pairs[pair] = true
			p.pairs = append(p.pairs, pair)
		}
		last = term
	}
	if len(clause) > 0 {
		p.clauses = append(p.clauses, clause)
	}
	return p
}

// endsClause reports whether what stands between two words ends a sentence.
func endsClause(between string) bool {
	between = strings.TrimRight(between, " ")
	return strings.ContainsAny(between, "?!;\n。") || strings.Contains(between, ". ") || strings.HasSuffix(between, ".")
}

func newWanted(word, term string) *wanted {
	w := &wanted{word: word, term: term, count: 1, scale: 1, alternatives: []alternative{{term, 1, viaWord}}}
	if politeWords()[word] {
		w.scale = politeWeight
	}
	return w
}

// emphasis is how much more a word counts that the query repeats, and less one
// of politeness.
func (w *wanted) emphasis() float64 { return w.scale * (1 + repeated*math.Log(w.count)) }

func (w *wanted) add(term string, weight float64, via string) {
	for _, have := range w.alternatives {
		if have.term == term {
			return
		}
	}
	w.alternatives = append(w.alternatives, alternative{term, weight, via})
}

// expand adds to each word what else may answer it: words of the same class,
// the likely meaning of a word that nothing holds, words written as one or
// apart.
func (p *plan) expand(ctx context.Context, l *lookup) error {
	s := newStemmer()
	known := make([]bool, len(p.terms))
	for i, w := range p.terms {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var err error
		if known[i], err = l.has(ctx, w.term); err != nil {
			return err
		}
		for _, other := range synonyms().of(w.term) {
			w.add(other.term, other.weight, viaSynonym)
		}
	}
	for i, w := range p.terms {
		if i > 0 {
			before := p.terms[i-1]
			joined := s.stem(before.word + w.word)
			if len(joined) > maxWord || utf8.RuneCountInString(joined) < 4 {
				continue
			}
			there, err := l.has(ctx, joined)
			if err != nil {
				return err
			}
			if there {
				before.add(joined, joinedWeight, viaCompound)
				w.add(joined, joinedWeight, viaCompound)
				known[i-1], known[i] = true, true
			}
		}
	}
	for i, w := range p.terms {
		if known[i] {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.guess(ctx, l, s); err != nil {
			return err
		}
	}
	return nil
}

// guess finds what an unknown word may mean.
func (w *wanted) guess(ctx context.Context, l *lookup, s *stemmer) error {
	length := utf8.RuneCountInString(w.word)
	if length < 4 {
		return nil
	}
	near, err := l.nearest(ctx, w.term, length >= 7)
	if err != nil {
		return err
	}
	if near != "" {
		w.add(near, typoWeight, viaTypo)
		for _, other := range synonyms().of(near) {
			w.add(other.term, typoWeight*other.weight, viaSynonym)
		}
		return nil
	}
	if length < 7 {
		return nil
	}
	for at := range w.word {
		left, right := w.word[:at], w.word[at:]
		if utf8.RuneCountInString(left) < 3 || utf8.RuneCountInString(right) < 3 {
			continue
		}
		left, right = s.stem(left), s.stem(right)
		if there, err := l.has(ctx, left); err != nil || !there {
			if err != nil {
				return err
			}
			continue
		}
		if there, err := l.has(ctx, right); err != nil || !there {
			if err != nil {
				return err
			}
			continue
		}
		w.add(left, partWeight, viaPart)
		w.add(right, partWeight, viaPart)
		return nil
	}
	return nil
}

// lookup reads the terms of the index. has and nearest see only items that
// pass the filter, so that no caller learns a word of what is not for them.
type lookup struct {
	reader api.IndexReader
	tables *tables
	filter *filter
	fields [fieldCount]field
}

// posting is a term in a field of an item.
type posting struct {
	item          uint32
	count, length float64
}

// each calls do for every item that has a term in a field, until do returns
// false.
func (l *lookup) each(ctx context.Context, label, term string, sized bool, do func(posting) bool) error {
	r, err := l.reader.TermFieldReader(ctx, []byte(term), label, sized, sized, false)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var doc api.TermFieldDoc
	for {
		next, err := r.Next(&doc)
		if err != nil || next == nil {
			return err
		}
		number := next.ID.Value()
		if number >= uint64(len(l.tables.order)) {
			continue
		}
		p := posting{item: l.tables.order[number]}
		if sized {
			p.count = float64(next.Freq)
			// The norm is one over the root of the length.
			p.length = math.Round(1 / (next.Norm * next.Norm))
		}
		if !do(p) {
			return nil
		}
	}
}

// has reports whether an item that passes has the term.
func (l *lookup) has(ctx context.Context, term string) (bool, error) {
	found := false
	where := l.tables.words.has(term)
	for i, f := range l.fields {
		if where&(1<<i) == 0 {
			continue
		}
		err := l.each(ctx, f.label, term, false, func(p posting) bool {
			found = l.filter.passes(p.item)
			return !found
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// nearest is the term that most likely was meant by an unknown one: one edit
// away, or two where the first letter agrees and far is set; of several the
// most frequent, then the first of the alphabet. "" = none.
func (l *lookup) nearest(ctx context.Context, term string, far bool) (string, error) {
	edits := 1
	if far {
		edits = 2
	}
	first, _ := utf8.DecodeRuneInString(term)
	for distance := 1; distance <= edits; distance++ {
		best, most := "", 0
		for _, near := range l.tables.words.near(term, distance) {
			if distance > 1 && !strings.HasPrefix(near, string(first)) {
				continue
			}
			count, err := l.count(ctx, near)
			if err != nil {
				return "", err
			}
			if count > most {
				best, most = near, count
			}
		}
		if best != "" {
			return best, nil
		}
	}
	return "", nil
}

// count is how often fields of items that pass have the term.
func (l *lookup) count(ctx context.Context, term string) (int, error) {
	count := 0
	where := l.tables.words.has(term)
	for i, f := range l.fields {
		if where&(1<<i) == 0 {
			continue
		}
		err := l.each(ctx, f.label, term, false, func(p posting) bool {
			if l.filter.passes(p.item) {
				count++
			}
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	return count, nil
}
