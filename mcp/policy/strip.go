package policy

import (
	"strings"
	"unicode/utf8"
)

const (
	escape   = 0x1b
	bell     = 0x07
	csi      = 0x9b // the C1 form of ESC [
	terminal = 0x9c // the C1 form of ESC \
)

// stripControl removes escape sequences of terminals (ECMA-48), control
// characters but tab and line ends, and runes that reorder or hide text. Joiners
// within words of some scripts and within emoji stay. Bytes that are no characters
// go first: what stood on both sides of something removed could become one.
func stripControl(text string) string {
	text = strings.ToValidUTF8(text, "")
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == escape || r >= 0x90 && r <= 0x9f:
			i += sequence(text[i:])
			continue
		case r == '\r' && i+1 < len(text) && text[i+1] == '\n', !invisible(r):
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// sequence is the length of the escape sequence that a text begins with. One that
// has no end is its beginning alone.
func sequence(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	kind := r
	if r == escape {
		next, size := utf8.DecodeRuneInString(text[n:])
		if next < 0x20 || next > 0x7e {
			return n
		}
		n += size
		kind = next + 0x40 // ESC [ is csi, and so on
	}
	switch kind {
	case csi:
		for i := n; i < len(text); i++ {
			switch c := text[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x7e:
				return n
			}
		}
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // strings: DCS, SOS, OSC, PM, APC
		for i, r := range text[n:] {
			switch {
			case r == bell, r == terminal:
				return n + i + utf8.RuneLen(r)
			case r == escape:
				if strings.HasPrefix(text[n+i:], "\x1b\\") {
					return n + i + 2
				}
				return n + i
			case r == '\n':
				return n
			}
		}
	}
	return n
}

// invisible reports whether a rune is removed.
func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff, r == 0x200b, r == 0x200e, r == 0x200f:
		return true
	case r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xe0000 && r <= 0xe007f, r >= 0xfff9 && r <= 0xfffb:
		return true
	}
	return false
}
