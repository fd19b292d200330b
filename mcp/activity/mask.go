package activity

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// mask stands in the place of what is not to be kept.
const mask = "***"

// How far beyond what is kept of a payload it is looked at, in bytes.
const (
	// spare is for secrets that begin in what is kept and end behind it.
	spare = longestKey
	// margin makes up for what becomes shorter by its masks.
	margin = 4 << 10
)

// Masker finds and masks what is sensitive. It may be used by several goroutines.
// A nil *Masker knows no secrets and no names.
type Masker struct {
	secrets    *secrets
	named      *secrets // values that stood under a secret name elsewhere in the same record
	secretName func(string) bool
}

// NewMasker returns a Masker that also knows these values as secrets, in every
// form in which they turn up in JSON, and asks secretName, which may be nil,
// whether the name of a member or parameter says that its value is one.
func NewMasker(values []string, secretName func(string) bool) *Masker {
	return &Masker{secrets: newSecrets(values), secretName: secretName}
}

// Find is [Scan] over the whole of a payload, with the secrets that the Masker
// knows.
func (m *Masker) Find(payload []byte) []Finding { return tally(m.find(payload), "") }

// find is the function of that name with the Masker's secrets.
func (m *Masker) find(b []byte) []span {
	spans := find(b)
	if m == nil {
		return spans
	}
	n := len(spans)
	spans = m.named.find(b, m.secrets.find(b, spans))
	if n > 0 && len(spans) > n || m.named != nil {
		return settle(spans)
	}
	return spans
}

// knowing is the Masker of the rest of a record in whose request these values, as
// they stand in its JSON, were under secret names.
func (m *Masker) knowing(quoted []string) *Masker {
	var values []string
	for _, q := range quoted {
		var value string
		if json.Unmarshal([]byte(`"`+q+`"`), &value) == nil && len(value) >= shortestNamed {
			values = append(values, value)
		}
	}
	if m == nil || len(values) == 0 {
		return m
	}
	more := *m
	more.named = newSecrets(values)
	return &more
}

// shortestNamed is the length in bytes of the shortest value under a secret name
// that is looked for elsewhere.
const shortestNamed = 8

// Text returns a short text of ours or of a client, an error for instance,
// without its secrets. Strings of high entropy stay: they are more often names.
func (m *Masker) Text(s string) string { return m.text(s, ":=") }

// name is Text for a name, which may have colons in it.
func (m *Masker) name(s string) string { return m.text(s, "=") }

func (m *Masker) text(s, signs string) string {
	if len(s) < shortestSecret {
		return s
	}
	b := []byte(s)
	spans := slices.DeleteFunc(m.find(b), func(s span) bool { return s.kind == HighEntropy })
	if spans = m.assigned(b, 0, signs, spans); len(spans) == 0 {
		return s
	}
	return string(replace(nil, b, 0, settle(spans)))
}

// Redact returns a payload without what [Masker.Find] finds, except kinds for
// which keep is true; keep may be nil. JSON stays JSON; members, their order and
// all other bytes stay. Values are not masked for the name of their member.
func (m *Masker) Redact(payload []byte, keep func(kind string) bool) []byte {
	spans := m.find(payload)
	if keep != nil {
		spans = slices.DeleteFunc(spans, func(s span) bool { return keep(s.kind) })
	}
	if len(spans) == 0 {
		return payload
	}
	w := masking{b: payload, spans: spans, most: len(payload) * 2}
	w.walk()
	return w.out
}

// shortestNumber is the least of digits of a number that is a secret.
const shortestNumber = 4

// masking writes a payload without its secrets.
type masking struct {
	m     *Masker // nil: names of members do not count
	b     []byte
	spans []span // in order; those that were passed are dropped
	most  int    // enough of output
	out   []byte

	depth  int
	within int  // the depth of the value under a secret name, 0 for none
	next   bool // the next value stands under a secret name
	named  []string
}

// walk goes from token to token of the JSON. What is no JSON is taken for text
// between tokens.
func (w *masking) walk() {
	for i := 0; i < len(w.b) && len(w.out) <= w.most; {
		switch c := w.b[i]; c {
		case '"':
			i = w.text(i)
		case '{', '[':
			w.depth++
			if w.next && w.within == 0 {
				w.within = w.depth
			}
			w.next = false
			w.out = append(w.out, c)
			i++
		case '}', ']':
			if w.depth == w.within {
				w.within = 0
			}
			w.depth--
			w.next = false
			w.out = append(w.out, c)
			i++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = w.number(i)
		default:
			start := i
			for i++; i < len(w.b) && (!structural(w.b[i]) || classes[w.b[i]]&word != 0 && classes[w.b[i-1]]&(word|joint) != 0); i++ {
			}
			w.copy(start, i)
		}
	}
}

