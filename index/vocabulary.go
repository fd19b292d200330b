package index

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// vocabulary is every term of an index, to find what an unknown word may mean.
// bleve could tell too, but the automaton it builds for a long word takes tens
// of milliseconds.
type vocabulary struct {
	// text is the terms in alphabetical order, a line each, with the set of the
	// fields that have the term as two hexadecimal digits.
	text string

	once    sync.Once
	entries []vocabularyEntry
}

type vocabularyEntry struct {
	term   string
	length int
	mask   uint64
}

func newVocabulary(fields map[string]uint8) *vocabulary {
	var text strings.Builder
	for _, term := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&text, "%s %02x\n", term, fields[term])
	}
	return &vocabulary{text: text.String()}
}

// has is the set of the fields that have a term, a bit each. Asking bleve costs
// an allocation for each field.
func (v *vocabulary) has(term string) uint8 {
	low, high := 0, len(v.text)
	for low < high {
		middle := low + (high-low)/2
		start := strings.LastIndexByte(v.text[low:middle], '\n') + 1 + low
		end := start + strings.IndexByte(v.text[start:], '\n')
		line, digits, _ := strings.Cut(v.text[start:end], " ")
		switch c := strings.Compare(line, term); {
		case c < 0:
			low = end + 1
		case c > 0:
			high = start
		default:
			fields, _ := strconv.ParseUint(digits, 16, 8)
			return uint8(fields)
		}
	}
	return 0
}

// letters is a set of the characters of a term: two terms whose sets differ by
// more than two characters an edit are further apart than these edits.
func letters(term string) (mask uint64) {
	for _, r := range term {
		mask |= 1 << (uint32(r) % 64)
	}
	return mask
}

func (v *vocabulary) load() {
	v.once.Do(func() {
		for line := range strings.Lines(v.text) {
			term, _, _ := strings.Cut(line, " ")
			if length := utf8.RuneCountInString(term); length >= 3 {
				v.entries = append(v.entries, vocabularyEntry{term, length, letters(term)})
			}
		}
	})
}

// near are the terms that are exactly so many edits away, in alphabetical
// order.
func (v *vocabulary) near(term string, edits int) []string {
	v.load()
	var near []string
	length, mask := utf8.RuneCountInString(term), letters(term)
	asked := []rune(term)
	for i := range v.entries {
		e := &v.entries[i]
		if e.length < length-edits || e.length > length+edits || bits.OnesCount64(e.mask^mask) > 2*edits {
			continue
		}
		if distance(asked, e.term, edits) == edits {
			near = append(near, e.term)
		}
	}
	return near
}

// distance is the number of letters to insert, drop, replace, or swap with
// their neighbour, to make one term of the other; limit+1 where it is more than
// limit.
func distance(a []rune, other string, limit int) int {
	var space [3][maxWord + 2]int
	var letters [maxWord]rune
	b := letters[:0]
	for _, r := range other {
		b = append(b, r)
	}
	if len(a) > maxWord || len(b) > maxWord {
		return limit + 1
	}
	before, last, row := space[0][:len(b)+1], space[1][:len(b)+1], space[2][:len(b)+1]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
