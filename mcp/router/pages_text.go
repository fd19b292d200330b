package router

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text that is kept is what a JSON string says, in UTF-8. A surrogate that stands
// alone in an escape, which is no character, is kept as the three bytes that UTF-8
// would have for it, and becomes an escape again when it is sent. Characters are
// code points, and such a surrogate is one.

// textOf is the text of a JSON string with its quotes. It may share its bytes.
func textOf(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	raw = raw[1 : len(raw)-1]
	next := bytes.IndexByte(raw, '\\')
	if next < 0 {
		return raw
	}
	text := make([]byte, 0, len(raw))
	for next >= 0 {
		text = append(text, raw[:next]...)
		r, n := unescape(raw[next:])
		text, raw = appendRune(text, r), raw[next+n:]
		next = bytes.IndexByte(raw, '\\')
	}
	return append(text, raw...)
}

// unescape reads the escape at the start of b, of a valid JSON string, and the one
// behind it where both are one character; n is how long it is.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := codeUnit(b)
		if pair := utf16.DecodeRune(r, codeUnit(b[min(6, len(b)):])); pair != utf8.RuneError {
			return pair, 12
		}
		return r, min(6, len(b))
	}
	return rune(b[1]), 2
}

// codeUnit is the \u escape at the start of b, U+FFFD for none.
func codeUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

func appendRune(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(b, r)
}

// firstRune is the first character of kept text.
func firstRune(b []byte) (r rune, n int) {
	if b[0] < utf8.RuneSelf {
		return rune(b[0]), 1
	}
	r, n = utf8.DecodeRune(b)
	if n == 1 && len(b) >= 3 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80 {
		return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	return r, n
}

// length is the number of characters of kept text.
func length(b []byte) int {
	count := 0
	for len(b) > 0 {
		surrogate := bytes.IndexByte(b, 0xed) // or a Hangul syllable
		if surrogate < 0 {
			return count + utf8.RuneCount(b)
		}
		_, n := firstRune(b[surrogate:])
		count += utf8.RuneCount(b[:surrogate]) + 1
		b = b[surrogate+n:]
	}
	return count
}

// ahead is the number of bytes of the first so many characters.
func ahead(b []byte, characters int) int {
	i := 0
	for ; characters > 0 && i < len(b); characters-- {
		_, n := firstRune(b[i:])
		i += n
	}
	return i
}

// quoted is how many characters a character takes in a JSON string.
func quoted(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < 0x20, r == '\u2028', r == '\u2029', utf16.IsSurrogate(r):
		return 6
	}
	return 1
}

// appendQuoted appends kept text as a JSON string.
func appendQuoted(out, text []byte) []byte {
	out = append(slices.Grow(out, len(text)+len(text)/8+2), '"')
	from := 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := firstRune(text[i:])
		if quoted(r) > 1 || r == utf8.RuneError && n == 1 {
			out = appendEscape(append(out, text[from:i]...), r)
			from = i + n
		}
		i += n
	}
	return append(append(out, text[from:]...), '"')
}

func appendEscape(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	}
	return hex.AppendEncode(append(out, `\u`...), []byte{byte(r >> 8), byte(r)})
}

// beforeEscape is end, or less where the first end bytes of text would end within an
// escape of JSON that the text may be, a pair of them for one character included.
func beforeEscape(text []byte, end int) int {
	const pair = len(`\ud83d\ude00`)
	if end >= len(text) {
		return end
	}
	for start := max(0, end-pair+1); start < end; start++ {
		if text[start] != '\\' || odd(text[:start]) {
			continue
		}
		if _, n := unescape(text[start:min(len(text), start+pair)]); start+n > end {
			return start
		}
		start++ // what was escaped begins nothing
	}
	return end
}

// odd reports whether text ends with an odd number of backslashes, of which the last
// begins an escape.
func odd(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}