// structural reports whether a byte begins a token that walk looks at.
func structural(c byte) bool {
	return c == '"' || c == '{' || c == '[' || c == '}' || c == ']' || c == '-' || classes[c]&digit != 0
}

// text writes the string that begins at i and returns its end.
func (w *masking) text(i int) int {
	start := i + 1
	end := start + endOfString(w.b[start:])
	after := min(end+1, len(w.b))
	isName := false
	for _, c := range w.b[after:] {
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			isName = c == ':'
			break
		}
	}
	w.out = append(w.out, '"')
	switch {
	case !isName && (w.next || w.within > 0) && end > start:
		w.named = append(w.named, string(w.b[start:end]))
		w.out = append(w.out, mask...)
	case !isName && w.m != nil && end-start > shortestSecret:
		content := w.b[start:end]
		spans := w.m.assigned(content, start, ":=", slices.Clone(w.inside(start, end)))
		w.out = replace(w.out, content, start, settle(spans))
	default:
		w.copy(start, end)
	}
	w.next = isName && w.m != nil && w.m.isSecret(w.b[start:end])
	w.out = append(w.out, w.b[end:after]...)
	return after
}

// number writes the number that begins at i and returns its end. Under a secret
// name short ones stay: they count or switch something.
func (w *masking) number(i int) int {
	start := i
	for i < len(w.b) && (classes[w.b[i]]&digit != 0 || bytes.IndexByte([]byte("+-.eE"), w.b[i]) >= 0) {
		i++
	}
	if len(w.inside(start, i)) > 0 || (w.next || w.within > 0) && i-start >= shortestNumber {
		w.out = append(w.out, '"')
		w.out = append(w.out, mask...)
		w.out = append(w.out, '"')
	} else {
		w.out = append(w.out, w.b[start:i]...)
	}
	w.next = false
	return i
}

// copy writes what stands from start to end.
func (w *masking) copy(start, end int) {
	w.out = replace(w.out, w.b[start:end], start, w.inside(start, end))
}

// inside returns the spans that reach into the bytes from start to end. It is
// called with growing places.
func (w *masking) inside(start, end int) []span {
	for len(w.spans) > 0 && w.spans[0].end <= start {
		w.spans = w.spans[1:]
	}
	n := 0
	for n < len(w.spans) && w.spans[n].start < end {
		n++
	}
	return w.spans[:n]
}

// replace appends b, which stands at offset, with a mask in the place of each
// span.
func replace(out, b []byte, offset int, spans []span) []byte {
	done := 0
	for _, s := range spans {
		start, end := max(0, s.start-offset), min(len(b), s.end-offset)
		out = append(out, b[done:start]...)
		out = append(out, mask...)
		done = end
	}
	return append(out, b[done:]...)
}

// isSecret reports whether a name says that its value is a secret. A name that
// counts says nothing.
func (m *Masker) isSecret(name []byte) bool {
	if m == nil || m.secretName == nil || len(name) == 0 || len(name) > 64 {
		return false
	}
	return m.secretName(string(name)) && !counts(name)
}

// counts reports whether a name is that of a number of tokens: max_tokens,
// totalTokens, token_count.
func counts(name []byte) bool {
	lower := bytes.ToLower(name)
	return bytes.HasSuffix(lower, []byte("tokens")) || bytes.Contains(lower, []byte("token_count")) || bytes.Contains(lower, []byte("tokencount"))
}

// payload returns what is kept of a payload: at most most bytes of valid UTF-8,
// without its secrets, with a remark at the end where it was cut. spans are what
// was found in it. named are the values that were masked for their names.
func (m *Masker) payload(raw []byte, spans []span, most int) (kept string, named []string) {
	if most <= 0 || len(raw) == 0 {
		return "", nil
	}
	w := masking{m: m, b: raw[:min(len(raw), most+margin)], spans: spans, most: most}
	w.walk()
	out := w.out
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, []byte("\ufffd"))
	}
	if len(out) <= most && len(w.b) == len(raw) {
		return string(out), w.named
	}
	return cut(out, most, len(raw)), w.named
}

// window is how much of a payload is looked at where most bytes of it are kept.
func window(most int) int { return max(ScanLimit, most+spare) }
