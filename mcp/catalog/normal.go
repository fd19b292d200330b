package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"mcpproxy/mcp/wire"
)

// maxNormalDepth bounds the nesting of what is normalised. What is nested deeper
// is compared byte for byte.
const maxNormalDepth = 200

// Normal writes a JSON value in a form of its own: members sorted by name (of
// several with one name each, in their order), no white space, numbers without
// needless digits and exponents, texts without needless escapes. Two values are
// written alike only if they say the same. What is no JSON, or is nested deeper
// than 200 levels, is returned as it is.
func Normal(raw json.RawMessage) json.RawMessage {
	if !wire.Valid(raw) || deeper(raw, maxNormalDepth) {
		return raw
	}
	n := normaliser{in: raw, out: make([]byte, 0, len(raw)+1)}
	n.value()
	return n.out
}

// deeper reports whether the brackets of valid JSON nest deeper than most.
func deeper(raw []byte, most int) bool {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			if depth++; depth > most {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// normaliser goes through valid JSON once.
type normaliser struct {
	in  []byte
	at  int
	out []byte
}

// next steps over white space and returns the byte behind it.
func (n *normaliser) next() byte {
	for {
		switch c := n.in[n.at]; c {
		case ' ', '\t', '\n', '\r':
			n.at++
		default:
			return c
		}
	}
}

func (n *normaliser) copy(size int) {
	n.out = append(n.out, n.in[n.at:n.at+size]...)
	n.at += size
}

func (n *normaliser) value() {
	switch n.next() {
	case '{':
		n.object()
	case '[':
		n.array()
	case '"':
		n.text()
	case 't':
		n.copy(len("true"))
	case 'f':
		n.copy(len("false"))
	case 'n':
		n.copy(len("null"))
	default:
		n.number()
	}
}

func (n *normaliser) array() {
	n.copy(len("["))
	for n.next() != ']' {
		n.value()
		if n.next() == ',' {
			n.copy(len(","))
		}
	}
	n.copy(len("]"))
}

// part is a member as it stands in the output, with a comma behind it.
type part struct{ from, name, to int }

func (n *normaliser) object() {
	n.copy(len("{"))
	start := len(n.out)
	var parts []part
	sorted := true
	for n.next() != '}' {
		p := part{from: len(n.out)}
		n.text()
		p.name = len(n.out)
		n.next()
		n.copy(len(":"))
		n.value()
		n.out = append(n.out, ',')
		p.to = len(n.out)
		if len(parts) > 0 && n.compare(parts[len(parts)-1], p) > 0 {
			sorted = false
		}
		parts = append(parts, p)
		if n.next() == ',' {
			n.at++
		}
	}
	n.at++
	if !sorted {
		n.sort(start, parts)
	}
	if len(parts) > 0 {
		n.out = n.out[:len(n.out)-1]
	}
	n.out = append(n.out, '}')
}

func (n *normaliser) compare(a, b part) int {
	return bytes.Compare(n.out[a.from:a.name], n.out[b.from:b.name])
}

// sort puts the members that the output ends with in order.
func (n *normaliser) sort(start int, parts []part) {
	slices.SortStableFunc(parts, n.compare)
	ordered := make([]byte, 0, len(n.out)-start)
	for _, p := range parts {
		ordered = append(ordered, n.out[p.from:p.to]...)
	}
	copy(n.out[start:], ordered)
}

// text writes a text with those escapes only that it cannot be without.
func (n *normaliser) text() {
	n.copy(len(`"`))
	for {
		end := n.at
		for n.in[end] != '"' && n.in[end] != '\\' {
			end++
		}
		n.copy(end - n.at)
		if n.in[n.at] == '"' {
			n.copy(len(`"`))
			return
		}
		n.escaped()
	}
}

// escaped writes the character that an escape stands for.
func (n *normaliser) escaped() {
	c := n.in[n.at+1]
	if c != 'u' {
		if c == '/' {
			n.at++
			n.copy(len("/"))
			return
		}
		n.copy(len(`\n`)) // all others are as short as they can be
		return
	}
	r := n.unit()
	if utf16.IsSurrogate(r) {
		if rest := n.in[n.at:]; len(rest) > len(`\u0000`) && rest[0] == '\\' && rest[1] == 'u' {
			before := n.at
			if pair := utf16.DecodeRune(r, n.unit()); pair != utf8.RuneError {
				n.out = utf8.AppendRune(n.out, pair)
				return
			}
			n.at = before
		}
		// Half a character: it is none that could be written.
		n.out = append(append(n.out, `\u`...), strconv.FormatInt(int64(r), 16)...)
		return
	}
	n.rune(r)
}

// unit reads a \uXXXX.
func (n *normaliser) unit() rune {
	r, _ := strconv.ParseUint(string(n.in[n.at+2:n.at+6]), 16, 16) // it is valid
	n.at += 6
	return rune(r)
}

// rune writes a character that was escaped.
func (n *normaliser) rune(r rune) {
	switch r {
	case '"', '\\':
		n.out = append(n.out, '\\', byte(r))
	case '\b':
		n.out = append(n.out, `\b`...)
	case '\f':
		n.out = append(n.out, `\f`...)
	case '\n':
		n.out = append(n.out, `\n`...)
	case '\r':
		n.out = append(n.out, `\r`...)
	case '\t':
		n.out = append(n.out, `\t`...)
	default:
		if r < 0x20 {
			n.out = append(n.out, `\u00`...)
			n.out = append(n.out, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
			return
		}
		n.out = utf8.AppendRune(n.out, r)
	}
}
