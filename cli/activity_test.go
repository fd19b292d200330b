package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/store"
)

// recordIn writes records into the store of a home folder.
func recordIn(t *testing.T, home string, records ...activity.Record) {
	t.Helper()
	dir := filepath.Join(home, ".mcpproxy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, storeFile), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := activity.Open(t.Context(), activity.Options{
		Store: func() *store.DB { return db }, Instance: "i-1", Mode: "direct", Limits: activity.Limits{Payload: 100}, Now: testNow,
		OnError: func(err error) { t.Error(err) },
	})
	defer r.Close()
	for _, rec := range records {
		r.Add(rec)
	}
}

// someActivity, with IDs of the times at which they began, is a call that worked, one that failed and holds something, a
// refusal and a change.
func someActivity() []activity.Record {
	at := func(d time.Duration) time.Time { return testNow().Add(-d) }
	return []activity.Record{
		{ID: "06eah81yg00000a1", Time: at(3 * time.Hour), Kind: activity.Call, Status: activity.Success, Server: "notes", Tool: "read", Client: "claude", Caller: "admin", Tier: "read",
			Duration: 12345 * time.Microsecond, Request: json.RawMessage(`{"name":"a"}`), Response: json.RawMessage(`{"content":[]}`)},
		{ID: "06eahnsd000000b2", Time: at(2 * time.Hour), Kind: activity.Call, Status: activity.Error, Server: "notes", Tool: "write", Client: "claude", Caller: "agent", Token: "ci", Tier: "write",
			Duration: 2 * time.Second, Error: "disk\nfull\x1b[31m", Request: json.RawMessage(`{"card":"4111 1111 1111 1111"}`), Notes: []string{"the result does not fit the schema"}},
		{ID: "06eaj3gvg00000b3", Time: at(time.Hour), Kind: activity.Refusal, Status: activity.Blocked, Server: "mail", Tool: "=send", Caller: "agent", Token: "ci", Error: "not permitted"},
		{ID: "06eajh0zm00000c4", Time: at(time.Minute), Kind: activity.Config, Status: activity.Success, Server: "mail", Caller: "admin"},
	}
}

// withActivity is an Env whose store holds someActivity.
func withActivity(t *testing.T, change func(*Env)) func(*Env) {
	return func(env *Env) {
		recordIn(t, env.Home, someActivity()...)
		if change != nil {
			change(env)
		}
	}
}

const pipedActivity = "" +
	"06eah81yg00000a1\t2026-03-01T09:00:00Z\tsuccess\tcall\tnotes\tread\t12.345\t12\t14\tclaude\tadmin\t\tread\tdirect\t\t\n" +
	"06eahnsd000000b2\t2026-03-01T10:00:00Z\terror\tcall\tnotes\twrite\t2000.000\t30\t0\tclaude\tagent\tci\twrite\tdirect\t1 card_number in request\tdisk\\nfull\\x1b[31m\n" +
	"06eaj3gvg00000b3\t2026-03-01T11:00:00Z\tblocked\trefusal\tmail\t=send\t0.000\t0\t0\t\tagent\tci\t\tdirect\t\tnot permitted\n" +
	"06eajh0zm00000c4\t2026-03-01T11:59:00Z\tsuccess\tconfig\tmail\t\t0.000\t0\t0\t\tadmin\t\t\tdirect\t\t\n"

// TestActivityOnPipe lists with each filter.
func TestActivityOnPipe(t *testing.T) {
	lines := strings.SplitAfter(pipedActivity, "\n")
	for args, want := range map[string]string{
		"":                                     pipedActivity,
		"list":                                 pipedActivity,
		"--server notes":                       lines[0] + lines[1],
		"--tool notes:write":                   lines[1],
		"--server mail --tool =send":           lines[2],
		"--status blocked":                     lines[2],
		"--token ci --client claude":           lines[1],
		"--since 90m":                          lines[2] + lines[3],
		"--since 2h --until 2026-03-01T11:30Z": "",
		"--since 150m --until 2026-03-01T11:30:00Z": lines[1] + lines[2],
		"--since 2026-03-02":                        "",
		"-n 1":                                      lines[3],
		"list --limit 2":                            lines[2] + lines[3],
		"-n 0 --since 7d":                           pipedActivity,
		"-q --status error":                         "06eahnsd000000b2\n",
	} {
		got := invokeWith(t, withActivity(t, nil), append([]string{"activity"}, strings.Fields(args)...)...)
		if strings.Contains(args, "11:30Z") {
			if got.code != exitUsage || !strings.Contains(got.stderr, `--until "2026-03-01T11:30Z" is no time ago`) {
				t.Errorf("%s: exit code %d, stderr %q", args, got.code, got.stderr)
			}
			continue
		}
		if got.code != 0 || got.stdout != want {
			t.Errorf("%s: exit code %d, stderr %q\n%s\nwant\n%s", args, got.code, got.stderr, got.stdout, want)
		}
		if want == "" && got.stderr != "mcpproxy: nothing was recorded that is to be listed\n" {
			t.Errorf("%s: stderr %q", args, got.stderr)
		}
	}
}

