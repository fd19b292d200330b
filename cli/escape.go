package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean makes a text safe to show in one line of a terminal or one field of a
// table: whatever could move the cursor, change a colour, reorder what is read
// or break the line is spelled out as an escape, and invalid UTF-8 with it.
func clean(s string) string {
	return escape(s, harmful)
}

// cleanText is clean for text of several lines: newlines and tabs stay.
func cleanText(s string) string {
	return escape(s, func(r rune) bool { return harmful(r) && r != '\n' && r != '\t' })
}

// escape spells out those runes of s that bad claims, and what is no UTF-8.
func escape(s string, bad func(rune) bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || bad(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !bad(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// harmful reports whether a terminal acts on a rune instead of showing it: the
// C0 and C1 controls, line and paragraph separators, marks that reorder or hide
// text, and the tag characters that nobody sees but a model.
func harmful(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0xad, r == 0x61c, r == 0xfeff:
		return true
	case r >= 0x200b && r <= 0x200f && r != 0x200d && r != 0x200c:
		return true
	case r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// cleanJSON escapes the harmful runes that JSON allows unescaped. They can only
// stand inside strings, so the value stays the same.
func cleanJSON(raw []byte) []byte { return escapeJSON(raw, harmful) }

// escapeJSON is cleanJSON for the runes that bad claims.
func escapeJSON(raw []byte, bad func(rune) bool) []byte {
	if !bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f && bad(r) }) {
		return raw
	}
	var b bytes.Buffer
	for _, r := range string(raw) {
		switch {
		case r < 0x7f || !bad(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		}
	}
	return b.Bytes()
}
