package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/store"
)

// openStore opens a new store, or the one at path.
func openStore(t testing.TB, path string) *store.DB {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "mcpproxy.db")
	}
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openRecorder opens a Recorder that keeps short payloads.
func openRecorder(t testing.TB, db *store.DB, change ...func(*Options)) *Recorder {
	t.Helper()
	opts := Options{
		Store: func() *store.DB { return db }, Instance: "here", Mode: "direct", Limits: Limits{Payload: 200},
		SecretName: isSecretName, OnError: func(err error) { t.Error(err) },
	}
	for _, f := range change {
		f(&opts)
	}
	r := Open(t.Context(), opts)
	t.Cleanup(r.Close)
	return r
}

// flush waits until everything was written.
func flush(t testing.TB, r *Recorder) {
	t.Helper()
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// list is List without a failure.
func list(t testing.TB, db *store.DB, f Filter) []Record {
	t.Helper()
	records, err := List(t.Context(), db, f)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestRecordComesBack reads what was added, with what the Recorder fills in.
func TestRecordComesBack(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	at := time.UnixMilli(1_700_000_000_123)
	parent := r.NewID()
	r.Add(Record{
		Time: at, Kind: Call, Status: Error, Server: "notes", Tool: "write_note", Session: "s", Client: "claude", Caller: "agent", Token: "ci",
		Variant: "write", Tier: "write", Intent: "keep a note", Error: "disk full", RequestID: "7", ParentID: parent, Duration: 1500 * time.Microsecond,
		Request: json.RawMessage(`{"a": "` + "sk-ant-" + strings.Repeat("a7Kq", 10) + `"}`), Response: json.RawMessage(strings.Repeat("x", 300)),
		Notes: []string{"the result does not fit the schema"},
	})
	r.Add(Record{ID: parent, Kind: Call, Status: Success, Mode: "code_execution", Instance: "there", RequestBytes: 5, ResponseBytes: 6})
	flush(t, r)
	got := list(t, db, Filter{})
	if len(got) != 2 || got[1].ID != parent || got[1].Mode != "code_execution" || got[1].Instance != "there" || got[1].RequestBytes != 5 || got[1].ResponseBytes != 6 || got[1].Request != nil {
		t.Fatalf("%+v", got)
	}
	want := Record{
		Seq: 1, ID: got[0].ID, Time: at, Kind: Call, Status: Error, Server: "notes", Tool: "write_note", Session: "s", Client: "claude", Caller: "agent", Token: "ci",
		Variant: "write", Tier: "write", Intent: "keep a note", Error: "disk full", RequestID: "7", ParentID: parent, Duration: 1500 * time.Microsecond,
		Instance: "here", Mode: "direct", RequestBytes: 56, ResponseBytes: 300,
		Request: json.RawMessage(`{"a": "***"}`), Response: json.RawMessage(`"` + strings.Repeat("x", 200-len("… (cut, 300 bytes in all)")) + `… (cut, 300 bytes in all)"`),
		Findings: []Finding{{Kind: "anthropic_key", Where: "request", Count: 1}},
		Notes:    []string{"the result does not fit the schema"},
	}
	want.RequestBytes = int64(len(`{"a": ""}`) + len("sk-ant-") + 40)
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
	if one, found, err := Get(t.Context(), db, got[0].ID); err != nil || !found || !reflect.DeepEqual(one, want) {
		t.Errorf("got %+v, %v, %v", one, found, err)
	}
	text, err := json.Marshal(got[0])
	if err != nil || !bytes.Contains(text, []byte(`"duration_ms":1.5`)) || !bytes.Contains(text, []byte(`"time":"2023-11-14T22:13:20.123Z"`)) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestIDsSortByTime sorts IDs by the time they are given for, and those of one
// millisecond by the order in which they were given.
func TestIDsSortByTime(t *testing.T) {
	g := newIDs()
	g.tail.Store(0x0ffff)
	start := time.UnixMilli(1_700_000_000_000)
	var given []string
	for i := range 100 {
		given = append(given, g.next(start.Add(time.Duration(i/10)*time.Millisecond)))
	}
	if !slices.IsSorted(given) || len(slices.Compact(slices.Clone(given))) != 100 || len(given[0]) != idLength {
		t.Errorf("%q", given)
	}
	if bound := firstID(start.Add(5 * time.Millisecond)); bound > given[50] || bound <= given[49] {
		t.Errorf("%s is not between %s and %s", bound, given[49], given[50])
	}
	if firstID(time.Time{}) != "" {
		t.Error("the zero time is a bound")
	}
}

// TestSecretsAreNeverWritten plants secrets in every text of a record and looks
// for them in the files.
func TestSecretsAreNeverWritten(t *testing.T) {
	db := openStore(t, "")
	token, configured := "mcp_agt_"+strings.Repeat("0123abcd", 8), "hunter2-of-config"
	r := openRecorder(t, db, func(o *Options) {
		o.Secrets = func() []string { return []string{configured} }
		o.Limits.Payload = 4096
	})
	var rec Record
	v := reflect.ValueOf(&rec).Elem()
	planted := 0
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Name {
		case "ID", "Kind", "Status", "Instance", "Mode", "Caller", "Tier", "ParentID": // ours
			continue
		}
		if field.Type.Kind() == reflect.String {
			v.Field(i).SetString(token + " and " + configured)
			planted++
		}
	}
	if planted < 8 {
		t.Fatalf("only %d texts were planted", planted)
	}
	rec.Kind, rec.Status, rec.Notes = Call, Success, []string{"note of " + token}
	rec.Request = json.RawMessage(`{"arguments":{"password":"` + "unheard-of" + `","x":"` + token + `","y":"` + configured + `"}}`)
	rec.Response = json.RawMessage(`{"content":[{"type":"text","text":"{\"api_key\":\"unheard-of\"}\n` + token + ` x` + configured + `x"}]}`)
	r.Add(rec)
	flush(t, r)
	got := list(t, db, Filter{})
	if len(got) != 1 || got[0].Error != "*** and ***" || len(got[0].Findings) != 4 {
		t.Errorf("%+v", got)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(db.Path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token[:20], configured, "unheard-of"} {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s holds %s", filepath.Base(db.Path()+suffix), secret)
			}
		}
	}
}

// TestSecretsMayChange masks what is a secret at the time of writing.
func TestSecretsMayChange(t *testing.T) {
	db := openStore(t, "")
	var mu sync.Mutex
	secrets := []string{"first-secret"}
	r := openRecorder(t, db, func(o *Options) {
		o.Secrets = func() []string { mu.Lock(); defer mu.Unlock(); return secrets }
	})
	add := func() {
		r.Add(Record{Kind: Call, Status: Success, Request: json.RawMessage(`"first-secret second-secret"`)})
		flush(t, r)
	}
	add()
	mu.Lock()
	secrets = []string{"second-secret"}
	mu.Unlock()
	add()
	got := list(t, db, Filter{})
	if string(got[0].Request) != `"*** second-secret"` || string(got[1].Request) != `"first-secret ***"` {
		t.Errorf("%s, %s", got[0].Request, got[1].Request)
	}
}

// lock keeps others from writing until it is released.
func lock(t *testing.T, path string) (release func()) {
	t.Helper()
	other := openStore(t, path)
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(t.Context(), func(context.Context, *store.Tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return sync.OnceFunc(func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLockedStore adds more than there is room for while nobody can write:
// payloads are dropped and counted, no record is.
func TestLockedStore(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	release := lock(t, db.Path())
	defer release()
	const records = 100
	payload := json.RawMessage(`"` + strings.Repeat("x", 1<<19) + `"`)
	for range records {
		r.Add(Record{Kind: Call, Status: Success, Response: payload}) // returns, or the test does not end
	}
	lost := r.Lost()
	if lost.Payloads < records-2*maxPayloads/(1<<19) || lost.Payloads == 0 || lost.Records != 0 {
		t.Errorf("lost %+v", lost)
	}
	release()
	flush(t, r)
	noted := 0
	for _, rec := range list(t, db, Filter{}) {
		if rec.ResponseBytes != int64(len(payload)) || (rec.Response == nil) != (len(rec.Notes) == 1) {
			t.Errorf("%+v", rec)
		}
		noted += len(rec.Notes)
	}
	if total, err := db.ActivityTotal(t.Context()); err != nil || total.Records != records || noted != int(lost.Payloads) {
		t.Errorf("%+v, %d with a note, %v", total, noted, err)
	}
}

// TestCloseWrites writes what waits, and drops what comes later.
func TestCloseWrites(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	for range 3*groupMost + 1 {
		r.Add(Record{Kind: Call, Status: Success})
	}
	r.Close()
	r.Close()
	r.Add(Record{Kind: Call, Status: Success})
	if n := len(list(t, db, Filter{})); n != 3*groupMost+1 {
		t.Errorf("%d records were written", n)
	}
	if lost := r.Lost(); lost != (Lost{Records: 1}) {
		t.Errorf("lost %+v", lost)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseIsBounded ends although nobody can write, and tells what was lost.
func TestCloseIsBounded(t *testing.T) {
	db := openStore(t, "")
	var told []error
	r := openRecorder(t, db, func(o *Options) { o.OnError = func(err error) { told = append(told, err) } })
	release := lock(t, db.Path())
	defer release()
	r.Add(Record{Kind: Call, Status: Success})
	r.Close()
	if lost := r.Lost(); lost.Records != 1 || len(told) != 1 || !strings.HasPrefix(told[0].Error(), "1 records of activity were lost: ") {
		t.Errorf("lost %+v, told %v", lost, told)
	}
}

// TestWithoutStore does nothing, and no harm.
func TestWithoutStore(t *testing.T) {
	r := openRecorder(t, nil)
	r.Add(Record{Kind: Call, Status: Success})
	flush(t, r)
	if lost := r.Lost(); lost != (Lost{}) {
		t.Errorf("lost %+v", lost)
	}
	var none *Recorder
	none.Add(Record{})
	none.SetLimits(Limits{})
	none.Close()
	if none.NewID() != "" || none.Lost() != (Lost{}) || none.Flush(t.Context()) != nil {
		t.Error("a nil Recorder does something")
	}
	if list(t, nil, Filter{}) == nil {
		t.Error("no list is no empty list")
	}
}

// TestLargePayloads keeps what is looked at of a large payload, and lets go of the
// rest.
func TestLargePayloads(t *testing.T) {
	r := openRecorder(t, nil)
	rec := Record{Response: bytes.Repeat([]byte("x"), keepWhole+1), Request: bytes.Repeat([]byte("x"), keepWhole)}
	r.complete(&rec)
	if len(rec.Response) != window(200) || cap(rec.Response) > 2*window(200) || len(rec.Request) != keepWhole ||
		rec.ResponseBytes != keepWhole+1 || rec.RequestBytes != keepWhole {
		t.Errorf("%d of %d bytes with room for %d, %d of %d", len(rec.Response), rec.ResponseBytes, cap(rec.Response), len(rec.Request), rec.RequestBytes)
	}
}

// TestTwoProcesses has two processes write one log at a time, within its limit.
func TestTwoProcesses(t *testing.T) {
	db := openStore(t, "")
	a, b := startRecorder(t, db.Path(), "a", 4000), startRecorder(t, db.Path(), "b", 4000)
	a.end(t)
	b.end(t)
	records := list(t, db, Filter{})
	if len(records) > 5000 || len(records) < 4000 {
		t.Errorf("%d records", len(records))
	}
	seqs, byServer := map[int64]bool{}, map[string]int{}
	for i, r := range records {
		seqs[r.Seq] = true
		byServer[r.Server]++
		if i > 0 && r.ID <= records[i-1].ID {
			t.Errorf("%s follows %s", r.ID, records[i-1].ID)
		}
	}
	total, err := db.ActivityTotal(t.Context())
	if err != nil || len(seqs) != len(records) || int(total.Records) != len(records) || total.Last != 8000 {
		t.Errorf("%d of %d numbers, %+v, %v", len(seqs), len(records), total, err)
	}
	if byServer["a"]+byServer["b"] != len(records) || byServer["a"] == 0 || byServer["b"] == 0 {
		t.Errorf("%v", byServer)
	}
}

// TestKilledProcess writes without being closed.
func TestKilledProcess(t *testing.T) {
	db := openStore(t, "")
	other := startRecorder(t, db.Path(), "killed", 10)
	deadline := time.Now().Add(time.Minute)
	for len(list(t, db, Filter{})) < 10 {
		if time.Now().After(deadline) {
			t.Fatal("the records do not come")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = other.Wait() // killed
	if n := len(list(t, db, Filter{Server: "killed"})); n != 10 {
		t.Errorf("%d records", n)
	}
}

// TestSweep removes what lowered limits do not allow, at once and in pieces, but
// not while another instance does.
func TestSweep(t *testing.T) {
	db := openStore(t, "")
	now := time.Now()
	r := openRecorder(t, db)
	for i := range 1000 {
		r.Add(Record{Kind: Call, Status: Success, Time: now.Add(-time.Duration(1000-i) * time.Hour)})
	}
	flush(t, r)
	count := func() int {
		total, err := db.ActivityTotal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return int(total.Records)
	}
	if held, _, err := db.Acquire(t.Context(), sweepLease, "another", time.Minute); !held || err != nil {
		t.Fatal(held, err)
	}
	w := writer{Recorder: r, holder: "me"}
	if next := w.sweep(t.Context()); next != sweepEvery || count() != 1000 {
		t.Errorf("next in %v, %d records", next, count())
	}
	if err := db.Release(t.Context(), sweepLease, "another"); err != nil {
		t.Fatal(err)
	}
	r.SetLimits(Limits{Retention: 24 * time.Hour})
	deadline := time.Now().Add(time.Minute)
	for count() > 24 {
		if time.Now().After(deadline) {
			t.Fatalf("%d records are left", count())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := count(); n < 22 {
		t.Errorf("%d records are left", n)
	}
}

// TestSummarize sums up by server and tool.
func TestSummarize(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	for i := range 100 {
		r.Add(Record{Kind: Call, Status: Success, Server: "b", Tool: "x", Duration: time.Duration(i+1) * time.Millisecond, RequestBytes: 10, ResponseBytes: 30})
	}
	r.Add(Record{Kind: Call, Status: Error, Server: "b", Tool: "y", Duration: time.Second, Time: time.Now().Add(-time.Hour)})
	r.Add(Record{Kind: Refusal, Status: Blocked, Server: "b", Tool: "x"})
	r.Add(Record{Kind: Refusal, Status: Rejected, Server: "a", Tool: "x"})
	r.Add(Record{Kind: Config, Status: Success, Server: "a"})
	flush(t, r)
	got, err := Summarize(t.Context(), db, Filter{}, false)
	want := []Usage{
		{Server: "a", Tool: "x", Blocked: 1},
		{Server: "b", Tool: "x", Calls: 100, Blocked: 1, P50: 50 * time.Millisecond, P95: 95 * time.Millisecond, RequestBytes: 1000, ResponseBytes: 3000, Tokens: 1000},
		{Server: "b", Tool: "y", Calls: 1, Errors: 1, P50: time.Second, P95: time.Second},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = Summarize(t.Context(), db, Filter{Server: "b", Since: time.Now().Add(-time.Minute)}, true)
	want = []Usage{{Server: "b", Calls: 100, Blocked: 1, P50: 50 * time.Millisecond, P95: 95 * time.Millisecond, RequestBytes: 1000, ResponseBytes: 3000, Tokens: 1000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("by server: %+v, %v", got, err)
	}
	text, err := json.Marshal(want[0])
	if err != nil || !bytes.Contains(text, []byte(`"p50_ms":50,"p95_ms":95`)) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestEachPages reads everything, the oldest first, in pages.
func TestEachPages(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	for i := range 2*pageSize + 50 {
		r.Add(Record{Kind: Call, Status: Success, Tool: fmt.Sprint(i)})
	}
	flush(t, r)
	for limit, want := range map[int]int{0: 2*pageSize + 50, 7: 7, pageSize: pageSize, pageSize + 1: pageSize + 1, 5000: 2*pageSize + 50} {
		n := 0
		err := Each(t.Context(), db, Filter{Limit: limit}, func(rec Record) error {
			if rec.Tool != fmt.Sprint(n) {
				return fmt.Errorf("record %s at place %d", rec.Tool, n)
			}
			n++
			return nil
		})
		if err != nil || n != want {
			t.Errorf("limit %d: %d, %v; want %d", limit, n, err, want)
		}
	}
}

// TestEchoedSecret masks in result and error what stood under a secret's name in
// the arguments.
func TestEchoedSecret(t *testing.T) {
	db := openStore(t, "")
	r := openRecorder(t, db)
	r.Add(Record{
		Kind: Call, Status: Error, Server: "s", Tool: "t", Error: `no login with pass\word9 here`,
		Request:  json.RawMessage(`{"password":"pass\\word9","name":"ordinary"}`),
		Response: json.RawMessage(`{"content":[{"type":"text","text":"you said pass\\word9, ordinary"}]}`),
	})
	flush(t, r)
	got := list(t, db, Filter{})
	if len(got) != 1 {
		t.Fatalf("%d records", len(got))
	}
	if want := `{"content":[{"type":"text","text":"you said ***, ordinary"}]}`; string(got[0].Response) != want {
		t.Errorf("response %s", got[0].Response)
	}
	if got[0].Error != "no login with *** here" {
		t.Errorf("error %q", got[0].Error)
	}
}