// TestActivityOnTerminal lists for a person.
func TestActivityOnTerminal(t *testing.T) {
	onTerminal := func(env *Env) {
		env.IsTerminal = terminals(Stdout)
		env.Columns = func() int { return 200 }
		env.Environ = []string{"TERM=xterm", "NO_COLOR=1"}
	}
	got := invokeWith(t, withActivity(t, onTerminal), "activity")
	want := "" +
		"TIME    STATUS   WHAT         TOOK   SIZE  BY      ID      NOTE\n" +
		"3h ago  success  notes:read   12 ms  26 B  claude  0000a1\n" +
		"2h ago  error    notes:write  2.0 s  30 B  ci      0000b2  disk\\nfull\\x1b[31m; found 1 card_number in request; the result does not fit the schema\n" +
		"1h ago  blocked  mail:=send          0 B   ci      0000b3  not permitted\n" +
		"1m ago  success  config mail         0 B           0000c4\n"
	if got.code != 0 || got.stdout != want {
		t.Errorf("exit code %d, stderr %q\n%s\nwant\n%s", got.code, got.stderr, got.stdout, want)
	}
	got = invokeWith(t, withActivity(t, onTerminal), "activity", "summary")
	want = "" +
		"SERVER  TOOL   CALLS  ERRORS  BLOCKED  P50    P95    SENT  RETURNED  TOKENS\n" +
		"mail    =send  0      0       1                      0 B   0 B       0\n" +
		"notes   read   1      0       0        12 ms  12 ms  12 B  14 B      6\n" +
		"notes   write  1      1       0        2.0 s  2.0 s  30 B  0 B       7\n"
	if got.code != 0 || got.stdout != want {
		t.Errorf("exit code %d, stderr %q\n%s\nwant\n%s", got.code, got.stderr, got.stdout, want)
	}
}

