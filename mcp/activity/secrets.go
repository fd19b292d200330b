package activity

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// KnownSecret is the kind of a secret of the configuration that turned up in a
// payload.
const KnownSecret = "known_secret"

// Secrets shorter than shortestSecret, in bytes, are not looked for: they would
// be found in ordinary text. So would short lines of longer ones.
const (
	shortestSecret = 6
	shortestLine   = 8
)

// secrets are values to look for. All are sought in one pass.
type secrets struct {
	begins [1 << 16 / 64]uint64 // a bit for each two bytes that one begins with
	by     map[[2]byte][]string // the longest first
	most   int                  // the length of the longest
}

// newSecrets returns what finds the values, also as they look inside JSON, inside
// JSON inside JSON, and in a URL, and line by line.
func newSecrets(values []string) *secrets {
	s := &secrets{by: map[[2]byte][]string{}}
	for _, value := range values {
		for _, form := range appearances(value) {
			key := [2]byte{form[0], form[1]}
			if slices.Contains(s.by[key], form) {
				continue
			}
			s.by[key] = append(s.by[key], form)
			s.most = max(s.most, len(form))
			bit := int(key[0])<<8 | int(key[1])
			s.begins[bit/64] |= 1 << (bit % 64)
		}
	}
	for _, forms := range s.by {
		slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	}
	return s
}

// appearances are the texts that a secret is found by.
func appearances(value string) (list []string) {
	add := func(text string) {
		if len(text) >= shortestSecret && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, text := range append([]string{value}, longLines(value)...) {
		if len(text) < shortestSecret {
			continue
		}
		add(text)
		add(url.QueryEscape(text))
		add(url.PathEscape(text))
		once := quoted(text, true)
		add(once)
		add(quoted(once, true))
		once = quoted(text, false)
		add(once)
		add(quoted(once, false))
	}
	return list
}

// longLines are the lines of a text of several that are long enough to mask.
func longLines(text string) (lines []string) {
	if !strings.Contains(text, "\n") {
		return nil
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= shortestLine {
			lines = append(lines, line)
		}
	}
	return lines
}

// quoted is a text as it stands between the quotes of JSON; html has <, > and &
// escaped, which some writers do.
func quoted(text string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(text) // a string can always be encoded
	line := strings.TrimSuffix(b.String(), "\n")
	return line[1 : len(line)-1]
}

// find appends where the secrets stand in b.
func (s *secrets) find(b []byte, spans []span) []span {
	if s == nil || len(s.by) == 0 {
		return spans
	}
	for i := 0; i+shortestSecret <= len(b); i++ {
		bit := int(b[i])<<8 | int(b[i+1])
		if s.begins[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		for _, form := range s.by[[2]byte{b[i], b[i+1]}] {
			if len(form) <= len(b)-i && string(b[i:i+len(form)]) == form {
				spans = append(spans, span{i, i + len(form), KnownSecret})
				i += len(form) - 1
				break
			}
		}
	}
	return spans
}
