package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	// The Myers diff with a time limit, so that what a hostile server writes
	// cannot keep the review of it from ending.
	"github.com/sergi/go-diff/diffmatchpatch"
)

// segment is a piece of a text that stayed, went or came.
type segment struct {
	Op   segmentOp `json:"op"`
	Text string    `json:"text"`
}

type segmentOp string

const (
	stayed segmentOp = "equal"
	went   segmentOp = "delete"
	came   segmentOp = "insert"
)

// textDiff says how before became after: which lines stayed, and within those
// that did not, which words. The texts of stayed and went together are before,
// those of stayed and came are after.
func textDiff(before, after string) (list []segment) {
	var gone, fresh string
	flush := func() {
		list = append(list, wordDiff(gone, fresh)...)
		gone, fresh = "", ""
	}
	for _, s := range diffBy(lineLength, before, after) {
		switch s.Op {
		case went:
			gone += s.Text
		case came:
			fresh += s.Text
		default:
			flush()
			list = append(list, s)
		}
	}
	flush()
	return joined(list)
}

// wordDiff is textDiff in words alone.
func wordDiff(before, after string) []segment { return tidy(diffBy(wordLength, before, after)) }

// diffBy compares texts in pieces of a length that next tells.
func diffBy(next func(string) int, before, after string) (list []segment) {
	book := wordBook{next: next, number: map[string]rune{}}
	a, b := book.write(before), book.write(after)
	if book.full {
		return slices.DeleteFunc([]segment{{went, before}, {came, after}}, func(s segment) bool { return s.Text == "" })
	}
	for _, d := range diffmatchpatch.New().DiffMainRunes(a, b, false) {
		op := map[diffmatchpatch.Operation]segmentOp{
			diffmatchpatch.DiffEqual: stayed, diffmatchpatch.DiffDelete: went, diffmatchpatch.DiffInsert: came,
		}[d.Type]
		list = append(list, segment{op, book.read(d.Text)})
	}
	return list
}

// joined makes one of neighbours of one kind.
func joined(list []segment) (out []segment) {
	for _, s := range list {
		if last := len(out) - 1; last >= 0 && out[last].Op == s.Op {
			out[last].Text += s.Text
			continue
		}
		out = append(out, s)
	}
	return out
}

// tidy puts what changed at one place together, deletions first: also where
// nothing but a single blank between two changes has stayed.
func tidy(list []segment) []segment {
	var out []segment
	var gone, fresh strings.Builder
	flush := func() {
		if gone.Len() > 0 {
			out = append(out, segment{went, gone.String()})
		}
		if fresh.Len() > 0 {
			out = append(out, segment{came, fresh.String()})
		}
		gone.Reset()
		fresh.Reset()
	}
	for i, s := range list {
		changing := gone.Len() > 0 && fresh.Len() > 0
		switch {
		case s.Op == went:
			gone.WriteString(s.Text)
		case s.Op == came:
			fresh.WriteString(s.Text)
		case s.Text == " " && changing && i+2 < len(list) && list[i+1].Op != stayed && list[i+2].Op != stayed:
			gone.WriteString(s.Text)
			fresh.WriteString(s.Text)
		default:
			flush()
			out = append(out, s)
		}
	}
	flush()
	return out
}

// wordBook gives every word, or whatever else a text is made of, a character of
// its own.
type wordBook struct {
	next   func(text string) int // the length in bytes of the first word
	number map[string]rune
	words  []string
	full   bool // there are more words than characters
}

// Characters that stand for words; those between first and gap are followed by
// the ones that are not to be used.
const (
	firstNumber = 0x21
	gapStart    = 0xd800
	gapEnd      = 0x10000
)

func (b *wordBook) write(text string) []rune {
	var out []rune
	for text != "" {
		n := b.next(text)
		word := text[:n]
		text = text[n:]
		r, known := b.number[word]
		if !known {
			r = rune(firstNumber + len(b.words))
			if r >= gapStart {
				r += gapEnd - gapStart
			}
			if r > unicode.MaxRune {
				b.full = true
				return nil
			}
			b.number[word] = r
			b.words = append(b.words, word)
		}
		out = append(out, r)
	}
	return out
}

func (b *wordBook) read(numbers string) string {
	var out strings.Builder
	for _, r := range numbers {
		if r >= gapEnd {
			r -= gapEnd - gapStart
		}
		out.WriteString(b.words[r-firstNumber])
	}
	return out.String()
}

// lineLength is the length in bytes of the line that a text begins with.
func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// wordLength is the length in bytes of the word that a text begins with: letters
// and digits, or blanks, or any other character alone.
func wordLength(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	same := func(rune) bool { return false }
	switch {
	case inWord(r):
		same = inWord
	case r == ' ':
		same = func(r rune) bool { return r == ' ' }
	}
	for size < len(text) {
		next, n := utf8.DecodeRuneInString(text[size:])
		if !same(next) {
			break
		}
		size += n
	}
	return size
}

func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_') && !hidden(r) && r != utf8.RuneError
}
