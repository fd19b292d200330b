package router

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpproxy/mcp/wire"
)

// Limits of what is written out of values, in bytes.
const (
	maxLiteral  = 48
	maxLiterals = 120 // of one enum
)

// typeOf is the type of a schema. deep counts the schemas around it, nesting how
// many levels of objects may yet be written out.
func (r *schemaReader) typeOf(s *shapeOf, deep, nesting int) typed {
	u := union{lossy: s.loses}
	switch {
	case s.enum != nil:
		u.addLiterals(s.enum)
	case len(s.variants) > 0 && len(s.properties) == 0:
		r.addVariants(&u, s, deep, nesting)
	default:
		u.lossy = u.lossy || len(s.variants) > 0
		r.addTypes(&u, s, deep, nesting)
	}
	if s.nullable {
		u.add(typed{text: "null"})
	}
	return u.typed()
}

// addVariants adds the alternatives of anyOf and oneOf. Where they only narrow
// down a type, it is the type that counts.
func (r *schemaReader) addVariants(u *union, s *shapeOf, deep, nesting int) {
	var v union
	for _, variant := range s.variants {
		kind := r.typeWithin(variant, deep+1, nesting)
		if len(s.types) > 0 && strings.TrimSuffix(kind.text, "~") == "any" {
			u.lossy = true
			r.addTypes(u, s, deep, nesting)
			return
		}
		v.add(kind)
	}
	u.alternatives = append(u.alternatives, v.alternatives...)
	u.hidden = u.hidden || v.hidden
	u.within = u.within || v.within
}

func (r *schemaReader) addTypes(u *union, s *shapeOf, deep, nesting int) {
	types := s.types
	if len(types) == 0 {
		types = []string{s.guess()}
	}
	for _, name := range types {
		switch name {
		case "integer":
			u.add(typed{text: "int"})
		case "boolean":
			u.add(typed{text: "bool"})
		case "array":
			u.add(r.array(s, deep+1, nesting))
		case "object":
			u.add(r.object(s, deep+1, nesting))
		case "string", "number", "null", "any", "never":
			u.add(typed{text: name})
		default:
			u.lossy = true
			u.add(typed{text: "any"})
		}
	}
}

// guess is the type that a schema without one means.
func (s *shapeOf) guess() string {
	switch {
	case len(s.properties) > 0 || len(s.demanded) > 0 || s.values != nil:
		return "object"
	case s.items != nil || s.tuple != nil:
		return "array"
	}
	return "any"
}

func (r *schemaReader) array(s *shapeOf, deep, nesting int) typed {
	if s.tuple == nil {
		kind := r.typeWithin(s.items, deep, nesting)
		if kind.union {
			kind.text = "(" + kind.text + ")"
		}
		return typed{text: kind.text + "[]", lossy: kind.lossy}
	}
	var texts []string
	whole := typed{}
	for i, schema := range s.tuple {
		if i == maxVariants {
			texts, whole.lossy = append(texts, "…~"), true
			break
		}
		kind := r.typeWithin(schema, deep, nesting)
		texts, whole.lossy = append(texts, kind.text), whole.lossy || kind.lossy
	}
	whole.text = "[" + strings.Join(texts, r.comma) + "]"
	return whole
}

func (r *schemaReader) object(s *shapeOf, deep, nesting int) typed {
	if len(s.properties) == 0 && len(s.demanded) == 0 && (s.values == nil || s.values[0] != '{') {
		return typed{text: "object"}
	}
	if nesting == 0 {
		return typed{text: "object~", lossy: true}
	}
	list := r.members(s, deep, nesting-1)
	requiredFirst(list)
	var texts []string
	whole := typed{}
	for i, p := range list {
		if i == maxMembers {
			texts, whole.lossy = append(texts, "…~"), true
			break
		}
		texts, whole.lossy = append(texts, p.full(r.notation)), whole.lossy || p.kind.lossy
	}
	whole.text = "{" + strings.Join(texts, r.comma) + "}"
	return whole
}

// union collects alternatives, each once.
type union struct {
	alternatives []string
	lossy        bool // something is lost of the whole
	within       bool // or of an alternative, which says so itself
	hidden       bool // or there are more alternatives
}

func (u *union) add(kind typed) {
	u.within = u.within || kind.lossy
	if slices.Contains(u.alternatives, kind.text) {
		return
	}
	if len(u.alternatives) == maxVariants {
		u.hidden = true
		return
	}
	u.alternatives = append(u.alternatives, kind.text)
}

// addLiterals adds values as they are, as many as there is room for.
func (u *union) addLiterals(values []json.RawMessage) {
	size := 0
	for _, value := range values {
		text, whole := literal(value)
		if size += len(text) + 1; size > maxLiterals && len(u.alternatives) > 0 {
			u.hidden = true
			return
		}
		u.alternatives = append(u.alternatives, text)
		u.within = u.within || !whole
	}
}

func (u *union) typed() typed {
	alternatives := u.alternatives
	switch {
	case u.hidden:
		alternatives = append(alternatives, "…")
		u.lossy = true
	case len(alternatives) == 0:
		alternatives = []string{"never"}
	}
	kind := typed{
		text:  strings.Join(alternatives, "|"),
		union: len(alternatives) > 1,
		lossy: u.lossy || u.within,
	}
	if u.lossy && !strings.HasSuffix(kind.text, "~") {
		kind.text += "~"
	}
	return kind
}

// literal is a value as a signature has it, and whether it is all there. Text
// needs quotes only where it could be taken for something else.
func literal(value json.RawMessage) (text string, whole bool) {
	if s, ok := wire.String(value); ok {
		short := clip(s, maxLiteral)
		text = bareOrQuoted(short, literalRune)
		if short != s {
			return text + "~", false
		}
		return text, true
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil || b.Len() > maxLiteral {
		return "…~", false
	}
	return oneLine(b.String()), true
}

// bareOrQuoted leaves out the quotes where all characters may stand alone and
// the text is no number, value or type.
func bareOrQuoted(s string, alone func(rune) bool) string {
	bare := s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !alone(r) })
	switch s {
	case "true", "false", "null", "string", "int", "number", "bool", "object", "any", "never":
		bare = false
	}
	if bare && !json.Valid([]byte(s)) {
		return s
	}
	return oneLine(string(wire.Quote(s)))
}

func nameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.$@", r)
}

func literalRune(r rune) bool { return nameRune(r) || strings.ContainsRune("/:+#", r) }

// oneLine replaces the control characters and line ends that JSON allows in a
// text.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// clip cuts a text to so many bytes, not inside a character, and says so.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit -= len("…")
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
