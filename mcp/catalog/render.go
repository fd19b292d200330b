package catalog

import (
	"bytes"
	"encoding/json"

	"mcpproxy/mcp/wire"
)

// RenderVersion is raised with every change of what is rendered, so that no
// reply of an older build is served from the store.
const RenderVersion = 1

// RenderTool returns the definition of a tool under its public name: the name,
// the description with "[server] " in front, and a root of inputSchema and
// outputSchema that strict clients accept. All other bytes are the upstream's.
func RenderTool(item *Item, public string) json.RawMessage {
	raw := wire.SetMember(item.Raw, wire.Quote(public), "name")
	raw = wire.SetMember(raw, description(item), "description")
	if o := item.Override; o != nil && o.Annotations != nil {
		raw = wire.SetMember(raw, o.Annotations, "annotations")
	}
	if schema := wire.Member(raw, "inputSchema"); !isObjectSchema(schema) {
		raw = wire.SetMember(raw, objectSchema(schema), "inputSchema")
	}
	if schema := wire.Member(raw, "outputSchema"); schema != nil && !isObjectSchema(schema) {
		if t := wire.Member(schema, "type"); t == nil || bytes.Contains(t, []byte(`"object"`)) {
			raw = wire.SetMember(raw, objectSchema(schema), "outputSchema")
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

func isObjectSchema(schema json.RawMessage) bool {
	return string(wire.Member(schema, "type")) == `"object"`
}

// objectSchema gives a schema a root of type object and keeps what else it
// says.
func objectSchema(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || schema[0] != '{' {
		return json.RawMessage(`{"type":"object"}`)
	}
	return wire.SetMember(schema, json.RawMessage(`"object"`), "type")
}
