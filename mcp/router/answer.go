package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/index"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Answer is what a search found, best first.
type Answer struct {
	Query string
	// Total counts all that fit, also beyond the limit of the query.
	Total int

	entries    []*Entry
	limit      int // characters, 0 = no limit
	risk       *sessionRisk
	filters    *filterDiagnostics
	unusable   []unusableTool
	remedy     string
	notices    []string
	debug      *searchDebug
	why        *explanation
	usage      []Usage
	usageAsked bool
}

// Entry is one item that was found.
type Entry struct {
	Item *catalog.Item
	Tier catalog.Tier
	// Score falls from entry to entry. It is whole, and comparable within one answer.
	Score float64

	public string // its name in lists
	form   form
}

// form is how much of an item an answer holds.
type form int

const (
	full    form = iota
	compact      // a signature, and the start of the description
	bare         // what it is called
)

// Entries are what was found, best first.
func (a *Answer) Entries() []*Entry { return a.entries }

// Notices are what whoever asked should know besides, as sentences.
func (a *Answer) Notices() []string { return a.notices }

// Description is an item's own description, or the configuration's.
func (e *Entry) Description() string { return descriptionOf(e.Item) }

func descriptionOf(item *catalog.Item) string {
	if o := item.Override; o != nil && o.Description != "" {
		return o.Description
	}
	text, _ := wire.String(wire.Member(item.Raw, "description"))
	return text
}

// entry is a hit as an answer to a query.
func (s *Search) entry(hit index.Hit, public string, compacted bool) *Entry {
	e := &Entry{Item: hit.Item, Tier: s.options.Gate.Tier(hit.Item), Score: hit.Score, public: public}
	if compacted {
		e.form = compact
	}
	return e
}

