package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"mcpproxy/mcp/wire"
)

// shape is what a JSON value has to be for strict clients to decode it. They
// give up a whole list, of all servers, over one value that is something else.
type shape struct {
	// allows reports whether the value as such is acceptable.
	allows func(raw json.RawMessage) bool
	// members are those of an object that are decoded; others may be anything.
	members []member
	// elements is what the elements of a list have to be.
	elements *shape
}

// member is one member of an object.
type member struct {
	name string
	shape
	required bool
}

// begins allows values by their first byte, which tells the type of text,
// objects and lists.
func begins(with byte) func(json.RawMessage) bool {
	return func(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == with }
}

func text() shape { return shape{allows: begins('"')} }

func word(choice ...string) shape {
	return shape{allows: func(raw json.RawMessage) bool {
		s, ok := wire.String(raw)
		return ok && slices.Contains(choice, s)
	}}
}

func boolean() shape {
	return shape{allows: func(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == "false" }}
}

// integer is a number that typed clients can hold.
func integer() shape {
	return shape{allows: func(raw json.RawMessage) bool {
		_, err := strconv.ParseInt(string(raw), 10, 64)
		return err == nil
	}}
}

// share is a number from 0 to 1.
func share() shape {
	return shape{allows: func(raw json.RawMessage) bool {
		f, err := strconv.ParseFloat(string(raw), 64)
		return err == nil && f >= 0 && f <= 1
	}}
}

// moment is a time with its offset.
func moment() shape {
	return shape{allows: func(raw json.RawMessage) bool {
		s, ok := wire.String(raw)
		_, err := time.Parse(time.RFC3339, s)
		return ok && err == nil
	}}
}

func list(of shape) shape { return shape{allows: begins('['), elements: &of} }

func object(members ...member) shape { return shape{allows: begins('{'), members: members} }

// definition is the shape of the definitions of a kind (MCP 2025-11-25, schema).
func definition(k Kind) shape {
	icon := object(
		member{name: "src", shape: text(), required: true}, member{name: "mimeType", shape: text()},
		member{name: "sizes", shape: list(text())}, member{name: "theme", shape: word("light", "dark")})
	members := []member{
		{name: "title", shape: text()}, {name: "description", shape: text()},
		{name: "icons", shape: list(icon)}, {name: "_meta", shape: object()},
	}
	switch k {
	case Tool:
		hints := object(member{name: "title", shape: text()}, member{name: "readOnlyHint", shape: boolean()}, member{name: "destructiveHint", shape: boolean()},
			member{name: "idempotentHint", shape: boolean()}, member{name: "openWorldHint", shape: boolean()})
		support := object(member{name: "taskSupport", shape: word("required", "optional", "forbidden")})
		return object(append(members, member{name: "annotations", shape: hints}, member{name: "outputSchema", shape: object()}, member{name: "execution", shape: support})...)
	case Prompt:
		argument := object(member{name: "name", shape: text(), required: true}, member{name: "title", shape: text()},
			member{name: "description", shape: text()}, member{name: "required", shape: boolean()})
		return object(append(members, member{name: "arguments", shape: list(argument)})...)
	}
	notes := object(member{name: "audience", shape: list(word("user", "assistant"))}, member{name: "priority", shape: share()}, member{name: "lastModified", shape: moment()})
	members = append(members, member{name: "annotations", shape: notes}, member{name: "mimeType", shape: text()})
	if k == Resource {
		members = append(members, member{name: "size", shape: integer()})
	}
	return object(members...)
}

// repair takes out of a value what is not of this shape and returns the paths
// of what it took. ok is false for a value that cannot be kept at all.
func (s *shape) repair(raw json.RawMessage, path string) (fixed json.RawMessage, removed []string, ok bool) {
	if !s.allows(raw) {
		return nil, []string{path}, false
	}
	for _, m := range s.members {
		at := m.name
		if path != "" {
			at = path + "." + m.name
		}
		v := wire.Member(raw, m.name)
		if v == nil && !m.required {
			continue
		}
		better, gone, kept := m.repair(v, at)
		switch {
		case !kept && m.required:
			return nil, []string{path}, false
		case !kept:
			raw = wire.DeleteMember(raw, m.name)
		case len(gone) > 0:
			raw = wire.SetMember(raw, better, m.name)
		}
		removed = append(removed, gone...)
	}
	if s.elements != nil {
		raw, removed = s.repairElements(raw, path)
	}
	return raw, removed, true
}

func (s *shape) repairElements(raw json.RawMessage, path string) (fixed json.RawMessage, removed []string) {
	fixed = json.RawMessage("[")
	i := 0
	for element := range wire.Elements(raw) {
		better, gone, kept := s.elements.repair(element, fmt.Sprintf("%s[%d]", path, i))
		removed = append(removed, gone...)
		if i++; !kept {
			continue
		}
		if len(fixed) > 1 {
			fixed = append(fixed, ',')
		}
		fixed = append(fixed, better...)
	}
	if removed == nil {
		return raw, nil
	}
	return append(fixed, ']'), removed
}
