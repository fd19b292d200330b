package router

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"mcpproxy/mcp/wire"
)

// Limits that keep a schema from taking time: a reference can make a small
// schema endless, and a few of them an enormous one.
const (
	maxWork       = 4000 // schemas looked at for one signature, and KiB of them
	maxSchemaDeep = 24   // schemas within schemas, references counted
	maxVariants   = 8    // alternatives of a union that are written out
	maxMembers    = 16   // members of a nested object that are written out
)

// schemaReader writes the parameters of one JSON Schema as a signature.
type schemaReader struct {
	root    json.RawMessage
	targets map[string]json.RawMessage // of references, nil where there is none
	left    int                        // of maxWork
	limit   int                        // of the signature, in bytes
	notation
}

func newSchemaReader(root json.RawMessage, n notation, limit int) *schemaReader {
	return &schemaReader{root: root, targets: map[string]json.RawMessage{}, left: maxWork, limit: limit, notation: n}
}

// shapeOf is a schema with its references followed and the parts of allOf put
// together.
type shapeOf struct {
	types      []string
	enum       []json.RawMessage // nil = any value
	properties []propertyOf
	required   map[string]bool
	demanded   []string        // required, in order
	items      json.RawMessage // of an array
	tuple      []json.RawMessage
	values     json.RawMessage // of the members that have no name in the schema
	variants   []json.RawMessage
	def        json.RawMessage
	nullable   bool
	loses      bool // there is more than what is here
}

type propertyOf struct {
	name   string
	schema json.RawMessage
}

// parameters is the signature of the root. A root that is a union of objects
// gives a union of lists.
func (r *schemaReader) parameters() (string, bool) {
	var s shapeOf
	r.read(&s, r.root, 0)
	if len(s.properties) > 0 || len(s.variants) == 0 {
		return r.listOf(&s)
	}
	var lists []string
	size, cut, lossy := 0, s.loses, false
	for _, variant := range s.variants {
		var v shapeOf
		r.read(&v, variant, 1)
		list, loses := r.listOf(&v)
		if slices.Contains(lists, list) {
			continue
		}
		if size += len(list) + len("|"); size > r.limit && len(lists) > 0 {
			cut = true
			break
		}
		lists, lossy = append(lists, list), lossy || loses
	}
	text := strings.Join(lists, "|")
	if cut {
		return text + "~", true
	}
	return text, lossy
}

// listOf is the list of an object's members in brackets.
func (r *schemaReader) listOf(s *shapeOf) (string, bool) {
	list := r.members(s, 1, maxNesting)
	text, lossy := joinParameters(list, r.notation, r.limit)
	if s.loses || len(s.variants) > 0 {
		return text + "~", true
	}
	return text, lossy
}

// members are the members of an object as parameters; nesting is how many levels
// of objects may be written out below them.
func (r *schemaReader) members(s *shapeOf, deep, nesting int) []parameter {
	var list []parameter
	known := map[string]bool{}
	for _, property := range s.properties {
		known[property.name] = true
		list = append(list, r.parameter(property, s.required[property.name], deep, nesting))
	}
	for _, name := range s.demanded {
		if !known[name] {
			known[name] = true
			list = append(list, parameter{name: name, required: true, kind: typed{text: "any"}})
		}
	}
	if s.values != nil && (len(list) == 0 || s.values[0] == '{') {
		list = append(list, parameter{others: true, kind: r.typeWithin(s.values, deep, nesting)})
	}
	return list
}

// parameter is one member of an object, with less nesting where it would be too
// long.
func (r *schemaReader) parameter(property propertyOf, required bool, deep, nesting int) parameter {
	p := parameter{name: property.name, required: required}
	var s shapeOf
	r.read(&s, property.schema, deep)
	p.kind = r.typeOf(&s, deep, nesting)
	for n := nesting - 1; n >= 0 && len(p.kind.text) > maxParameter; n-- {
		p.kind = r.typeOf(&s, deep, n)
	}
	switch {
	case s.def == nil:
	case string(s.def) != "null":
		def, whole := literal(s.def)
		p.def, p.rawDefault = def, s.def
		p.kind.lossy = p.kind.lossy || !whole
	case !required:
		p.kind.text = strings.TrimSuffix(p.kind.text, "|null")
	}
	return p
}

func (r *schemaReader) typeWithin(schema json.RawMessage, deep, nesting int) typed {
	var s shapeOf
	r.read(&s, schema, deep)
	return r.typeOf(&s, deep, nesting)
}

// read adds what a schema says to s.
func (r *schemaReader) read(s *shapeOf, schema json.RawMessage, deep int) {
	if deep > maxSchemaDeep || !r.work(schema) {
		s.loses = true
		return
	}
	switch {
	case len(schema) == 0, deep == 0 && wire.IsNull(schema), string(schema) == "true":
		return
	case string(schema) == "false":
		s.types = append(s.types, "never")
		return
	case schema[0] != '{':
		s.loses = true
		return
	}
	for keyword, value := range wire.Members(schema) {
		s.loses = r.keyword(s, keyword, value, deep) || s.loses
	}
}