// definition is all that is known of a tool, as retrieve_tools and describe_tool
// give it.
type definition struct {
	Name         string          `json:"name"`
	Server       string          `json:"server"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	CallWith     string          `json:"call_with"`
	Score        *float64        `json:"score,omitempty"`
}

func define(item *catalog.Item, tier catalog.Tier, score *float64) definition {
	d := definition{
		Name: fullName(item), Server: item.Server, Description: descriptionOf(item),
		InputSchema: encodable(wire.Member(item.Raw, "inputSchema")), OutputSchema: encodable(wire.Member(item.Raw, "outputSchema")),
		Annotations: encodable(item.Annotations()), CallWith: variantName(tier), Score: score,
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	return d
}

// encodable is JSON of a server, nil where it is nested too deeply to be a part of
// something that is encoded.
func encodable(raw json.RawMessage) json.RawMessage {
	const around = 8 // arrays and objects that an answer has around it, and some more
	if raw != nil && json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), raw, bytes.Repeat([]byte("]"), around))) {
		return raw
	}
	return nil
}

// shape is an entry as the answer has it.
func (e *Entry) shape() any {
	switch {
	case e.Item.Kind != catalog.Tool:
		return e.otherShape()
	case e.form == full:
		return define(e.Item, e.Tier, &e.Score)
	}
	c := struct {
		ID       string  `json:"id"`
		Sig      string  `json:"sig,omitempty"`
		Desc     string  `json:"desc,omitempty"`
		CallWith string  `json:"call_with,omitempty"`
		Score    float64 `json:"score"`
		Lossy    bool    `json:"lossy,omitempty"`
	}{ID: fullName(e.Item), Score: e.Score}
	if e.Tier < catalog.Destructive {
		c.CallWith = e.Tier.String()
	}
	if e.form == compact {
		c.Sig, c.Lossy = briefly(e.Item)
		if c.Sig == "()" {
			c.Sig = ""
		}
		c.Desc = firstSentence(e.Description())
	}
	return c
}

// otherShape is a resource, a template or a prompt, which are used by methods of
// MCP and not through a tool.
func (e *Entry) otherShape() any {
	o := struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Server      string          `json:"server"`
		URI         string          `json:"uri,omitempty"`
		Template    string          `json:"uriTemplate,omitempty"`
		Description string          `json:"description,omitempty"`
		MimeType    string          `json:"mimeType,omitempty"`
		Arguments   json.RawMessage `json:"arguments,omitempty"`
		UseWith     string          `json:"use_with"`
		Score       float64         `json:"score"`
	}{Type: string(e.Item.Kind), Server: e.Item.Server, Description: e.Description(), UseWith: e.Item.Kind.UseMethod(), Score: e.Score}
	o.Name, _ = wire.String(wire.Member(e.Item.Raw, "name"))
	o.MimeType, _ = wire.String(wire.Member(e.Item.Raw, "mimeType"))
	switch e.Item.Kind {
	case catalog.Resource:
		o.URI = e.Item.Name
	case catalog.Template:
		o.Type, o.Template = string(catalog.Resource), e.Item.Name
	default:
		o.Name, o.Arguments = e.public, encodable(wire.Member(e.Item.Raw, "arguments"))
	}
	if e.form != full {
		o.Description, o.Arguments = firstSentence(o.Description), nil
	}
	if e.form == bare {
		o.Description = ""
	}
	return o
}

// Words that go with the entries of an answer.
const (
	usageText   = `call what you choose with the tool in its "call_with": {"name": "server:tool", "args": {…}}`
	compactHint = `call_with read is call_tool_read, write call_tool_write, none call_tool_destructive; ` +
		`sig: * required, = default, no type = string, no sig = no arguments, ~ says less than the schema; describe_tool {"tool_ids": ["server:tool"]} gives the whole`
	mixedHint   = `compact from entry %d on`
	bareHint    = `names alone from entry %d on, describe_tool gives the rest`
	leftHint    = `%d more left out: lower "limit", or search for one need at a time`
	unnamedHint = `%d more that cannot be called are not named`
	limitHint   = `an answer has %d characters at most`
	nothingHint = `nothing fits: search with other words, the product or domain, a verb and an object, one need at a time`
)

// tersely is the limit in characters below which an answer says little besides the
// entries.
const tersely = 1000

// sidePart is the part of an answer, one in so many, that each of the things beside
// the entries may take.
const sidePart = 8

// MarshalJSON implements json.Marshaler. What would be longer than the limit has
// its last entries compact, then bare; what is too long even so is left out, and
// a hint says how many are.
func (a *Answer) MarshalJSON() ([]byte, error) {
	texts := a.encodeEntries()
	var hints []string
	if left := a.shortenDisabled(); left > 0 {
		hints = append(hints, fmt.Sprintf(unnamedHint, left))
	}
	if len(texts) == 0 {
		hints = append([]string{nothingHint}, hints...)
	}
	if a.limit > 0 {
		var pressed []string
		texts, pressed = a.press(texts, hints)
		hints = append(pressed, hints...)
	}
	if !a.terse() && slices.ContainsFunc(a.entries[:len(texts)], func(e *Entry) bool { return e.form == compact && e.Item.Kind == catalog.Tool }) {
		hints = append(hints, compactHint)
	}
	return a.encode(texts, hints), nil
}

// shortenDisabled leaves what cannot be called a part of the answer, and returns how
// many of it are not named.
func (a *Answer) shortenDisabled() (left int) {
	if a.limit == 0 {
		return 0
	}
	room := a.limit / sidePart
	for i, tool := range a.unusable {
		if room -= utf8.RuneCount(encode(tool)) + 1; room < 0 {
			left = len(a.unusable) - i
			a.unusable = a.unusable[:i]
			break
		}
	}
	return left
}

// side is a text beside the entries with no more than its part of the answer.
func (a *Answer) side(text string) string {
	if a.limit == 0 {
		return text
	}
	return clipped(text, a.limit/sidePart)
}

// terse reports whether there is room for little besides the entries.
func (a *Answer) terse() bool { return a.limit > 0 && a.limit < tersely }

// encodeEntries are the entries in their present form.
func (a *Answer) encodeEntries() []json.RawMessage {
	texts := make([]json.RawMessage, len(a.entries))
	for i, e := range a.entries {
		texts[i] = encode(e.shape())
	}
	return texts
}

// press makes entries shorter from the last to the first until the answer is
// within its limit, and returns those that are kept and what is to be said of it.
func (a *Answer) press(texts []json.RawMessage, hints []string) (kept []json.RawMessage, pressed []string) {
	length := utf8.RuneCount(a.encode(nil, append([]string{compactHint}, hints...)))
	for _, text := range texts {
		length += utf8.RuneCount(text) + 1
	}
	if length <= a.limit {
		return texts, nil
	}
	length += len(mixedHint) + len(bareHint) + len(leftHint) + len(limitHint) + 4*len("; 1234567")
	for _, step := range []struct {
		form form
		hint string
	}{{compact, mixedHint}, {bare, bareHint}} {
		first := -1
		for i := len(texts) - 1; i >= 0 && length > a.limit; i-- {
			if a.entries[i].form >= step.form {
				continue
			}
			a.entries[i].form = step.form
			shorter := encode(a.entries[i].shape())
			length += utf8.RuneCount(shorter) - utf8.RuneCount(texts[i])
			texts[i], first = shorter, i
		}
		if first >= 0 {
			pressed = append(pressed, fmt.Sprintf(step.hint, first+1))
		}
	}
	all := len(texts)
	for len(texts) > 1 && length > a.limit {
		length -= utf8.RuneCount(texts[len(texts)-1]) + 1
		texts = texts[:len(texts)-1]
	}
	if left := all - len(texts); left > 0 {
		pressed = append(pressed, fmt.Sprintf(leftHint, left))
	}
	if a.terse() {
		return texts, pressed[max(0, len(pressed)-1):]
	}
	return texts, append(pressed, fmt.Sprintf(limitHint, a.limit))
}

// encode is the answer with these entries and hints.
func (a *Answer) encode(tools []json.RawMessage, hints []string) json.RawMessage {
	if tools == nil {
		tools = []json.RawMessage{}
	}
	usage, query := usageText, a.Query
	isTool := func(e *Entry) bool { return e.Item.Kind == catalog.Tool }
	if a.terse() || !slices.ContainsFunc(a.entries, isTool) {
		usage = ""
	}
	var stats *[]Usage
	if a.usageAsked {
		stats = &a.usage
	}
	return encode(struct {
		Tools       []json.RawMessage  `json:"tools"`
		Query       string             `json:"query"`
		Total       int                `json:"total"`
		Usage       string             `json:"usage_instructions,omitempty"`
		Hint        string             `json:"hint,omitempty"`
		Notice      string             `json:"notice,omitempty"`
		Risk        *sessionRisk       `json:"session_risk,omitempty"`
		Filters     *filterDiagnostics `json:"filter_diagnostics,omitempty"`
		Disabled    []unusableTool     `json:"disabled,omitempty"`
		Remediation string             `json:"remediation,omitempty"`
		Explanation *explanation       `json:"explanation,omitempty"`
		Stats       *[]Usage           `json:"usage_summary,omitempty"`
		Debug       *searchDebug       `json:"debug,omitempty"`
	}{tools, a.side(query), a.Total, usage, strings.Join(hints, "; "), a.side(strings.Join(a.notices, "; ")),
		a.risk, a.filters, a.unusable, a.side(a.remedy), a.why, stats, a.debug})
}
