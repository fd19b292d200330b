package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/store"
)

// activityCmd is about the log of what clients did.
type activityCmd struct {
	List    activityListCmd    `cmd:"" default:"withargs" help:"list the newest calls, refusals and changes (the default)"`
	Show    activityShowCmd    `cmd:"" help:"show one of them with what was sent and returned"`
	Summary activitySummaryCmd `cmd:"" help:"sum up by server and tool: calls, errors, times, bytes"`
	Export  activityExportCmd  `cmd:"" help:"print all of them as JSON Lines or CSV"`
}

// Help implements kong.HelpProvider.
func (*activityCmd) Help() string {
	return `Every tool call, every refusal and every change is kept, without its secrets and for a limited time (activity_retention_days, activity_max_records, activity_max_size_mb). A status is one of success, error, blocked, rejected.

    mcpproxy activity --server github --since 1h
    mcpproxy activity -f
    mcpproxy activity summary
    mcpproxy activity export --since 7d > week.jsonl

"mcpproxy activity list --help" shows the options of the list.`
}

// activityFilter are the options that choose records.
type activityFilter struct {
	Server string `help:"only what concerns this server" placeholder:"NAME"`
	Tool   string `help:"only calls of this tool: TOOL or SERVER:TOOL" placeholder:"TOOL"`
	Status string `help:"only what ended so: success, error, blocked or rejected" placeholder:"STATUS"`
	Token  string `help:"only what was done with this agent token" placeholder:"NAME"`
	Client string `help:"only what this client did, by its name for itself" placeholder:"NAME"`
	Since  string `help:"only what began after this: a time ago such as 30m, 24h or 7d, a day, or a moment by RFC 3339" placeholder:"TIME"`
	Until  string `help:"only what began before this" placeholder:"TIME"`
}

// filter is what the options say.
func (f activityFilter) filter(now time.Time) (activity.Filter, error) {
	out := activity.Filter{Server: f.Server, Tool: f.Tool, Status: activity.Status(f.Status), Token: f.Token, Client: f.Client}
	if server, tool, ok := strings.Cut(f.Tool, ":"); ok && (f.Server == "" || f.Server == server) {
		out.Server, out.Tool = server, tool
	}
	if f.Status != "" && !slices.Contains(activity.Statuses(), out.Status) {
		return out, misuse("", "--status %q is none of success, error, blocked, rejected", f.Status)
	}
	for _, bound := range []struct {
		option, text string
		at           *time.Time
	}{{"--since", f.Since, &out.Since}, {"--until", f.Until, &out.Until}} {
		if bound.text == "" {
			continue
		}
		at, ok := pastMoment(bound.text, now)
		if !ok {
			return out, misuse("", "%s %q is no time ago such as 30m, 24h or 7d, no day such as 2026-05-31 and no moment such as 2026-05-31T18:00:00Z", bound.option, bound.text)
		}
		*bound.at = at
	}
	return out, nil
}

// activityListCmd lists records.
type activityListCmd struct {
	activityFilter
	Limit  int  `short:"n" default:"50" help:"list so many of the newest at most, 0 for all (default: 50)" placeholder:"N"`
	Follow bool `short:"f" help:"go on printing what is added, until interrupted"`
}

// Help implements kong.HelpProvider.
func (*activityListCmd) Help() string {
	return `The newest stands last. A terminal shows the end of an ID, which is enough for "mcpproxy activity show"; a pipe gets these columns: id, time, status, kind, server, tool, duration in ms, bytes sent, bytes returned, client, caller, token, tier, mode, findings, error.

    mcpproxy activity -f --status error
    mcpproxy activity --tool github:create_issue --json | jq '.activity[].error'`
}

// activityList is the answer of activity --json.
type activityList struct {
	Activity []activity.Record `json:"activity"`
}

