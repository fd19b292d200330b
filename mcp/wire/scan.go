package wire

import (
	"encoding/binary"
	"errors"
)

// The scanner walks JSON text without decoding it. Positions are byte offsets;
// a function that skips something returns the offset behind it.
var (
	errSyntax     = errors.New("invalid JSON")
	errIncomplete = errors.New("incomplete JSON")
)

// Valid reports whether raw is exactly one JSON value, white space around it
// allowed. Nesting is limited by memory alone.
func Valid(raw []byte) bool {
	end, err := skipValue(raw, 0)
	return err == nil && skipSpace(raw, end) == len(raw)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipValue walks one value. It keeps the open brackets in a slice of its own
// instead of recursing, since a peer decides how deep they go.
func skipValue(b []byte, i int) (int, error) {
	var small [64]byte
	open := small[:0]
	for {
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, errIncomplete
		}
		var err error
		switch b[i] {
		case '{', '[':
			var empty bool
			bracket := b[i]
			if i, empty, err = enter(b, i); err != nil {
				return i, err
			}
			if !empty {
				open = append(open, bracket)
				continue
			}
		case '"':
			i, err = skipString(b, i)
		default:
			i, err = skipScalar(b, i)
		}
		if err != nil {
			return i, err
		}
		if i, open, err = leave(b, i, open); err != nil || len(open) == 0 {
			return i, err
		}
	}
}

// enter steps over an opening bracket, and over the first key of an object. An
// empty container is stepped over whole.
func enter(b []byte, i int) (next int, empty bool, err error) {
	object := b[i] == '{'
	i = skipSpace(b, i+1)
	if i >= len(b) {
		return i, false, errIncomplete
	}
	if object {
		if b[i] == '}' {
			return i + 1, true, nil
		}
		i, err = skipKey(b, i)
		return i, false, err
	}
	if b[i] == ']' {
		return i + 1, true, nil
	}
	return i, false, nil
}

// leave steps over closing brackets behind a value, and over the comma (and
// key) in front of the next one.
func leave(b []byte, i int, open []byte) (int, []byte, error) {
	for len(open) > 0 {
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, open, errIncomplete
		}
		top := open[len(open)-1]
		switch {
		case b[i] == ',' && top == '{':
			next, err := skipKey(b, skipSpace(b, i+1))
			return next, open, err
		case b[i] == ',':
			return i + 1, open, nil
		case b[i] == '}' && top == '{', b[i] == ']' && top == '[':
			open = open[:len(open)-1]
			i++
		default:
			return i, open, errSyntax
		}
	}
	return i, open, nil
}

// skipKey walks a member name and the colon behind it.
func skipKey(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, errIncomplete
	}
	if b[i] != '"' {
		return i, errSyntax
	}
	i, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return i, errIncomplete
	}
	if b[i] != ':' {
		return i, errSyntax
	}
	return i + 1, nil
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// plain reports whether none of eight bytes ends, escapes or breaks a string.
func plain(w uint64) bool {
	quote := w ^ (lowBits * '"')
	slash := w ^ (lowBits * '\\')
	found := (quote - lowBits) & ^quote
	found |= (slash - lowBits) & ^slash
	found |= (w - lowBits*0x20) & ^w
	return found&highBits == 0
}

func skipString(b []byte, i int) (int, error) {
	i++
	for {
		for i+8 <= len(b) && plain(binary.LittleEndian.Uint64(b[i:])) {
			i += 8
		}
		if i >= len(b) {
			return i, errIncomplete
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			next, err := skipEscape(b, i)
			if err != nil {
				return next, err
			}
			i = next
		case c < 0x20:
			return i, errSyntax
		default:
			i++
		}
	}
}

func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return i, errIncomplete
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(b) {
				return k, errIncomplete
			}
			if !isHex(b[k]) {
				return k, errSyntax
			}
		}
		return i + 6, nil
	}
	return i, errSyntax
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipScalar(b []byte, i int) (int, error) {
	switch b[i] {
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) (int, error) {
	for k := range len(word) {
		if i+k >= len(b) {
			return i + k, errIncomplete
		}
		if b[i+k] != word[k] {
			return i, errSyntax
		}
	}
	return i + len(word), nil
}

func skipNumber(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	first := i
	i, err := skipDigits(b, i)
	if err != nil {
		return i, err
	}
	if b[first] == '0' && i > first+1 {
		return first, errSyntax
	}
	if i < len(b) && b[i] == '.' {
		if i, err = skipDigits(b, i+1); err != nil {
			return i, err
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i, nil
}

// skipDigits walks one digit or more.
func skipDigits(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, errIncomplete
	}
	if !isDigit(b[i]) {
		return i, errSyntax
	}
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, nil
}
