package catalog

import (
	"encoding/json"
	"sync/atomic"

	"mcpproxy/mcp/wire"
)

// Kind is what an item is.
type Kind string

// The kinds of items, as they are stored.
const (
	Tool     Kind = "tool"
	Resource Kind = "resource"
	Template Kind = "template"
	Prompt   Kind = "prompt"
)

// Kinds lists all kinds in the order in which they are fetched.
func Kinds() []Kind { return []Kind{Tool, Resource, Template, Prompt} }

// ListMethod is the MCP method that lists items of a kind.
func (k Kind) ListMethod() string {
	switch k {
	case Tool:
		return "tools/list"
	case Resource:
		return "resources/list"
	case Template:
		return "resources/templates/list"
	}
	return "prompts/list"
}

// UseMethod is the MCP method that uses an item of a kind; a template gives the
// URIs of resources.
func (k Kind) UseMethod() string {
	switch k {
	case Tool:
		return "tools/call"
	case Prompt:
		return "prompts/get"
	}
	return "resources/read"
}

// ListMember is the member of a list result that holds the items.
func (k Kind) ListMember() string {
	switch k {
	case Tool:
		return "tools"
	case Resource:
		return "resources"
	case Template:
		return "resourceTemplates"
	}
	return "prompts"
}

// ChangedMethod is the notification that a list of this kind has changed.
func (k Kind) ChangedMethod() string {
	switch k {
	case Tool:
		return "notifications/tools/list_changed"
	case Prompt:
		return "notifications/prompts/list_changed"
	}
	return "notifications/resources/list_changed"
}

// Capability is the server capability that a kind belongs to.
func (k Kind) Capability() string {
	switch k {
	case Tool:
		return "tools"
	case Prompt:
		return "prompts"
	}
	return "resources"
}

// Ref names one item of one server. Name is the upstream's own: a tool or
// prompt name, a URI, or a URI template.
type Ref struct {
	Server string
	Kind   Kind
	Name   string
}

// Override is what a person changed of a tool in the configuration.
type Override struct {
	Name        string          // public name after the prefix, "" = the tool's own
	Description string          // "" = the tool's own
	Annotations json.RawMessage // replaces the tool's annotations where not nil
}

// Item is one tool, resource, template or prompt. It is never changed.
type Item struct {
	Ref
	// Raw is the definition as the upstream sent it, less members of a wrong
	// type.
	Raw json.RawMessage
	// Override is nil where the configuration changes nothing.
	Override *Override

	hints *hints // read once by New; nil reads them at each use
	sums  atomic.Pointer[sums]
}

// hints are what the annotations say of a tool's effects.
type hints struct {
	tier       Tier
	annotated  bool // tier comes from a hint
	repeatable bool
	openWorld  bool
}

// New returns the item of a definition.
func New(ref Ref, raw json.RawMessage, override *Override) *Item {
	it := &Item{Ref: ref, Raw: raw, Override: override}
	h := it.readHints()
	it.hints = &h
	return it
}

// Annotations returns the raw annotations that count for this item, nil where
// there are none.
func (it *Item) Annotations() json.RawMessage {
	if it.Override != nil && it.Override.Annotations != nil {
		return it.Override.Annotations
	}
	return wire.Member(it.Raw, "annotations")
}

// Tier says how much harm a tool can do; a higher tier includes the lower.
type Tier int

// The tiers in rising order.
const (
	Read Tier = iota
	Write
	Destructive
)

// String returns the word that people and files use.
func (t Tier) String() string {
	switch t {
	case Read:
		return "read"
	case Write:
		return "write"
	}
	return "destructive"
}

// ParseTier is the inverse of String; unknown words are Destructive.
func ParseTier(word string) Tier {
	switch word {
	case "read":
		return Read
	case "write":
		return Write
	}
	return Destructive
}

// Tier follows the hints of the annotations with the defaults of MCP: a tool
// that says nothing useful is destructive. unannotated counts for tools that
// carry neither hint.
func (it *Item) Tier(unannotated Tier) Tier {
	h := it.effects()
	if !h.annotated {
		return unannotated
	}
	return h.tier
}

// Repeatable reports whether a tool may be called again where it is not known
// whether the first call was carried out.
func (it *Item) Repeatable() bool { return it.effects().repeatable }

// OpenWorld reports whether a tool may reach out to what its server does not
// control; one that says nothing may.
func (it *Item) OpenWorld() bool { return it.effects().openWorld }

func (it *Item) effects() hints {
	if it.hints != nil {
		return *it.hints
	}
	return it.readHints()
}

func (it *Item) readHints() hints {
	annotations := it.Annotations()
	says := func(hint, value string) bool { return string(wire.Member(annotations, hint)) == value }
	h := hints{annotated: true, openWorld: !says("openWorldHint", "false")}
	h.repeatable = says("idempotentHint", "true") || says("readOnlyHint", "true") && !says("destructiveHint", "true")
	switch {
	case says("destructiveHint", "true"):
		h.tier = Destructive
	case says("readOnlyHint", "true"):
		h.tier = Read
	case says("destructiveHint", "false"):
		h.tier = Write
	case says("readOnlyHint", "false"):
		h.tier = Destructive
	default:
		h.annotated = false
	}
	return h
}