// TestActivityAnswers checks show, summary and the objects of --json.
func TestActivityAnswers(t *testing.T) {
	got := invokeWith(t, withActivity(t, nil), "activity", "--json", "-n", "2")
	var list struct {
		Activity []map[string]any `json:"activity"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Activity) != 2 || list.Activity[1]["id"] != "06eajh0zm00000c4" {
		t.Errorf("%v: %s", err, got.stdout)
	}
	got = invokeWith(t, withActivity(t, nil), "activity", "show", "b2", "--json")
	var one map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &one); err != nil || one["tool"] != "write" || one["duration_ms"] != 2000.0 || one["request_bytes"] != 30.0 {
		t.Errorf("%v: %s", err, got.stdout)
	}
	if request, ok := one["request"].(map[string]any); !ok || request["card"] != "***" {
		t.Errorf("request %v", one["request"])
	}
	got = invokeWith(t, withActivity(t, nil), "activity", "show", "06eahnsd000000b2")
	for _, want := range []string{"status\terror\n", "finding\t1 card_number in request\n", "note\tthe result does not fit the schema\n", "request\t{\"card\":\"***\"}\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("show lacks %q:\n%s", want, got.stdout)
		}
	}
	got = invokeWith(t, withActivity(t, nil), "activity", "summary", "--by", "server", "--json")
	want := `{
  "usage": [
    {
      "server": "mail",
      "calls": 0,
      "errors": 0,
      "blocked": 1,
      "request_bytes": 0,
      "response_bytes": 0,
      "estimated_tokens": 0,
      "p50_ms": 0,
      "p95_ms": 0
    },
    {
      "server": "notes",
      "calls": 2,
      "errors": 1,
      "blocked": 0,
      "request_bytes": 42,
      "response_bytes": 14,
      "estimated_tokens": 14,
      "p50_ms": 12.345,
      "p95_ms": 2000
    }
  ]
}
`
	if got.stdout != want {
		t.Errorf("%s\nwant\n%s", got.stdout, want)
	}
	got = invokeWith(t, withActivity(t, nil), "activity", "summary", "--server", "notes")
	if got.stdout != "notes\tread\t1\t0\t0\t12.345\t12.345\t12\t14\t6\nnotes\twrite\t1\t1\t0\t2000.000\t2000.000\t30\t0\t7\n" {
		t.Errorf("%q", got.stdout)
	}
}

// TestActivityExport prints everything, as JSON Lines and as CSV that no
// spreadsheet runs.
func TestActivityExport(t *testing.T) {
	got := invokeWith(t, withActivity(t, nil), "activity", "export")
	var ids []string
	for line := range strings.Lines(got.stdout) {
		var r struct {
			ID   string
			Time time.Time
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Time.IsZero() {
			t.Errorf("%v: %s", err, line)
		}
		ids = append(ids, r.ID)
	}
	if strings.Join(ids, " ") != "06eah81yg00000a1 06eahnsd000000b2 06eaj3gvg00000b3 06eajh0zm00000c4" {
		t.Errorf("%q", ids)
	}
	got = invokeWith(t, withActivity(t, nil), "activity", "export", "--format", "csv", "--tool", "=send")
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][0] != "id" || rows[1][5] != "'=send" || len(rows[0]) != len(rows[1]) {
		t.Errorf("%v: %q", err, rows)
	}
	got = invokeWith(t, func(env *Env) { withActivity(t, nil)(env); env.Stdout = brokenWriter{} }, "activity", "export")
	if got.code != exitFailed || !strings.Contains(got.stderr, "error: ") {
		t.Errorf("broken stdout: exit code %d, stderr %q", got.code, got.stderr)
	}
}

// TestSpreadsheetText keeps formulas and escape sequences out of CSV.
func TestSpreadsheetText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "text": "text", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": `\t=1`, "\r=1": `\r=1`, "a\x1b[0m": `a\x1b[0m`, "a=1": "a=1",
	} {
		if got := spreadsheetText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestActivityFollow follows a log that does not exist yet and is written by
// others.
func TestActivityFollow(t *testing.T) {
	home := t.TempDir()
	out, in := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		code := Main(ctx, Env{
			Args: []string{"activity", "-f", "-q", "--server", "notes"}, Stdout: in, Stderr: io.Discard,
			Home: home, Dir: home, Now: testNow, IsTerminal: terminals(), Columns: func() int { return 80 },
		})
		in.Close()
		ended <- code
	}()
	lines := bufio.NewReader(out)
	expect := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); got != want+"\n" {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	recordIn(t, home, someActivity()...)
	expect("06eah81yg00000a1")
	expect("06eahnsd000000b2")
	// What ends later may have begun earlier.
	late := activity.Record{ID: "06eagtag00000001", Time: testNow(), Kind: activity.Call, Status: activity.Success, Server: "notes"}
	other := activity.Record{ID: "06eagtag00000002", Time: testNow(), Kind: activity.Call, Status: activity.Success, Server: "mail"}
	recordIn(t, home, other, late)
	expect("06eagtag00000001")
	late.ID = "06eagtag00000003"
	recordIn(t, home, late)
	expect("06eagtag00000003")
	interrupt()
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("after the interrupt: %v", err)
	}
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

// TestActivityLine is what a person sees who follows.
func TestActivityLine(t *testing.T) {
	a := &app{Env: Env{IsTerminal: terminals(Stdout), Environ: []string{"NO_COLOR=1"}, Stdout: io.Discard, Now: testNow}}
	r := someActivity()[1]
	r.RequestBytes = 30
	want := r.Time.Local().Format(time.TimeOnly) + "  error        2.0 s       30 B  0000b2  notes:write  by ci  disk\\nfull\\x1b[31m; the result does not fit the schema\n"
	if got := a.activityLine(r); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPastMoment understands when something was.
func TestPastMoment(t *testing.T) {
	now := testNow()
	for text, want := range map[string]time.Time{
		"30m": now.Add(-30 * time.Minute), "1h30m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "2w": now.AddDate(0, 0, -14), "0s": now,
		"2026-02-01": time.Date(2026, 2, 1, 0, 0, 0, 0, now.Location()), "2026-02-01T10:00:00+01:00": time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC),
		"": {}, "d": {}, "-1h": {}, "-1d": {}, "1x": {}, "yesterday": {}, "99999999d": {},
	} {
		if got, ok := pastMoment(text, now); ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
}
