package router

import (
	"bytes"
	"encoding/json"
	"reflect"

	"mcpproxy/mcp/wire"
)

// holdsStructured reports whether the texts hold the structured content: whole, or
// what its only member holds, as one text or as one for each element of an array, which
// is what frameworks make of a plain value that a tool returns.
func (c *contents) holdsStructured() bool {
	if c.oneHolds(c.structured) {
		return true
	}
	var only json.RawMessage
	members := 0
	for _, value := range wire.Members(c.structured) {
		only = value
		members++
	}
	return members == 1 && (c.oneHolds(only) || c.allHold(only))
}

// oneHolds reports whether a text holds a value.
func (c *contents) oneHolds(value []byte) bool {
	for _, t := range c.texts {
		if t.holds(value) {
			return true
		}
	}
	return false
}

// allHold reports whether the texts hold the elements of an array, each one.
func (c *contents) allHold(array []byte) bool {
	n := 0
	for element := range wire.Elements(array) {
		if n == len(c.texts) || !c.texts[n].holds(element) {
			return false
		}
		n++
	}
	return n > 0 && n == len(c.texts)
}

// holds reports whether the text is a value: the very string, or the same JSON.
func (t *blockText) holds(value []byte) bool {
	if value[0] == '"' && bytes.Equal(textOf(value), t.text) {
		return true
	}
	return sameJSON(t.text, value)
}

// sameJSON reports whether a text is JSON of a value, apart from white space, escapes
// and the order of members.
func sameJSON(text, value []byte) bool {
	const longest = 8 // how much longer one way to write a value may be, about
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != value[0] || len(text) > longest*len(value) || len(value) > longest*len(text) {
		return false
	}
	var a, b bytes.Buffer
	if json.Compact(&a, text) != nil || json.Compact(&b, value) != nil {
		return false
	}
	return bytes.Equal(a.Bytes(), b.Bytes()) || reflect.DeepEqual(decoded(a.Bytes()), decoded(b.Bytes()))
}

// decoded is a JSON value with its numbers as they are written.
func decoded(raw []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil // only valid JSON is given
	}
	return v
}
