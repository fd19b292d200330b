package index

import (
	"encoding/json"
	"maps"
	"slices"
)

// parameters are the words of a schema that a person would search for; its
// keywords (type, properties, object) are none.
type parameters struct {
	names, texts, values []string
}

// read takes in the schema of a tool; what is no schema is ignored.
func (p *parameters) read(schema json.RawMessage) {
	if len(schema) == 0 {
		return
	}
	var root any
	if json.Unmarshal(schema, &root) == nil {
		p.walk(root, 0)
	}
}

// walk reads a schema and those within it, in a fixed order.
func (p *parameters) walk(schema any, depth int) {
	object, ok := schema.(map[string]any)
	if !ok || depth > maxDepth {
		return
	}
	if depth > 0 {
		p.text(object["title"])
		p.text(object["description"])
	}
	p.value(object["const"])
	if values, ok := object["enum"].([]any); ok {
		for _, value := range values {
			p.value(value)
		}
	}
	if properties, ok := object["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if len(p.names) >= maxProperties {
				return
			}
			p.names = append(p.names, name)
			p.walk(properties[name], depth+1)
		}
	}
	for _, member := range []string{"items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"} {
		if list, ok := object[member].([]any); ok {
			for _, each := range list {
				p.walk(each, depth+1)
			}
			continue
		}
		p.walk(object[member], depth+1)
	}
	for _, member := range []string{"$defs", "definitions"} {
		if defs, ok := object[member].(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(defs)) {
				p.walk(defs[name], depth+1)
			}
		}
	}
}

func (p *parameters) text(value any) {
	if text, ok := value.(string); ok && text != "" && len(p.texts) < maxProperties {
		p.texts = append(p.texts, cut(text, maxText))
	}
}

func (p *parameters) value(value any) {
	if text, ok := value.(string); ok && len(p.values) < maxValues {
		p.values = append(p.values, cut(text, maxHead))
	}
}
