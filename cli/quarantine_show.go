package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// quarantineShowCmd shows what a server offers.
type quarantineShowCmd struct {
	Item string `arg:"" help:"the server, or one item: SERVER:NAME" placeholder:"SERVER[:NAME]"`
	Kind string `help:"only tool, resource, template or prompt" placeholder:"KIND"`
}

// Help implements kong.HelpProvider.
func (*quarantineShowCmd) Help() string {
	return `Whole definitions are shown, and characters that nobody sees are spelled out. A held server is started for this alone, in private, with its stderr shown, and stopped again; when it is released, what was shown is what is approved.

    mcpproxy quarantine show github
    mcpproxy quarantine show github:create_issue`
}

// shownItems is the answer of quarantine show --json.
type shownItems struct {
	Server string      `json:"server"`
	State  string      `json:"state,omitempty"` // quarantined
	Items  []shownItem `json:"items"`
}

// shownItem is an item with its definition and, where it is not that, the one
// that was approved last.
type shownItem struct {
	heldItem
	Definition json.RawMessage `json:"definition,omitempty"`
	Approved   json.RawMessage `json:"approved_definition,omitempty"`
}

// run prints the definitions.
func (c *quarantineShowCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ref, err := a.reviewRef(cfg, c.Item, c.Kind)
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	all, err := core.review(ctx, a, ref.server)
	if err != nil {
		return err
	}
	forms := selected(all, ref)
	if len(forms) == 0 && ref.name != "" {
		return ref.absent(all)
	}
	answer := shownItems{Server: ref.server.Name, Items: []shownItem{}}
	if ref.server.Quarantined {
		answer.State = stateQuarantined
	}
	for _, f := range forms {
		item, err := core.shown(ctx, f)
		if err != nil {
			return err
		}
		answer.Items = append(answer.Items, item)
	}
	switch {
	case a.JSON:
		return a.writeJSONWithout(answer, hidden)
	case a.Quiet:
		var names strings.Builder
		for _, i := range answer.Items {
			names.WriteString(reveal(i.Server+":"+i.Name) + "\n")
		}
		return a.print(names.String())
	}
	return a.printShown(answer, ref)
}

// selected are the forms that are named: of a server those that it offers, of an
// item all that are known.
func selected(all []policy.Reviewed, ref reviewRef) (forms []policy.Reviewed) {
	for _, f := range all {
		if ref.matches(f.Item) && (f.Offered || ref.name != "" || f.Status == policy.Blocked || ref.server.Quarantined) {
			forms = append(forms, f)
		}
	}
	return forms
}

// shown is an item with its definitions.
func (c *core) shown(ctx context.Context, f policy.Reviewed) (shownItem, error) {
	item := shownItem{heldItem: heldItemOf(f), Definition: f.Item.Raw}
	if f.Status != policy.Changed {
		return item, nil
	}
	var err error
	item.Approved, err = c.reviewed.Before(ctx, f.Item.Ref)
	return item, err
}

// printShown prints items for a person to read, and what can be done.
func (a *app) printShown(answer shownItems, ref reviewRef) error {
	paint := a.painter(Stdout)
	var b strings.Builder
	for i, item := range answer.Items {
		if i > 0 {
			b.WriteByte('\n')
		}
		item.write(&b, paint)
		if item.Approved != nil && ref.name != "" {
			b.WriteString("\n" + paint(heading, "what has changed") + "\n")
			item.writeDiff(&b, paint)
		}
	}
	if err := a.print(b.String()); err != nil {
		return err
	}
	if len(answer.Items) == 0 {
		a.note("server %s offers nothing", answer.Server)
	}
	if answer.State == stateQuarantined {
		a.note("server %s is quarantined; to use it: mcpproxy quarantine release %s", answer.Server, answer.Server)
		return nil
	}
	for _, item := range answer.Items {
		if item.Status != string(policy.Approved) && ref.name != "" {
			a.note("to use it: %s", item.approveCommand())
		}
	}
	return nil
}

// approveCommand approves exactly the form that was shown.
func (i *shownItem) approveCommand() string {
	show := policy.ReviewCommand(catalog.Ref{Server: i.Server, Kind: catalog.Kind(i.Kind), Name: i.Name})
	return strings.Replace(show, " show ", " approve ", 1) + " --hash " + i.Hash[:min(shortHash, len(i.Hash))]
}

// shortHash is how many digits of a hash are enough to name a form.
const shortHash = 12

// write writes an item: a line, its description as text, then what else its
// definition says.
func (i *shownItem) write(b *strings.Builder, paint painter) {
	i.writeTitle(b, paint)
	if description, _ := wire.String(wire.Member(i.Definition, "description")); description != "" {
		writeIndented(b, revealText(strings.TrimRight(description, "\n")))
	}
	if rest := pretty(withoutDescription(i.Definition)); rest != "" {
		writeIndented(b, revealText(rest))
	}
}

// writeTitle writes which item it is and how it stands.
func (i *shownItem) writeTitle(b *strings.Builder, paint painter) {
	status := i.Status
	if status == "" {
		status = "not judged" // there is no store
	}
	fmt.Fprintf(b, "%s %s  %s", i.Kind, paint(heading, reveal(i.Server+":"+i.Name)), paint(tintOfStatus(policy.Status(i.Status)), status))
	if i.Who != "" {
		b.WriteString(" (" + reveal(i.Who) + ")")
	}
	if !i.Offered {
		b.WriteString(" (not offered now)")
	}
	b.WriteByte('\n')
}

func writeIndented(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("  " + line + "\n")
	}
}

// withoutDescription is a definition without what is shown as text. A
// description that is no text stays, and so does one that stands twice.
func withoutDescription(definition json.RawMessage) json.RawMessage {
	if _, ok := wire.String(wire.Member(definition, "description")); !ok {
		return definition
	}
	count := 0
	for name := range wire.Members(definition) {
		if name == "description" {
			count++
		}
	}
	if count > 1 {
		return definition
	}
	return wire.DeleteMember(definition, "description")
}

// pretty is JSON on many lines, in the one form that all ways of writing it have.
func pretty(definition json.RawMessage) string {
	if len(definition) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, catalog.Normal(definition), "", "  "); err != nil {
		return string(definition)
	}
	return b.String()
}
