package index

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/mcp/catalog"
)

// Limits of what of one item is indexed, in bytes and pieces; an odd item harms
// only itself.
const (
	maxHead       = 240
	maxText       = 16 << 10
	maxAbout      = 600
	maxProperties = 500
	maxValues     = 500
	maxDepth      = 8
)

// entry is an item as it is indexed.
type entry struct {
	terms [fieldCount][]string
	pairs []string
	keys  []string
}

// definition is what is read of a definition of any kind. Members of a wrong
// type are left out one by one by lenient.
type definition struct {
	Name        lenient[string]              `json:"name"`
	Title       lenient[string]              `json:"title"`
	Description lenient[string]              `json:"description"`
	InputSchema json.RawMessage              `json:"inputSchema"`
	Arguments   lenient[[]lenient[argument]] `json:"arguments"`
	Annotations lenient[map[string]any]      `json:"annotations"`
}

// argument is an argument of a prompt.
type argument struct {
	Name        lenient[string] `json:"name"`
	Description lenient[string] `json:"description"`
}

// lenient is a value that stays empty where the JSON is of another type.
type lenient[T any] struct{ value T }

// UnmarshalJSON never fails on a well-formed value.
func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var value T
	if json.Unmarshal(raw, &value) == nil {
		l.value = value
	}
	return nil
}

// newEntry reads an item. It never fails: what cannot be read is not found.
func newEntry(s *stemmer, it *catalog.Item, server Server) entry {
	var def definition
	_ = json.Unmarshal(it.Raw, &def)

	title := def.Title.value
	if title == "" {
		title, _ = def.Annotations.value["title"].(string)
	}
	description, name := def.Description.value, it.Ref.Name
	var custom string
	if o := it.Override; o != nil {
		custom = o.Name
		if o.Description != "" {
			description = o.Description
		}
	}
	head, rest := headOf(description)
	var p parameters
	switch it.Kind {
	case catalog.Resource, catalog.Template:
		p.values = append(p.values, name)
		name = def.Name.value
	case catalog.Prompt:
		for _, a := range def.Arguments.value[:min(len(def.Arguments.value), maxProperties)] {
			p.names = append(p.names, a.value.Name.value)
			p.texts = append(p.texts, a.value.Description.value)
		}
	default:
		p.read(def.InputSchema)
	}

	var d entry
	d.terms[fieldName] = s.terms(cut(name+" "+custom, maxText))
	d.terms[fieldServer] = s.terms(serverWords(it.Server, server.Prefix))
	d.terms[fieldHead] = s.terms(cut(title, maxHead) + " " + head)
	d.terms[fieldRest] = s.terms(cut(rest, maxText))
	d.terms[fieldParams] = s.terms(join(p.names))
	d.terms[fieldParamTexts] = s.terms(join(p.texts))
	d.terms[fieldValues] = s.terms(join(p.values))
	d.terms[fieldAbout] = s.terms(cut(server.Description, maxAbout))
	for _, f := range []int{fieldName, fieldHead, fieldRest} {
		d.pairs = appendPairs(d.pairs, d.terms[f])
	}
	d.keys = keysOf(it, server)
	return d
}

// serverWords are the words of a server's name and of the prefix it is shown
// under.
func serverWords(name, prefix string) string {
	if prefix == "" || key(prefix) == key(name) {
		return name
	}
	return name + " " + prefix
}

// keysOf are the names under which an item is asked for as a whole.
func keysOf(it *catalog.Item, server Server) []string {
	names := []string{it.Ref.Name}
	if it.Override != nil && it.Override.Name != "" {
		names = append(names, it.Override.Name)
	}
	var keys []string
	for _, name := range names {
		if name = key(cut(name, maxHead)); name != "" {
			keys = append(keys, name, key(it.Server)+name, key(server.Prefix)+name)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// appendPairs appends each two adjacent terms that differ.
func appendPairs(pairs, terms []string) []string {
	for i := 1; i < len(terms); i++ {
		if terms[i-1] != terms[i] {
			pairs = append(pairs, terms[i-1]+" "+terms[i])
		}
	}
	return pairs
}

// headOf cuts a description after its first sentence or line, at most maxHead
// bytes.
func headOf(description string) (head, rest string) {
	description = strings.TrimSpace(description)
	at := len(description)
	for i, r := range description {
		if i >= maxHead {
			at = i
			break
		}
		next := description[i+utf8.RuneLen(max(r, 0)):]
		if r == '\n' || r == '。' || (r == '.' || r == '!' || r == '?') && (next == "" || next[0] == ' ' || next[0] == '\n') {
			at = len(description) - len(next)
			break
		}
	}
	return description[:at], description[at:]
}

// cut shortens a text to at most so many bytes, not inside a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func join(texts []string) string { return cut(strings.Join(texts, " . "), maxText) }
