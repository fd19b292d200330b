package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// toolsShowCmd shows one tool.
type toolsShowCmd struct {
	Tool string `arg:"" help:"the tool: SERVER:TOOL" placeholder:"SERVER:TOOL"`
}

// Help implements kong.HelpProvider.
func (*toolsShowCmd) Help() string {
	return `The definition is that of the last connection; the server is started only if nothing is known of it. "mcpproxy list --check" reads all lists again.

    mcpproxy tools show notes:read_note
    mcpproxy tools show notes__read_note --json | jq .definition.inputSchema`
}

// toolDetails is the answer of tools show --json.
type toolDetails struct {
	toolSummary
	Definition json.RawMessage `json:"definition"` // as the server gave it
}

// run prints the definition of a tool.
func (c *toolsShowCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	at, err := addressOf(cfg, c.Tool)
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	item, err := core.find(ctx, at, false)
	if err != nil {
		return err
	}
	public := core.set.Snapshot(ctx).Names(catalog.Tool, catalog.MaxName("", cfg.MaxToolNameLength))
	details := toolDetails{toolSummary: core.summary(item, public), Definition: item.Raw}
	switch {
	case a.JSON:
		return a.writeJSON(details)
	case a.Quiet:
		return a.print(clean(details.Server+":"+details.Name) + "\n")
	}
	return a.printTool(details)
}

// printTool prints a tool: lines of key and value, and for a person the
// description as the text that it is.
func (a *app) printTool(d toolDetails) error {
	title, _ := wire.String(wire.Member(d.Definition, "title"))
	if title == "" {
		title, _ = wire.String(wire.Member(d.Definition, "annotations", "title"))
	}
	list := []field{
		{"tool", txt(d.Name)},
		{"server", txt(d.Server)},
		{"public_name", txt(d.PublicName)},
		{"tier", cell{text: d.Tier, tint: tintOfTier(d.Tier)}},
		{"title", txt(title)},
	}
	for _, p := range parameters(wire.Member(d.Definition, "inputSchema")) {
		list = append(list, field{"argument", txt(p)})
	}
	if !a.IsTerminal(Stdout) {
		return a.printFields(append(list, field{"description", txt(d.Description)}))
	}
	if err := a.printFields(list); err != nil || d.Description == "" {
		return err
	}
	return a.print("\n" + cleanText(strings.TrimSpace(d.Description)) + "\n")
}

// parameters describes the properties of an input schema, one line each, in
// the order of the schema: "name (string, required): the note's name".
func parameters(schema json.RawMessage) []string {
	var required []string
	for element := range wire.Elements(wire.Member(schema, "required")) {
		name, _ := wire.String(element)
		required = append(required, name)
	}
	var list []string
	for name, property := range wire.Members(wire.Member(schema, "properties")) {
		var marks []string
		if kind := typeOf(property); kind != "" {
			marks = append(marks, kind)
		}
		if slices.Contains(required, name) {
			marks = append(marks, "required")
		}
		line := name
		if len(marks) > 0 {
			line += " (" + strings.Join(marks, ", ") + ")"
		}
		if text, _ := wire.String(wire.Member(property, "description")); text != "" {
			line += ": " + text
		}
		list = append(list, line)
	}
	return list
}

// typeOf is the type that a schema names, of several "string or null".
func typeOf(schema json.RawMessage) string {
	kind := wire.Member(schema, "type")
	if word, ok := wire.String(kind); ok {
		return word
	}
	var words []string
	for element := range wire.Elements(kind) {
		if word, ok := wire.String(element); ok {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}
