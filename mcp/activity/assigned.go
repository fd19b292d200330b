package activity

import (
	"bytes"
	"strings"
)

// assigned appends the secrets that a text tells by their names: password=x,
// "api_key": "x" inside of a string, Authorization: Bearer x. signs are those that
// stand between a name and its value. The text stands at offset.
func (m *Masker) assigned(b []byte, offset int, signs string, spans []span) []span {
	if m == nil || m.secretName == nil {
		return spans
	}
	for i := 0; i < len(b); i++ {
		if b[i] != ':' && b[i] != '=' || strings.IndexByte(signs, b[i]) < 0 {
			continue
		}
		nameEnd := i
		for nameEnd > 0 && (b[nameEnd-1] == '"' || b[nameEnd-1] == '\'' || b[nameEnd-1] == '\\' || b[nameEnd-1] == ' ') && i-nameEnd < 8 {
			nameEnd--
		}
		n := countBack(b[max(0, nameEnd-64):nameEnd], word)
		if n < 3 || !m.isSecret(b[nameEnd-n:nameEnd]) {
			continue
		}
		start, end := assignedValue(b, i)
		if end > start {
			spans = append(spans, span{offset + start, offset + end, "named"})
			i = end - 1
		}
	}
	return spans
}

// assignedValue is the value behind the sign at i; nothing where that looks like
// a sentence that goes on: "password: hunter2" is one, "password: the one you
// chose" is not.
func assignedValue(b []byte, i int) (start, end int) {
	start = i + 1
	quote := false
	for start < len(b) && start-i < 12 && (b[start] == '"' || b[start] == '\'' || b[start] == '\\' || b[start] == ' ') {
		quote = quote || b[start] == '"' || b[start] == '\''
		start++
	}
	sure := quote || b[i] == '=' && start == i+1
	end = valueEnd(b, start, quote)
	if end+1 < len(b) && b[end] == ' ' && isScheme(b[start:end]) {
		start, sure = end+1, true
		end = valueEnd(b, start, quote)
	}
	value := b[start:end]
	switch {
	case len(value) == 0 || value[0] == '$': // a reference
	case sure, len(value) >= 12, len(value) >= shortestSecret && count(value, upper|lower) < len(value):
		return start, end
	}
	return start, start
}

// valueEnd is where a value that begins at start ends.
func valueEnd(b []byte, start int, quote bool) int {
	for i := start; i < len(b); i++ {
		switch b[i] {
		case '"', '\'', '\\':
			return i
		case ' ', '\t', '\r', '\n', ',', ';', '&', '<', '>', '(', ')', '{', '}', '[', ']':
			if !quote {
				return i
			}
		}
	}
	return len(b)
}

// isScheme reports whether a word stands in front of the secret in an
// Authorization header.
func isScheme(text []byte) bool {
	for _, scheme := range []string{"Bearer", "Basic", "Token", "Digest"} {
		if bytes.EqualFold(text, []byte(scheme)) {
			return true
		}
	}
	return false
}
