package catalog

import (
	"encoding/json"
	"fmt"

	"mcpproxy/mcp/wire"
)

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
	shape := definition(kind)
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
		raw, removed := repair(kind, &shape, raw)
		for _, m := range removed {
			warnings = append(warnings, fmt.Sprintf("%s: member %q has a wrong type or value and is ignored", at, m))
		}
		items = append(items, New(Ref{server, kind, name}, raw, nil))
	}
	return items, warnings
}

// repair takes out of a definition what strict clients would reject.
func repair(kind Kind, shape *shape, raw json.RawMessage) (json.RawMessage, []string) {
	fixed, removed, _ := shape.repair(raw, "")
	if kind == Resource || kind == Template {
		// Typed clients require a name.
		if v := wire.Member(fixed, "name"); !begins('"')(v) {
			fixed = wire.SetMember(fixed, wire.Member(fixed, identity(kind)), "name")
			if v != nil {
				removed = append(removed, "name")
			}
		}
	}
	return fixed, removed
}
