package index

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// synonymClasses are words of one meaning, a class a line; behind a ~ words of
// one subject.
//
//go:embed synonyms.txt
var synonymClasses string

// synonym is the stem of a word that may answer for another.
type synonym struct {
	term   string
	weight float64
}

// thesaurus finds the synonyms of a term. To bring all its words to their stems
// takes longer than to open an index, so it does that when they are asked for.
type thesaurus struct {
	classes []class
	byStart map[string][]int // the numbers of the classes with a word that starts so

	mu      sync.Mutex
	stemmer *stemmer
	known   map[string][]synonym
}

type class struct {
	words  []string
	weight float64
}

var synonyms = sync.OnceValue(func() *thesaurus {
	t := &thesaurus{byStart: map[string][]int{}, stemmer: newStemmer(), known: map[string][]synonym{}}
	for line := range strings.Lines(synonymClasses) {
		c := class{weight: synonymWeight}
		if words, ok := strings.CutPrefix(line, "~"); ok {
			line, c.weight = words, relatedWeight
		}
		c.words = strings.Fields(line)
		number := len(t.classes)
		t.classes = append(t.classes, c)
		for _, word := range c.words {
			if start := startOf(word); !slices.Contains(t.byStart[start], number) {
				t.byStart[start] = append(t.byStart[start], number)
			}
		}
	}
	return t
})

// startOf is what a word and its stem have in common.
func startOf(word string) string { return word[:min(2, len(word))] }

// of are the synonyms of a term, those of one meaning first.
func (t *thesaurus) of(term string) []synonym {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.known[term]
	if ok {
		return found
	}
	start := startOf(term)
	for _, number := range t.byStart[start] {
		c := t.classes[number]
		if slices.ContainsFunc(c.words, func(word string) bool {
			return strings.HasPrefix(word, start) && t.stemmer.stem(word) == term
		}) {
			found = t.appendClass(found, c, term)
		}
	}
	if found != nil {
		t.known[term] = found
	}
	return found
}

// appendClass appends what of a class is neither the term nor there already.
func (t *thesaurus) appendClass(found []synonym, c class, term string) []synonym {
	for _, word := range c.words {
		other := t.stemmer.stem(word)
		same := func(have synonym) bool { return have.term == other }
		if other != term && !slices.ContainsFunc(found, same) {
			found = append(found, synonym{other, c.weight})
		}
	}
	return found
}
