package catalog

import (
	"bytes"
	"encoding/json"

	"mcpproxy/mcp/wire"
)

// RenderVersion is raised with every change of what is rendered, so that no
// reply of an older build is served from the store.
const RenderVersion = 2

// RenderTool returns the definition of a tool under its public name: the name,
// the description with "[server] " in front, and a root of inputSchema and
// outputSchema that strict clients accept. All other bytes are the upstream's.
func RenderTool(item *Item, public string) json.RawMessage {
	raw := wire.SetMember(item.Raw, wire.Quote(public), "name")
	raw = wire.SetMember(raw, description(item), "description")
	if o := item.Override; o != nil && o.Annotations != nil {
		raw = wire.SetMember(raw, o.Annotations, "annotations")
	}
	raw = setSchema(raw, "inputSchema", wire.Member(raw, "inputSchema"))
	if schema := wire.Member(raw, "outputSchema"); schema != nil {
		if t := wire.Member(schema, "type"); t == nil || bytes.Contains(t, []byte(`"object"`)) {
			raw = setSchema(raw, "outputSchema", schema)
		} else {
			// A structured result is always an object; a schema for anything else
			// describes nothing, and would cost the client its whole list.
			raw = wire.DeleteMember(raw, "outputSchema")
		}
	}
	return raw
}

// RenderPrompt returns the definition of a prompt under its public name; all
// other bytes are the upstream's.
func RenderPrompt(item *Item, public string) json.RawMessage {
	return wire.SetMember(item.Raw, wire.Quote(public), "name")
}

// description is the raw description with the server's name in front; the
// upstream's own escapes are kept.
func description(item *Item) json.RawMessage {
	own := wire.Member(item.Raw, "description")
	if item.Override != nil && item.Override.Description != "" {
		own = wire.Quote(item.Override.Description)
	}
	if len(own) <= len(`""`) {
		return wire.Quote("[" + item.Server + "]")
	}
	prefix := wire.Quote("[" + item.Server + "] ")
	return append(append(make(json.RawMessage, 0, len(prefix)+len(own)), prefix[:len(prefix)-1]...), own[1:]...)
}

// setSchema makes the root of a tool's schema one that strict clients accept
// and touches nothing else.
func setSchema(tool json.RawMessage, member string, schema json.RawMessage) json.RawMessage {
	if strict := strictRoot(schema); !bytes.Equal(strict, schema) {
		return wire.SetMember(tool, strict, member)
	}
	return tool
}

// strictRoot gives a schema a root of type object, with a list of texts in
// "required" and objects in "properties", or neither, and keeps what else it
// says.
func strictRoot(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || schema[0] != '{' {
		return json.RawMessage(`{"type":"object"}`)
	}
	if string(wire.Member(schema, "type")) != `"object"` {
		schema = wire.SetMember(schema, json.RawMessage(`"object"`), "type")
	}
	if required := wire.Member(schema, "required"); required != nil && !texts(required) {
		schema = wire.DeleteMember(schema, "required")
	}
	properties := wire.Member(schema, "properties")
	if properties != nil && properties[0] != '{' {
		return wire.DeleteMember(schema, "properties")
	}
	if plain := plainProperties(properties); !bytes.Equal(plain, properties) {
		return wire.SetMember(schema, plain, "properties")
	}
	return schema
}

// plainProperties replaces properties that are no objects, and returns what it
// was given where there are none.
func plainProperties(properties json.RawMessage) json.RawMessage {
	odd := false
	out := json.RawMessage{'{'}
	for name, property := range wire.Members(properties) {
		if property[0] != '{' {
			odd = true
			property = plainSchema(property)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, wire.Quote(name)...), ':'), property...)
	}
	if !odd {
		return properties
	}
	return append(out, '}')
}

func texts(raw json.RawMessage) bool {
	if raw[0] != '[' {
		return false
	}
	for element := range wire.Elements(raw) {
		if element[0] != '"' {
			return false
		}
	}
	return true
}

// plainSchema says in an object what a schema says that is none: true allows
// everything, false nothing. What is no schema forbids nothing.
func plainSchema(schema json.RawMessage) json.RawMessage {
	if string(schema) == "false" {
		return json.RawMessage(`{"not":{}}`)
	}
	return json.RawMessage(`{}`)
}
