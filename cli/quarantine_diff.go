package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
)

// quarantineDiffCmd shows what has changed.
type quarantineDiffCmd struct {
	Item string `arg:"" optional:"" help:"only of this server, or this item: SERVER:NAME" placeholder:"SERVER[:NAME]"`
	Kind string `help:"only tool, resource, template or prompt" placeholder:"KIND"`
}

// Help implements kong.HelpProvider.
func (*quarantineDiffCmd) Help() string {
	return `Words that went stand in [-…-], those that came in {+…+}; of what stayed, two lines around a change. No server is started.

    mcpproxy quarantine diff
    mcpproxy quarantine diff github:create_issue`
}

// diffAnswer is the answer of quarantine diff --json.
type diffAnswer struct {
	Items []itemDiff `json:"items"`
}

// itemDiff is how an item differs from what was approved; everything is
// inserted where nothing was.
type itemDiff struct {
	shownItem
	Description []segment `json:"description_diff"`
	Rest        []segment `json:"definition_diff"` // without the description, normalised
}

// run prints the differences of all that is held, or of what is named.
func (c *quarantineDiffCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	items, err := c.items(ctx, a, core)
	if err != nil {
		return err
	}
	if a.JSON {
		answer := diffAnswer{Items: []itemDiff{}}
		for _, item := range items {
			description, rest := item.diff()
			answer.Items = append(answer.Items, itemDiff{item, description, rest})
		}
		return a.writeJSONWithout(answer, hidden)
	}
	paint := a.painter(Stdout)
	var b strings.Builder
	for i, item := range items {
		if a.Quiet {
			b.WriteString(reveal(item.Server+":"+item.Name) + "\n")
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		if item.Approved == nil {
			item.write(&b, paint) // nothing to compare it with
			continue
		}
		item.writeTitle(&b, paint)
		item.writeDiff(&b, paint)
	}
	if err := a.print(b.String()); err != nil {
		return err
	}
	if len(items) == 0 {
		a.note("nothing is held")
	}
	return nil
}

// items are those that are held.
func (c *quarantineDiffCmd) items(ctx context.Context, a *app, core *core) (items []shownItem, err error) {
	cfg := core.cfg.Load()
	var servers []*config.Server
	ref := reviewRef{}
	if c.Item != "" {
		if ref, err = a.reviewRef(cfg, c.Item, c.Kind); err != nil {
			return nil, err
		}
		servers = append(servers, ref.server)
	} else {
		for i := range cfg.Servers {
			if s := &cfg.Servers[i]; s.Enabled && s.Err == nil {
				servers = append(servers, s)
			}
		}
	}
	for _, server := range servers {
		all, err := core.reviewKnown(ctx, a, server)
		if err != nil {
			return nil, err
		}
		known := false
		for _, f := range all {
			if !ref.matches(f.Item) {
				continue
			}
			known = true
			if !f.Held() || !f.Offered && ref.name == "" && !server.Quarantined {
				continue
			}
			item, err := core.shown(ctx, f)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		if ref.name != "" && !known {
			return nil, ref.absent(all)
		}
	}
	return items, nil
}

// diff is how the description and the rest of the definition have changed.
func (i *shownItem) diff() (description, rest []segment) {
	text := func(definition json.RawMessage) string {
		if rest := withoutDescription(definition); len(rest) == len(definition) {
			return ""
		}
		s, _ := wire.String(wire.Member(definition, "description"))
		return s
	}
	return textDiff(text(i.Approved), text(i.Definition)),
		textDiff(pretty(withoutDescription(i.Approved)), pretty(withoutDescription(i.Definition)))
}

// writeDiff writes the differences.
func (i *shownItem) writeDiff(b *strings.Builder, paint painter) {
	description, rest := i.diff()
	for _, part := range [][]segment{description, rest} {
		for _, line := range excerpt(paintLines(part, paint)) {
			b.WriteString("  " + line + "\n")
		}
	}
}

// painter gives a text the look of a tint; it must hold nothing harmful.
type painter func(t tint, text string) string

// painter paints for a stream.
func (a *app) painter(s Stream) painter {
	if !a.styled(s) {
		return func(_ tint, text string) string { return text }
	}
	looks := a.newTable().looks()
	return func(t tint, text string) string { return looks[t].Render(text) }
}

// diffLine is one line of a diff, made harmless.
type diffLine struct {
	text    string
	changed bool
}

// paintLines breaks a diff into lines and marks what has changed.
func paintLines(list []segment, paint painter) []diffLine {
	lines := []diffLine{{}}
	write := func(text string, changed bool) {
		last := &lines[len(lines)-1]
		last.text += text
		last.changed = last.changed || changed
	}
	for _, s := range list {
		for i, piece := range strings.Split(s.Text, "\n") {
			if i > 0 {
				if s.Op != stayed && strings.Trim(s.Text, "\n") == "" {
					write(mark(s.Op, "\n", paint), true) // nothing else would show it
				}
				lines = append(lines, diffLine{changed: s.Op != stayed})
			}
			if piece != "" {
				write(mark(s.Op, piece, paint), s.Op != stayed)
			}
		}
	}
	return lines
}

// mark is a piece of a line with what tells that it went or came.
func mark(op segmentOp, text string, paint painter) string {
	text = escape(text, func(r rune) bool { return hidden(r) && r != '\t' })
	switch op {
	case went:
		return paint(bad, "[-"+text+"-]")
	case came:
		return paint(good, "{+"+text+"+}")
	}
	return text
}

// diffContext is how many lines around a change are shown.
const diffContext = 2

// excerpt leaves out lines that are far from every change.
func excerpt(lines []diffLine) []string {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line.changed {
			for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}
	var out []string
	for i := 0; i < len(lines); i++ {
		if near[i] {
			out = append(out, lines[i].text)
			continue
		}
		from := i
		for i+1 < len(lines) && !near[i+1] {
			i++
		}
		switch {
		case from == 0 && i == len(lines)-1: // nothing has changed
		case i == from:
			out = append(out, lines[i].text)
		default:
			out = append(out, fmt.Sprintf("… %d lines", i-from+1))
		}
	}
	return out
}
