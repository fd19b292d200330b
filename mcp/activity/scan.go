package activity

import (
	"slices"
	"strings"
)

// Limits of what is looked at.
const (
	// ScanLimit is how many bytes of a payload are looked at for findings.
	ScanLimit = 256 << 10
	// shortestRun is the shortest run of characters that can be a secret by
	// itself; in text and JSON few are as long.
	shortestRun = 16
)

// span is a place in a payload and what is there.
type span struct {
	start, end int
	kind       string
}

// The classes of bytes.
const (
	word  = 1 << iota // letters, digits, _ and -
	joint             // what stands between words of one run: + / . = ~
	digit             // 0 to 9
	upper             // A to Z
	lower             // a to z
	hexa              // 0 to 9 and a to f
	coded             // letters, digits, + and /
)

// classes gives each byte its classes.
var classes = func() (table [256]byte) {
	for c := range table {
		switch c := byte(c); {
		case '0' <= c && c <= '9':
			table[c] = word | digit | hexa | coded
		case 'a' <= c && c <= 'f':
			table[c] = word | lower | hexa | coded
		case 'g' <= c && c <= 'z':
			table[c] = word | lower | coded
		case 'A' <= c && c <= 'Z':
			table[c] = word | upper | coded
		case c == '_' || c == '-':
			table[c] = word
		case c == '+' || c == '/':
			table[c] = joint | coded
		case c == '.' || c == '=' || c == '~':
			table[c] = joint
		}
	}
	return table
}()

// Scan finds what is sensitive in the first [ScanLimit] bytes of a payload: keys
// of the known providers, private keys, tokens, card numbers, strings of high
// entropy. What is returned holds kinds and counts alone, sorted by kind, with
// an empty Where. It takes some 100 µs for 64 KiB.
func Scan(payload []byte) []Finding {
	return tally(find(payload[:min(len(payload), ScanLimit)]), "")
}

// tally counts spans by kind.
func tally(spans []span, where string) (list []Finding) {
	for _, s := range spans {
		i := slices.IndexFunc(list, func(f Finding) bool { return f.Kind == s.kind })
		if i < 0 {
			i = len(list)
			list = append(list, Finding{Kind: s.kind, Where: where})
		}
		list[i].Count++
	}
	slices.SortFunc(list, func(a, b Finding) int { return strings.Compare(a.Kind, b.Kind) })
	return list
}

// find returns what is sensitive in b, in order and without overlaps.
func find(b []byte) []span {
	f := finder{b: b}
	f.runs()
	f.marked()
	return settle(f.spans)
}

// finder looks for what is sensitive in b.
type finder struct {
	b     []byte
	spans []span
	line  line // what looked random last
}

func (f *finder) add(start, end int, kind string) {
	f.spans = append(f.spans, span{start, end, kind})
}

// runs looks at the runs of word and joint characters.
func (f *finder) runs() {
	b := f.b
	for i := 0; i < len(b); {
		if classes[b[i]]&(word|joint) == 0 {
			i++
			continue
		}
		start := i
		for i++; i < len(b) && classes[b[i]]&(word|joint) != 0; i++ {
		}
		if i-start >= shortestRun {
			f.run(f.unescaped(start), i)
		} else if classes[b[start]]&digit != 0 {
			f.card(start)
		}
	}
}

// unescaped steps over the letter of an escape sequence of JSON: in "\nghp_x"
// the n is no part of what follows. Where strings were quoted twice that holds
// as well.
func (f *finder) unescaped(start int) int {
	if start == 0 || f.b[start-1] != '\\' {
		return start
	}
	if f.b[start] == 'u' {
		return start + 5 // a run is longer
	}
	return start + 1
}

// run looks at one run, piece by piece. A piece is what can be base64 of either
// alphabet.
func (f *finder) run(start, end int) {
	for i := start; i < end; {
		if classes[f.b[i]]&(word|coded) == 0 {
			i++
			continue
		}
		piece := i
		i += count(f.b[i:end], word|coded)
		if next := f.words(piece, i, end); next > 0 {
			i = max(i, next)
		} else if i-piece >= shortestRandom && i-piece <= longestRandom {
			f.random(piece, i)
		}
	}
}

// words looks at the words of a piece, in a run that ends at runEnd, and returns
// the end of what it found last, 0 for nothing.
func (f *finder) words(start, end, runEnd int) (found int) {
	for i := start; i < end; {
		if classes[f.b[i]]&word == 0 {
			i++
			continue
		}
		w := i
		i += count(f.b[i:end], word)
		if next := f.word(w, i, runEnd); next > 0 {
			found = next
			i = max(i, next)
		}
	}
	return found
}

// word is words for the word from start to end.
func (f *finder) word(start, end, runEnd int) int {
	text := f.b[start:runEnd]
	if n, kind := known(text, end-start); n > 0 {
		f.add(start, start+n, kind)
		return start + n
	}
	if classes[text[0]]&digit != 0 {
		return f.card(start)
	}
	if end-start == 35 && text[0] == 'A' && text[1] == 'A' && start > 9 && f.b[start-1] == ':' {
		n := countBack(f.b[:start-1], digit)
		if n >= 8 && n <= 10 {
			f.add(start-1-n, end, "telegram_token")
			return end
		}
	}
	return 0
}

// count returns how many bytes at the start of b are of a class.
func count(b []byte, class byte) int {
	n := 0
	for n < len(b) && classes[b[n]]&class != 0 {
		n++
	}
	return n
}

// countBack is count at the end of b.
func countBack(b []byte, class byte) int {
	n := 0
	for n < len(b) && classes[b[len(b)-1-n]]&class != 0 {
		n++
	}
	return n
}

// settle sorts spans and joins those that overlap. What is known by its form
// keeps its name before what only looks random.
func settle(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.start - b.start })
	kept := spans[:1]
	for _, s := range spans[1:] {
		last := &kept[len(kept)-1]
		if s.start >= last.end {
			kept = append(kept, s)
			continue
		}
		last.end = max(last.end, s.end)
		if vagueness(s.kind) < vagueness(last.kind) {
			last.kind = s.kind
		}
	}
	return kept
}

// HighEntropy is the kind of a string that is known by its look alone. It may be
// an identifier.
const HighEntropy = "high_entropy"

// vagueness grows the less a kind says of what it is.
func vagueness(kind string) int {
	switch kind {
	case HighEntropy:
		return 2
	case bearerToken:
		return 1
	}
	return 0
}
