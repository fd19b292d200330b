package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

const (
	// followTick is how often it is seen whether anybody wrote something.
	followTick = 250 * time.Millisecond
	// followPage is how many records are read at a time.
	followPage = 500
)

// followActivity prints the newest records and those that are added, until ctx
// ends.
func (a *app) followActivity(ctx context.Context, filter activity.Filter) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	db, err := a.awaitStore(ctx, cfg)
	if err != nil {
		return err
	}
	version, err := db.DataVersion(ctx)
	if err != nil {
		return err
	}
	total, err := db.ActivityTotal(ctx)
	if err != nil {
		return err
	}
	records, err := activity.List(ctx, db, filter)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Seq > total.Last {
			continue // comes again
		}
		if err := a.print(a.activityLine(r)); err != nil {
			return err
		}
	}
	filter.Limit, filter.Last, filter.After = followPage, false, cmp.Or(total.Last, -1)
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for {
		if err := a.printAdded(ctx, db, &filter); err != nil {
			return err
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			now, err := db.DataVersion(ctx)
			if err != nil {
				return err
			}
			same, version = now == version, now
		}
	}
}

// awaitStore opens the store when there is one.
func (a *app) awaitStore(ctx context.Context, cfg *config.Config) (*store.DB, error) {
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for {
		_, err := os.Stat(filepath.Join(cfg.DataDir, storeFile))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("follow the activity: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
	db, err := a.store(ctx, cfg)
	if err == nil && db == nil {
		return nil, errors.New("without the store there is nothing to follow")
	}
	return db, err
}

// printAdded prints what was written behind filter.After, and moves that on.
func (a *app) printAdded(ctx context.Context, db *store.DB, filter *activity.Filter) error {
	total, err := db.ActivityTotal(ctx)
	if err != nil {
		return err
	}
	if total.Last < filter.After {
		filter.After = -1 // another file
	}
	for {
		records, err := activity.List(ctx, db, *filter)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := a.print(a.activityLine(r)); err != nil {
				return err
			}
			filter.After = max(filter.After, r.Seq)
		}
		if len(records) < followPage {
			filter.After = cmp.Or(max(filter.After, total.Last), -1)
			return nil
		}
	}
}

// activityLine is a record as a line of its own. A person sees columns that do not
// wait for what comes, a program the row of the table.
func (a *app) activityLine(r activity.Record) string {
	if !a.IsTerminal(Stdout) || a.Quiet {
		return a.activityTable([]activity.Record{r}).forProgram()
	}
	t := a.newTable()
	looks := t.looks()
	status := statusCell(r)
	line := fmt.Sprintf("%s  %s%s  %8s  %9s  %s  %s", r.Time.Local().Format(time.TimeOnly), looks[status.tint].Render(status.text),
		strings.Repeat(" ", max(0, len(activity.Success)+1-len(status.text))), took(r.Duration), size(r.RequestBytes+r.ResponseBytes),
		activity.ShortID(r.ID), clean(whatOf(r)))
	if by := cmp.Or(r.Token, r.Client); by != "" {
		line += "  by " + clean(by)
	}
	if note := noteOf(r); note != "" {
		line += "  " + clean(note)
	}
	return line + "\n"
}
