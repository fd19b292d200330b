package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/upstream"
)

// checkLimit is how long a server may take to connect and to list what it
// offers when it is only probed. One that npx has to download first takes ten
// seconds and more.
const checkLimit = 30 * time.Second

// check starts every server that may run, all at once, and prints each as its
// probe ends. Nothing it started is left.
func (a *app) check(ctx context.Context, cfg *config.Config, list []standing) error {
	// What a warning would say stands in the server's line.
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	out := a.newCheckPrinter(list)
	ended := make(chan int)
	var probes sync.WaitGroup
	started := a.Now()
	for i := range list {
		probes.Go(func() {
			if s := &list[i]; s.state != stateDisabled && s.state != stateInvalid && s.state != stateQuarantined {
				core.probe(ctx, a, s)
			}
			ended <- i
		})
	}
	go func() { probes.Wait(); close(ended) }()
	var broken error
	for i := range ended {
		if err := out.print(list[i], a.Now().Sub(started)); err != nil && broken == nil {
			broken = err
		}
	}
	switch {
	case broken != nil:
		return broken
	case ctx.Err() != nil:
		return ctx.Err()
	case a.JSON:
		if err := a.writeJSON(listOf(list)); err != nil {
			return err
		}
	}
	return unusable(list)
}

// probe connects to a server, reads its lists and makes the standing tell how
// that went.
func (c *core) probe(ctx context.Context, a *app, s *standing) {
	name := s.server.Name
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	status := c.set.Introduce(ctx, name)
	s.known.AttemptedAt = a.Now()
	s.state, s.err = stateUnavailable, ""
	switch {
	case ctx.Err() != nil:
		s.err = fmt.Sprintf("no answer within %s", checkLimit)
	case len(status) != 1:
		s.err = "not among the running servers"
	case status[0].State == upstream.NeedsLogin:
		s.state, s.err = stateNeedsLogin, status[0].Reason
	case status[0].State != upstream.Ready:
		s.err = status[0].Reason
	default:
		s.state = stateReady
		s.known.ListedAt = s.known.AttemptedAt
		items := c.set.Snapshot(ctx).Server(name)
		s.known.Counts.Tools, s.known.Counts.Resources = len(items.Tools), len(items.Resources)
		s.known.Counts.Templates, s.known.Counts.Prompts = len(items.Templates), len(items.Prompts)
	}
}

// checkPrinter prints servers one by one. A person gets columns as wide as they
// can become, a program the columns of list.
type checkPrinter struct {
	a     *app
	name  int // width of the names
	begun bool
}

func (a *app) newCheckPrinter(list []standing) *checkPrinter {
	p := &checkPrinter{a: a, name: len("NAME")}
	for _, s := range list {
		p.name = max(p.name, lipgloss.Width(clean(s.server.Name)))
	}
	return p
}

// print prints one server, and before the first one, to a person, a header.
func (p *checkPrinter) print(s standing, took time.Duration) error {
	switch {
	case p.a.JSON:
		return nil // an object is printed whole
	case p.a.Quiet:
		return p.a.print(clean(s.server.Name) + "\n")
	case !p.a.IsTerminal(Stdout):
		t := p.a.newTable()
		t.row(s.cells()...)
		return t.print()
	}
	text := ""
	if !p.begun {
		p.begun = true
		text = p.line(cell{text: "NAME", tint: heading}, cell{text: "STATE", tint: heading},
			cell{text: "TOOLS", tint: heading}, cell{text: "TOOK", tint: heading}, cell{text: "ERROR", tint: heading})
	}
	cells := s.cells()
	return p.a.print(text + p.line(cells[0], cells[1], cells[2], txt(fmt.Sprintf("%.1fs", took.Seconds())), cells[len(cells)-1]))
}

// line is one line for a person; the last cell has the room that is left.
func (p *checkPrinter) line(cells ...cell) string {
	looks := p.a.newTable().looks()
	widths := []int{p.name, len(stateUnavailable), len("TOOLS"), len("00.0s"), 0}
	last := len(widths) - 1
	widths[last] = p.a.columns()
	for _, w := range widths[:last] {
		widths[last] -= w + 2
	}
	widths[last] = max(widths[last], 8)
	var b strings.Builder
	for i, c := range cells {
		text := cut(clean(c.text), widths[i])
		b.WriteString(looks[c.tint].Render(text))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(text)+2))
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
