package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"mcpproxy/mcp/activity"
)

// activityExportCmd prints all records.
type activityExportCmd struct {
	activityFilter
	Format string `default:"jsonl" help:"jsonl: one JSON object a line; csv: with a header, harmless in a spreadsheet (default: jsonl)" placeholder:"jsonl|csv"`
}

// Help implements kong.HelpProvider.
func (*activityExportCmd) Help() string {
	return `The oldest stands first. Requests and results are included as they were kept, their secrets replaced by ***.

    mcpproxy activity export --since 2026-05-01 > may.jsonl
    mcpproxy activity export --status error --format csv > errors.csv`
}

// run prints the records as they are read.
func (c *activityExportCmd) run(ctx context.Context, a *app) error {
	if c.Format != "jsonl" && c.Format != "csv" {
		return misuse("", "--format %q is none of jsonl, csv", c.Format)
	}
	if a.JSON {
		return misuse("mcpproxy activity --json --limit 0", "export prints JSON Lines; one object for all is the answer of the list")
	}
	filter, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	db, err := a.activityStore(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	write, finish := jsonLines(out), out.Flush
	if c.Format == "csv" {
		write, finish = csvRows(out)
	}
	err = activity.Each(ctx, db, filter, write)
	if finished := finish(); err == nil && finished != nil {
		err = fmt.Errorf("write to stdout: %w", finished)
	}
	return err
}

// jsonLines writes records as JSON Lines.
func jsonLines(out io.Writer) (write func(activity.Record) error) {
	return func(r activity.Record) error {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		_, err := out.Write(cleanJSON(line.Bytes()))
		return err
	}
}

// csvRows writes records as CSV behind a header.
func csvRows(out *bufio.Writer) (write func(activity.Record) error, finish func() error) {
	w := csv.NewWriter(out)
	// An error comes back from Flush.
	_ = w.Write([]string{"id", "time", "kind", "status", "server", "tool", "instance", "mode", "session", "client", "caller", "token", "variant", "tier",
		"intent", "error", "request_id", "parent_id", "duration_ms", "request_bytes", "response_bytes", "findings", "notes", "request", "response"})
	write = func(r activity.Record) error {
		row := []string{r.ID, r.Time.UTC().Format(time.RFC3339Nano), string(r.Kind), string(r.Status), r.Server, r.Tool, r.Instance, r.Mode, r.Session, r.Client,
			r.Caller, r.Token, r.Variant, r.Tier, r.Intent, r.Error, r.RequestID, r.ParentID, inMilliseconds(r.Duration), fmt.Sprint(r.RequestBytes),
			fmt.Sprint(r.ResponseBytes), findingsText(r.Findings), strings.Join(r.Notes, "; "), string(r.Request), string(r.Response)}
		for i, text := range row {
			row[i] = spreadsheetText(text)
		}
		return w.Write(row)
	}
	return write, func() error {
		w.Flush()
		if err := w.Error(); err != nil {
			return err
		}
		return out.Flush()
	}
}

// spreadsheetText is a field of CSV that no spreadsheet takes for a formula, and
// nothing in it steers a terminal.
func spreadsheetText(text string) string {
	text = clean(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}
