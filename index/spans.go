package index

// Span is a part of a text: its bytes from Start up to End.
type Span struct{ Start, End int }

// Spans are the words of a text that a query asks for, in their order, for a
// terminal that marks them: the same words in any form, and those of the same
// meaning.
func Spans(query, text string) []Span {
	s := newStemmer()
	asked := map[string]bool{}
	for _, w := range newPlan(query).terms {
		asked[w.term] = true
		for _, other := range synonyms().of(w.term) {
			asked[other.term] = true
		}
	}
	var spans []Span
	for _, w := range split(cut(text, maxText)) {
		if !s.stop[w.text] && asked[s.stem(w.text)] {
			spans = append(spans, Span{w.start, w.end})
		}
	}
	return spans
}
