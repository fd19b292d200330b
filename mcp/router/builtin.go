package router

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/wire"
)

// Builtin is a tool of this program itself, which a mode lists and answers
// beside what the servers offer.
type Builtin struct {
	Name string
	// Definition is the tool as one caller sees it, nil for a caller to whom it
	// does not exist: it is then not listed, and calling it is calling an unknown
	// tool.
	Definition func(caller auth.Caller) json.RawMessage
	// Call answers a call with these arguments. What the caller did wrong is a
	// result with isError.
	Call func(ctx context.Context, a asker, args json.RawMessage) (json.RawMessage, *wire.Error)
}

// builtins are the built-in tools of a mode, in the order in which they are listed.
type builtins []Builtin

// definitions are those that exist for a caller, as tools/list has them.
func (all builtins) definitions(caller auth.Caller) (list []json.RawMessage) {
	for _, b := range all {
		if definition := b.Definition(caller); definition != nil {
			list = append(list, definition)
		}
	}
	return list
}

// find is the one of a name, nil where there is none for this caller.
func (all builtins) find(caller auth.Caller, name string) *Builtin {
	for i := range all {
		if b := &all[i]; b.Name == name && b.Definition(caller) != nil {
			return b
		}
	}
	return nil
}

// face is what a client is told of a built-in tool.
type face struct {
	name, title, description    string // the description has less than 2,000 bytes
	schema                      schema
	readOnly, destructive, open bool
	maxResult                   int // characters of a result
}

// schema is the JSON Schema of a tool's arguments.
type schema struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required,omitempty"`
	Additional bool                `json:"additionalProperties"`
}

// property is the JSON Schema of one argument.
type property struct {
	Type        any       `json:"type"` // one, or several
	Description string    `json:"description,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	Items       *property `json:"items,omitempty"`
	Values      *property `json:"additionalProperties,omitempty"`
	Minimum     *int      `json:"minimum,omitempty"`
	Maximum     *int      `json:"maximum,omitempty"`
	MinItems    int       `json:"minItems,omitempty"`
	MaxItems    int       `json:"maxItems,omitempty"`
	Default     any       `json:"default,omitempty"`
}

// define is the definition as tools/list has it.
func (f face) define() json.RawMessage {
	f.schema.Type = "object"
	return encode(struct {
		Name        string         `json:"name"`
		Title       string         `json:"title"`
		Description string         `json:"description"`
		Schema      schema         `json:"inputSchema"`
		Annotations map[string]any `json:"annotations"`
		Meta        map[string]any `json:"_meta"`
	}{f.name, f.title, f.description, f.schema,
		map[string]any{"title": f.title, "readOnlyHint": f.readOnly, "destructiveHint": f.destructive, "openWorldHint": f.open},
		map[string]any{"anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": f.maxResult}})
}

// encode is a value of ours as JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only values that can be encoded are given
	}
	return b.Bytes()[:b.Len()-1]
}

// textResult is the result of a tool: one block of text.
func textResult(text string, failed bool) json.RawMessage {
	result := slices.Concat(json.RawMessage(`{"content":[{"type":"text","text":`), wire.Quote(text), json.RawMessage(`}]`))
	if failed {
		result = append(result, `,"isError":true`...)
	}
	return append(result, '}')
}