// run lists the records, and goes on with those that come where that is wanted.
func (c *activityListCmd) run(ctx context.Context, a *app) error {
	if c.Follow && a.JSON {
		return misuse("mcpproxy activity -f", "-f and --json exclude each other: a list that goes on is no object")
	}
	if c.Limit < 0 {
		return misuse("", "--limit must not be negative")
	}
	filter, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	filter.Limit, filter.Last = c.Limit, true
	if c.Follow {
		return a.followActivity(ctx, filter)
	}
	db, err := a.activityStore(ctx)
	if err != nil {
		return err
	}
	records, err := activity.List(ctx, db, filter)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.writeJSON(activityList{records})
	case len(records) == 0:
		a.note("nothing was recorded that is to be listed")
		return nil
	}
	return a.activityTable(records).print()
}

// activityStore opens the store, nil where there is none yet.
func (a *app) activityStore(ctx context.Context) (*store.DB, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return a.store(ctx, cfg)
}

// activityTable is a table of records: for a person what there is room for, for a
// program everything but the payloads, and with -q the IDs alone.
func (a *app) activityTable(records []activity.Record) *table {
	if a.Quiet {
		t := a.newTable("ID")
		for _, r := range records {
			t.row(txt(r.ID))
		}
		return t
	}
	if a.IsTerminal(Stdout) {
		t := a.newTable("TIME", "STATUS", "WHAT", "TOOK", "SIZE", "BY", "ID", "NOTE")
		for _, r := range records {
			t.row(when(r.Time), statusCell(r), txt(whatOf(r)), txt(took(r.Duration)), txt(size(r.RequestBytes+r.ResponseBytes)),
				txt(cmp.Or(r.Token, r.Client)), txt(activity.ShortID(r.ID)), txt(noteOf(r)))
		}
		return t
	}
	t := a.newTable("ID", "TIME", "STATUS", "KIND", "SERVER", "TOOL", "MS", "SENT", "RETURNED", "CLIENT", "CALLER", "TOKEN", "TIER", "MODE", "FINDINGS", "ERROR")
	for _, r := range records {
		t.row(txt(r.ID), when(r.Time), txt(string(r.Status)), txt(string(r.Kind)), txt(r.Server), txt(r.Tool), txt(inMilliseconds(r.Duration)),
			txt(fmt.Sprint(r.RequestBytes)), txt(fmt.Sprint(r.ResponseBytes)), txt(r.Client), txt(r.Caller), txt(r.Token),
			txt(r.Tier), txt(r.Mode), txt(findingsText(r.Findings)), txt(r.Error))
	}
	return t
}

// statusCell is a field with how something ended.
func statusCell(r activity.Record) cell {
	tints := map[activity.Status]tint{activity.Success: good, activity.Error: bad, activity.Blocked: odd, activity.Rejected: odd}
	return cell{text: string(r.Status), tint: tints[r.Status]}
}

// whatOf names what a record is about.
func whatOf(r activity.Record) string {
	name := r.Tool
	if r.Server != "" && r.Tool != "" {
		name = r.Server + ":" + r.Tool
	}
	name = cmp.Or(name, r.Server)
	if r.Kind == activity.Call || r.Kind == activity.Refusal {
		return name
	}
	return strings.TrimSpace(string(r.Kind) + " " + name)
}

// noteOf is what a person should see at once of a record.
func noteOf(r activity.Record) string {
	notes := []string{r.Error}
	if found := findingsText(r.Findings); found != "" {
		notes = append(notes, "found "+found)
	}
	notes = append(notes, r.Notes...)
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// findingsText is "2 github_token in response, 1 jwt in request".
func findingsText(findings []activity.Finding) string {
	var list []string
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%d %s in %s", f.Count, f.Kind, f.Where))
	}
	return strings.Join(list, ", ")
}

// took is a duration as a person reads it.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// inMilliseconds is a duration as a program reads it.
func inMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3f", float64(d.Microseconds())/1000)
}
