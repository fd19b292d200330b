package cli

import (
	"context"
	"fmt"
	"strings"

	"mcpproxy/mcp/activity"
	"mcpproxy/store"
)

// activityShowCmd shows one record.
type activityShowCmd struct {
	ID string `arg:"" help:"the ID, or how it ends, as the list shows it"`
}

// Help implements kong.HelpProvider.
func (*activityShowCmd) Help() string {
	return `What was sent and returned is shown as it was kept: its secrets replaced by ***, cut at activity_max_payload bytes.

    mcpproxy activity show 4k2v9d
    mcpproxy activity show 4k2v9d --json | jq .response`
}

// run shows the record of an ID.
func (c *activityShowCmd) run(ctx context.Context, a *app) error {
	db, err := a.activityStore(ctx)
	if err != nil {
		return err
	}
	r, err := findActivity(ctx, db, c.ID)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.writeJSON(r)
	case a.Quiet:
		return a.print(r.ID + "\n")
	}
	return a.printFields(recordFields(r))
}

// findActivity returns the record whose ID is, or ends with, a text.
func findActivity(ctx context.Context, db *store.DB, id string) (activity.Record, error) {
	ids, err := activity.Find(ctx, db, id)
	switch {
	case err != nil:
		return activity.Record{}, err
	case len(ids) == 0:
		return activity.Record{}, hinted("mcpproxy activity", "nothing is recorded under %q", id)
	case len(ids) > 1 && ids[0] != id:
		return activity.Record{}, hinted("mcpproxy activity show "+ids[0], "%q is the end of several: %s", id, strings.Join(ids, ", "))
	}
	r, found, err := activity.Get(ctx, db, ids[0])
	if err == nil && !found { // removed in between
		err = hinted("mcpproxy activity", "nothing is recorded under %q", id)
	}
	return r, err
}

// recordFields is what a person reads of a record.
func recordFields(r activity.Record) []field {
	fields := []field{
		{"id", txt(r.ID)},
		{"time", when(r.Time)},
		{"kind", txt(string(r.Kind))},
		{"status", statusCell(r)},
		{"error", txt(r.Error)},
		{"server", txt(r.Server)},
		{"tool", txt(r.Tool)},
		{"tier", txt(r.Tier)},
		{"variant", txt(r.Variant)},
		{"intent", txt(r.Intent)},
		{"duration_ms", txt(inMilliseconds(r.Duration))},
		{"request_bytes", txt(fmt.Sprint(r.RequestBytes))},
		{"response_bytes", txt(fmt.Sprint(r.ResponseBytes))},
		{"client", txt(r.Client)},
		{"caller", txt(r.Caller)},
		{"token", txt(r.Token)},
		{"mode", txt(r.Mode)},
		{"session", txt(r.Session)},
		{"instance", txt(r.Instance)},
		{"request_id", txt(r.RequestID)},
		{"parent_id", txt(r.ParentID)},
	}
	for _, f := range r.Findings {
		fields = append(fields, field{"finding", txt(findingsText([]activity.Finding{f}))})
	}
	for _, note := range r.Notes {
		fields = append(fields, field{"note", txt(note)})
	}
	return append(fields, field{"request", txt(string(r.Request))}, field{"response", txt(string(r.Response))})
}
