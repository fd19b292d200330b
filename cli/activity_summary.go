package cli

import (
	"context"
	"fmt"
	"strings"

	"mcpproxy/mcp/activity"
)

// activitySummaryCmd sums records up.
type activitySummaryCmd struct {
	activityFilter
	By string `default:"tool" help:"one line for each tool or each server (default: tool)" placeholder:"tool|server"`
}

// Help implements kong.HelpProvider.
func (*activitySummaryCmd) Help() string {
	return `P50 and P95 are the times that half and 95 of 100 calls did not exceed, BLOCKED what was not let through. TOKENS estimates what requests and results are for a model: a quarter of their bytes. A pipe gets these columns: server, tool, calls, errors, blocked, p50 and p95 in ms, bytes sent, bytes returned, tokens.

    mcpproxy activity summary --since 24h
    mcpproxy activity summary --by server --json | jq '.usage[] | {server, calls}'`
}

// activityUsage is the answer of activity summary --json.
type activityUsage struct {
	Usage []activity.Usage `json:"usage"`
}

// run prints the sums.
func (c *activitySummaryCmd) run(ctx context.Context, a *app) error {
	if c.By != "tool" && c.By != "server" {
		return misuse("", "--by %q is none of tool, server", c.By)
	}
	filter, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	db, err := a.activityStore(ctx)
	if err != nil {
		return err
	}
	list, err := activity.Summarize(ctx, db, filter, c.By == "server")
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.writeJSON(activityUsage{list})
	case len(list) == 0:
		a.note("no calls were recorded that are to be counted")
		return nil
	case a.Quiet:
		var names strings.Builder
		for _, u := range list {
			names.WriteString(clean(strings.TrimSuffix(u.Server+":"+u.Tool, ":")) + "\n")
		}
		return a.print(names.String())
	}
	show := inMilliseconds
	bytes := func(n int64) string { return fmt.Sprint(n) }
	if a.IsTerminal(Stdout) {
		show, bytes = took, size
	}
	t := a.newTable("SERVER", "TOOL", "CALLS", "ERRORS", "BLOCKED", "P50", "P95", "SENT", "RETURNED", "TOKENS")
	for _, u := range list {
		t.row(txt(u.Server), txt(u.Tool), num(u.Calls), count(u.Errors, bad), count(u.Blocked, odd),
			txt(show(u.P50)), txt(show(u.P95)), txt(bytes(u.RequestBytes)), txt(bytes(u.ResponseBytes)), txt(fmt.Sprint(u.Tokens)))
	}
	return t.print()
}

// count is a field with a number that stands out where it is not 0.
func count(n int, as tint) cell {
	c := num(n)
	if n > 0 {
		c.tint = as
	}
	return c
}