// work reports whether there is time to look through a schema once more.
func (r *schemaReader) work(schema json.RawMessage) bool {
	r.left -= 1 + len(schema)>>10
	return r.left >= 0
}

// keyword adds one member of a schema and reports whether something of it is
// lost.
func (r *schemaReader) keyword(s *shapeOf, keyword string, value json.RawMessage, deep int) bool {
	switch keyword {
	case "$ref":
		target, ok := r.resolve(value)
		if ok {
			r.read(s, target, deep+1)
		}
		return !ok
	case "allOf":
		for part := range wire.Elements(value) {
			r.read(s, part, deep+1)
		}
	case "anyOf", "oneOf":
		again := len(s.variants) > 0
		for variant := range wire.Elements(value) {
			s.variants = append(s.variants, variant)
		}
		return again
	case "type":
		return s.addTypes(value)
	case "enum":
		again := s.enum != nil
		s.enum = slices.AppendSeq([]json.RawMessage{}, wire.Elements(value))
		return again
	case "const":
		s.enum = []json.RawMessage{value}
	case "properties":
		return s.addProperties(value)
	case "required":
		s.require(value)
	case "items":
		if value[0] == '[' {
			s.tuple = slices.Collect(wire.Elements(value))
		} else {
			s.items = value
		}
	case "prefixItems":
		s.tuple = slices.Collect(wire.Elements(value))
	case "additionalProperties":
		if string(value) != "false" {
			s.values = value
		}
	case "default":
		s.def = value
	case "nullable":
		s.nullable = string(value) == "true"
	default:
		return constrains(keyword, value)
	}
	return false
}

// addTypes adds types and reports whether there were other ones before.
func (s *shapeOf) addTypes(value json.RawMessage) (clash bool) {
	var types []string
	if name, ok := wire.String(value); ok {
		types = []string{name}
	}
	for element := range wire.Elements(value) {
		if name, ok := wire.String(element); ok {
			types = append(types, name)
		}
	}
	if s.types == nil {
		s.types = types
	}
	return !slices.Equal(s.types, types)
}

// addProperties adds the properties of an object and reports whether one of them
// is described twice.
func (s *shapeOf) addProperties(value json.RawMessage) (clash bool) {
	at := make(map[string]int, len(s.properties))
	for i, property := range s.properties {
		at[property.name] = i
	}
	before := len(s.properties)
	for name, schema := range wire.Members(value) {
		i, known := at[name]
		if !known {
			at[name] = len(s.properties)
			s.properties = append(s.properties, propertyOf{name, schema})
			continue
		}
		clash = clash || i < before
		s.properties[i].schema = schema
	}
	return clash
}

func (s *shapeOf) require(value json.RawMessage) {
	if s.required == nil {
		s.required = map[string]bool{}
	}
	for element := range wire.Elements(value) {
		if name, ok := wire.String(element); ok && !s.required[name] {
			s.required[name] = true
			s.demanded = append(s.demanded, name)
		}
	}
}

// resolve returns what a reference within the schema points at.
func (r *schemaReader) resolve(ref json.RawMessage) (json.RawMessage, bool) {
	name, _ := wire.String(ref)
	if target, ok := r.targets[name]; ok {
		return target, target != nil
	}
	if !r.work(r.root) {
		return nil, false
	}
	pointer, ok := strings.CutPrefix(name, "#")
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	target := r.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		target = wire.Member(target, step)
	}
	if !ok || pointer != "" && pointer[0] != '/' {
		target = nil
	}
	r.targets[name] = target
	return target, target != nil
}

// constrains reports whether a keyword forbids values that the type allows.
func constrains(keyword string, value json.RawMessage) bool {
	switch keyword {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		// Generators add the range of safe integers to every integer, and false
		// to what draft 4 wrote as a flag.
		text := strings.TrimPrefix(string(value), "-")
		return text != "9007199254740991" && text != "9007199254740992" && text != "false"
	case "minLength", "minItems", "minProperties":
		return string(value) != "0"
	case "uniqueItems":
		return string(value) == "true"
	case "format":
		switch string(value) {
		case `"int32"`, `"int64"`, `"float"`, `"double"`:
			return false
		}
		return true
	case "pattern", "multipleOf", "maxLength", "maxItems", "maxProperties",
		"patternProperties", "propertyNames", "dependencies", "dependentRequired", "dependentSchemas",
		"if", "not", "contains", "contentEncoding", "contentMediaType", "contentSchema",
		"unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef":
		return true
	}
	return false
}
