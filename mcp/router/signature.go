package router

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Limits of a signature, in bytes.
const (
	maxSignature = 600 // the whole
	maxBrief     = 48  // the whole, in little
	maxParameter = 200 // the type of one parameter, before its nesting is cut
	maxNesting   = 2   // objects within objects that are written out
)

// signature is what a caller has to know of the arguments of a tool or prompt,
// in one line without its name:
//
//	(owner*: string, labels: string[], state: open|closed = open, limit = 10, opts: {a*: int}~)
//
// Required parameters have a "*" and come first; otherwise the order is the
// schema's. Types are string, int, number, bool, null, any, object, literals,
// T[], [T, U], {…}, {[key]: T} and unions of them; what a default shows is not
// written besides. A "~" stands where the schema says more, descriptions apart;
// lossy reports whether there is one. A default of null is left out along with the
// type null, since leaving the parameter out says the same. Numbers and defaults
// are written as in the schema. Resources have no arguments, and the signature "".
func signature(item *catalog.Item) (sig string, lossy bool) {
	return signatureIn(item, notation{", ", ": ", " = ", false}, maxSignature)
}

// briefly is the signature in as little as a model can read: without blanks, and a
// parameter without a type is a string.
func briefly(item *catalog.Item) (sig string, lossy bool) {
	return signatureIn(item, notation{",", ":", "=", true}, maxBrief)
}

// notation is what stands between the parts of a signature.
type notation struct {
	comma, colon, equals string
	text                 bool // the type string is left out
}

// signatureIn is a signature of at most so many bytes, some twenty at least. What is
// too long loses first the types of optional parameters, from the end on, then these
// themselves, and then the same of the required ones.
func signatureIn(item *catalog.Item, n notation, limit int) (sig string, lossy bool) {
	switch item.Kind {
	case catalog.Tool:
		r := newSchemaReader(wire.Member(item.Raw, "inputSchema"), n, limit)
		return r.parameters()
	case catalog.Prompt:
		return joinParameters(promptParameters(wire.Member(item.Raw, "arguments")), n, limit)
	}
	return "", false
}

// promptParameters are the arguments of a prompt, which are all text.
func promptParameters(arguments json.RawMessage) []parameter {
	var list []parameter
	for argument := range wire.Elements(arguments) {
		name, ok := wire.String(wire.Member(argument, "name"))
		if !ok {
			continue
		}
		list = append(list, parameter{
			name:     name,
			required: string(wire.Member(argument, "required")) == "true",
			kind:     typed{text: "string"},
		})
	}
	return list
}

// parameter is one argument as a signature has it.
type parameter struct {
	name     string
	required bool
	others   bool // stands for all members without a name in the schema
	kind     typed
	def      string // "" = none

	rawDefault json.RawMessage
}

// typed is a type as text.
type typed struct {
	text  string
	union bool // more than one alternative, to be put in brackets before []
	lossy bool
}

func (p parameter) label() string {
	if p.others {
		return "[key]"
	}
	name := bareOrQuoted(clip(p.name, maxLiteral), nameRune)
	if p.required {
		return name + "*"
	}
	return name
}

// full is the parameter with its type and default.
func (p parameter) full(n notation) string {
	name, kind := p.label(), p.kind.text
	plain := strings.TrimSuffix(kind, "~")
	switch {
	case p.def == "" && n.text && plain == "string":
		return name + kind[len(plain):]
	case p.def == "":
		return name + n.colon + kind
	case plain == shownType(p.rawDefault):
		return name + kind[len(plain):] + n.equals + p.def
	}
	return name + n.colon + kind + n.equals + p.def
}

// shownType is the type that a value shows, "" where that is open.
func shownType(value json.RawMessage) string {
	switch first := value[0]; {
	case first == '"':
		return "string"
	case first == 't', first == 'f':
		return "bool"
	case first != '-' && (first < '0' || first > '9'):
		return ""
	case bytes.ContainsAny(value, ".eE"):
		return "number"
	}
	return "int"
}

// requiredFirst orders parameters as signatures show them.
func requiredFirst(list []parameter) {
	slices.SortStableFunc(list, func(a, b parameter) int {
		return cmp.Compare(order(a.required), order(b.required))
	})
}

func order(required bool) int {
	if required {
		return 0
	}
	return 1
}

// joinParameters is the list in brackets, within limit-1 bytes.
func joinParameters(list []parameter, n notation, limit int) (string, bool) {
	const rest = "…~"
	separator := n.comma
	limit -= len("~") // which may be added
	requiredFirst(list)
	texts := make([]string, len(list))
	size, lossy := len("()"), false
	for i, p := range list {
		texts[i] = p.full(n)
		size += len(texts[i]) + len(separator)
		lossy = lossy || p.kind.lossy
	}
	if size <= limit+len(separator) {
		return "(" + strings.Join(texts, separator) + ")", lossy
	}
	size += len(rest)
	for _, required := range []bool{false, true} {
		for i := len(texts) - 1; i >= 0 && size > limit && list[i].required == required; i-- {
			name := list[i].label()
			size -= len(texts[i]) - len(name)
			texts[i] = name
		}
		for i := len(texts) - 1; i >= 0 && size > limit && list[i].required == required; i-- {
			size -= len(texts[i]) + len(separator)
			texts = texts[:i]
		}
	}
	return "(" + strings.Join(append(texts, rest), separator) + ")", true
}
