package cli

import (
	"context"
	"fmt"
	"strings"

	"mcpproxy/index"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/router"
)

// toolsSearchCmd finds tools by what they do.
type toolsSearchCmd struct {
	Query  []string `arg:"" help:"what the tool is to do, or its name"`
	Limit  int      `help:"how many to show, 1 to 100 (default: tools_limit of the configuration)" placeholder:"N"`
	Detail string   `help:"with --json: full, with schemas, or compact, with signatures (default: tool_response_mode of the configuration)" placeholder:"DETAIL"`
}

// Help implements kong.HelpProvider.
func (*toolsSearchCmd) Help() string {
	return `The answer is that of the tool retrieve_tools, which --json prints as it is. No server is started: searched is what was stored at the last connection. Name the product or domain, a verb and an object, one need at a time; the words of the search are marked.

    mcpproxy tools search github create issue
    mcpproxy tools search --limit 3 --json read a file | jq -r '.tools[].name'`
}

// run prints what fits, the best first.
func (c *toolsSearchCmd) run(ctx context.Context, a *app) error {
	query := strings.TrimSpace(strings.Join(c.Query, " "))
	switch {
	case query == "":
		return misuse("mcpproxy tools search --help", "the search is blank: say what the tool is to do")
	case c.Limit < 0 || c.Limit > index.MaxLimit:
		return misuse("", "--limit is %d; it can be 1 to %d", c.Limit, index.MaxLimit)
	case c.Detail != "" && c.Detail != "full" && c.Detail != "compact":
		return misuse("", "--detail %q is none of full, compact", c.Detail)
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	settings := core.settings()
	q := router.Query{Text: query, Limit: settings.ToolsLimit, Compact: settings.Compact, Still: true, MaxName: catalog.MaxName("", settings.MaxName)}
	if c.Limit > 0 {
		q.Limit = c.Limit
	}
	if c.Detail != "" {
		q.Compact = c.Detail == "compact"
	}
	answer, err := core.search.Find(ctx, auth.Local(), q)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeJSON(answer)
	}
	return a.printFound(query, answer)
}

// printFound prints what a search found, and on stderr what else is to be known.
func (a *app) printFound(query string, answer *router.Answer) error {
	if a.Quiet {
		var names strings.Builder
		for _, e := range answer.Entries() {
			names.WriteString(clean(e.Item.Server+":"+e.Item.Name) + "\n")
		}
		return a.print(names.String())
	}
	t := a.newTable("TOOL", "TIER", "SCORE", "DESCRIPTION")
	for _, e := range answer.Entries() {
		first, _, _ := strings.Cut(strings.TrimSpace(e.Description()), "\n")
		t.row(
			cell{text: e.Item.Server + ":" + e.Item.Name, asked: query}, cell{text: e.Tier.String(), tint: tintOfTier(e.Tier.String())},
			txt(fmt.Sprintf("%.0f", e.Score)), cell{text: strings.TrimSpace(first), asked: query})
	}
	if err := t.print(); err != nil {
		return err
	}
	switch shown := len(answer.Entries()); {
	case shown == 0:
		a.note("nothing fits %s", clean(query))
	case shown < answer.Total:
		a.note("%d of %d that fit; --limit shows more", shown, answer.Total)
	}
	for _, notice := range answer.Notices() {
		a.note("%s", clean(notice))
		a.note("hint: mcpproxy list --check")
	}
	return nil
}
