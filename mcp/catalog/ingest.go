package catalog

import (
	"encoding/json"
	"fmt"

	"mcpproxy/mcp/wire"
)

// member is one member of a definition whose type clients check: kind is the
// first byte of the JSON value, 'b' for a boolean, 'n' for a number.
type member struct {
	name string
	kind byte
}

// checked lists the members of a definition that strict clients decode by
// type; one of the wrong type makes such a client reject the whole list.
func checked(k Kind) []member {
	common := []member{{"title", '"'}, {"description", '"'}, {"icons", '['}, {"_meta", '{'}}
	switch k {
	case Tool:
		return append(common, member{"annotations", '{'}, member{"outputSchema", '{'}, member{"execution", '{'})
	case Resource:
		return append(common, member{"annotations", '{'}, member{"mimeType", '"'}, member{"size", 'n'})
	case Template:
		return append(common, member{"annotations", '{'}, member{"mimeType", '"'})
	}
	return append(common, member{"arguments", '['})
}

func identity(k Kind) string {
	switch k {
	case Resource:
		return "uri"
	case Template:
		return "uriTemplate"
	}
	return "name"
}

// Ingest makes items of the raw elements of an upstream's list, in order. What
// cannot be used is left out, what has a member of a wrong type loses that
// member, of two with one name the first counts; each leads to one warning
// that names server, position and member.
func Ingest(server string, kind Kind, elements []json.RawMessage) (items []*Item, warnings []string) {
	seen := make(map[string]bool, len(elements))
	for i, raw := range elements {
		at := fmt.Sprintf("server %s: %s %d", server, kind, i)
		key := identity(kind)
		name, ok := wire.String(wire.Member(raw, key))
		if !ok || name == "" {
			warnings = append(warnings, fmt.Sprintf("%s is left out: member %q is no text", at, key))
			continue
		}
		at += fmt.Sprintf(" (%s)", name)
		if seen[name] {
			warnings = append(warnings, at+" is left out: an earlier one has the same name")
			continue
		}
		seen[name] = true
		raw, removed := repair(kind, raw)
		for _, m := range removed {
			warnings = append(warnings, fmt.Sprintf("%s: member %q has the wrong type and is ignored", at, m))
		}
		items = append(items, New(Ref{server, kind, name}, raw, nil))
	}
	return items, warnings
}

func repair(kind Kind, raw json.RawMessage) (json.RawMessage, []string) {
	var removed []string
	for _, m := range checked(kind) {
		if v := wire.Member(raw, m.name); v != nil && !isKind(v, m.kind) {
			raw = wire.DeleteMember(raw, m.name)
			removed = append(removed, m.name)
		}
	}
	if kind == Tool {
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if v := wire.Member(raw, "annotations", hint); v != nil && !isKind(v, 'b') {
				raw = wire.DeleteMember(raw, "annotations", hint)
				removed = append(removed, "annotations."+hint)
			}
		}
	}
	if kind == Resource || kind == Template {
		// Typed clients require a name.
		if v := wire.Member(raw, "name"); !isKind(v, '"') {
			raw = wire.SetMember(raw, wire.Member(raw, identity(kind)), "name")
			removed = append(removed, "name")
		}
	}
	return raw, removed
}

func isKind(v json.RawMessage, kind byte) bool {
	if len(v) == 0 {
		return false
	}
	switch kind {
	case 'b':
		return string(v) == "true" || string(v) == "false"
	case 'n':
		return v[0] == '-' || v[0] >= '0' && v[0] <= '9'
	}
	return v[0] == kind
}
