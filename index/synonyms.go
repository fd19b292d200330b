package index

import (
	_ "embed"
	"strings"
	"sync"
)

// synonymClasses are words of one meaning, a class a line.
//
//go:embed synonyms.txt
var synonymClasses string

// synonyms maps the stem of a word to those of the words of its classes.
var synonyms = sync.OnceValue(func() map[string][]string {
	s := newStemmer()
	of := map[string][]string{}
	for line := range strings.Lines(synonymClasses) {
		var class []string
		for _, w := range strings.Fields(line) {
			class = appendNew(class, s.stem(w))
		}
		for _, word := range class {
			for _, other := range class {
				if other != word {
					of[word] = appendNew(of[word], other)
				}
			}
		}
	}
	return of
})

// appendNew appends a text that the list does not yet hold.
func appendNew(list []string, text string) []string {
	for _, have := range list {
		if have == text {
			return list
		}
	}
	return append(list, text)
}
