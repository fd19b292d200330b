package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestItemsComeBackInOrderByteForByte(t *testing.T) {
	db := fresh(t)
	a, b := Key{"a", "f1", ""}, Key{"b", "f1", "roots,sampling"}
	odd := [][]byte{
		[]byte("{\"a\" :\t1e2,\r\n\"a\":9007199254740993}"),
		[]byte("nul \x00 in the middle and at the end\x00"),
		[]byte("invalid \xff\xfe\xc3 utf-8"),
		[]byte("\xef\xbb\xbf{}"),
		{},
		nil,
		bytes.Repeat([]byte("large "), 50_000),
		[]byte(`"</script>\u0000 \ud800"`),
	}
	var want []Item
	var list []Item
	for i, raw := range odd {
		// Kinds alternate: the order within each must hold all the same.
		list = append(list,
			Item{Kind: "tool", Name: fmt.Sprintf("tool %d \x00\xff", i), Raw: raw, Hash: "not read", Position: 99},
			Item{Kind: "prompt", Name: "the same", Raw: raw, Key: b})
	}
	for _, kind := range []string{"prompt", "tool"} {
		for i, raw := range odd {
			name := "the same"
			if kind == "tool" {
				name = fmt.Sprintf("tool %d \x00\xff", i)
			}
			sum := sha256.Sum256(raw)
			want = append(want, Item{Key: a, Kind: kind, Position: i, Name: name, Raw: raw, Hash: hex.EncodeToString(sum[:])})
		}
	}
	generation, changed, err := db.ReplaceItems(t.Context(), a, list)
	if err != nil || !changed {
		t.Fatal(generation, changed, err)
	}
	last := Item{Key: b, Kind: "resource", Name: "file:///x", Raw: []byte("{}"), Hash: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}
	if _, _, err := db.ReplaceItems(t.Context(), b, []Item{last}); err != nil {
		t.Fatal(err)
	}
	got, err := db.Items(t.Context(), []Key{b, {"a", "f2", ""}, a, b, {"A", "f1", ""}})
	if err != nil {
		t.Fatal(err)
	}
	want = append([]Item{last}, want...)
	if len(got) != len(want) {
		t.Fatalf("%d items, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i].Raw, want[i].Raw) {
			t.Errorf("item %d is %.50q, want %.50q", i, got[i].Raw, want[i].Raw)
		}
		got[i].Raw, want[i].Raw = nil, nil
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("item %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if none, err := db.Items(t.Context(), nil); none != nil || err != nil {
		t.Error(none, err)
	}
}

func TestItemsOfManyServers(t *testing.T) {
	db := fresh(t)
	fill(t, db)
	var keys []Key
	for i := range 8000 {
		keys = append(keys, benchKey(7999-i))
	}
	items, err := db.Items(t.Context(), keys)
	if err != nil || len(items) != 1000 || items[0].Key != benchKey(19) || items[999].Key != benchKey(0) || items[999].Position != 49 {
		t.Error(len(items), err)
	}
}

// tool makes a list of tools with the given raws.
func tools(raws ...string) (items []Item) {
	for _, raw := range raws {
		items = append(items, Item{Kind: "tool", Name: "t", Raw: json.RawMessage(raw)})
	}
	return items
}

func TestReplaceItems(t *testing.T) {
	db := fresh(t)
	watcher := open(t, db.Path())
	key := Key{"s", "f", ""}
	start, err := db.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		what    string
		items   []Item
		changed bool
		written bool
	}{
		{"first and empty", nil, false, true},
		{"empty again", []Item{}, false, false},
		{"two", tools("1", "2"), true, true},
		{"the same", tools("1", "2"), false, false},
		{"other order", tools("2", "1"), true, true},
		{"shorter", tools("2"), true, true},
		{"longer", tools("2", "3", "4"), true, true},
		{"other name", []Item{{Kind: "tool", Name: "u", Raw: []byte("2")}, {Kind: "tool", Name: "t", Raw: []byte("3")}, {Kind: "tool", Name: "t", Raw: []byte("4")}}, true, true},
		{"other kind", []Item{{Kind: "prompt", Name: "t", Raw: []byte("2")}}, true, true},
		{"none", nil, true, true},
	}
	generation, want := int64(0), start
	for _, step := range steps {
		before, err := watcher.DataVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, changed, err := db.ReplaceItems(t.Context(), key, step.items)
		if err != nil {
			t.Fatal(step.what, err)
		}
		if step.changed {
			want++
			generation = want
		}
		global, err := db.Generation(t.Context())
		if changed != step.changed || got != generation || global != want || err != nil {
			t.Errorf("%s: changed %v to generation %d, global %d, %v; want %v, %d, %d", step.what, changed, got, global, err, step.changed, generation, want)
		}
		if after, err := watcher.DataVersion(t.Context()); (after != before) != step.written || err != nil {
			t.Errorf("%s: written is %v, %v; want %v", step.what, after != before, err, step.written)
		}
		items, err := db.Items(t.Context(), []Key{key})
		if err != nil || len(items) != len(step.items) {
			t.Fatalf("%s: %d items, %v", step.what, len(items), err)
		}
		for i, item := range items {
			if item.Name != step.items[i].Name || string(item.Raw) != string(step.items[i].Raw) || item.Kind != step.items[i].Kind {
				t.Errorf("%s: item %d is %+v", step.what, i, item)
			}
		}
	}
}

func TestServers(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_123)
	db := fresh(t)
	db.now = func() time.Time { return now }
	ctx := t.Context()
	good := Server{
		Key:   Key{"git\x00hub\xff", "f", "roots"},
		State: "ready", Protocol: "2025-06-18", Era: "stateful",
		Capabilities: json.RawMessage(`{"tools" : {}}`), ServerInfo: json.RawMessage(`{"name":"x"}`),
		Instructions: "use it",
		AttemptedAt:  now.Add(-time.Second), ConnectedAt: now, ListedAt: now.Add(time.Second),
	}
	put := func(s Server) {
		t.Helper()
		if err := db.PutServer(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...Server) {
		t.Helper()
		got, err := db.Servers(ctx)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v", got, err)
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("server %d is\n%+v, want\n%+v", i, got[i], want[i])
			}
		}
	}
	expect()
	put(good)
	expect(good)

	failed := Server{Key: good.Key, State: "failed", LastError: "no such command", Failures: 3, AttemptedAt: now.Add(time.Hour), NextAttemptAt: now.Add(2 * time.Hour)}
	put(failed)
	want := good
	want.State, want.LastError, want.Failures = failed.State, failed.LastError, failed.Failures
	want.AttemptedAt, want.NextAttemptAt = failed.AttemptedAt, failed.NextAttemptAt
	expect(want)

	generation, _, err := db.ReplaceItems(ctx, good.Key, []Item{{Kind: "tool"}, {Kind: "tool"}, {Kind: "resource"}, {Kind: "template"}, {Kind: "prompt"}, {Kind: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	want.Counts, want.Generation, want.ListedAt = Counts{Tools: 2, Resources: 1, Templates: 1, Prompts: 1}, generation, now
	expect(want)

	// A connection that says less than the one before has said it all.
	put(Server{Key: good.Key, State: "ready", ConnectedAt: now.Add(3 * time.Hour)})
	want = Server{Key: good.Key, State: "ready", AttemptedAt: failed.AttemptedAt, ConnectedAt: now.Add(3 * time.Hour), ListedAt: now, Counts: want.Counts, Generation: generation}
	expect(want)

	other := Server{Key: Key{good.Name, "e", ""}, State: "idle"}
	put(other)
	for _, at := range []time.Time{now.Add(time.Minute), now} {
		if err := db.RequestRestart(ctx, good.Name, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.RequestRestart(ctx, "unknown", now); err != nil {
		t.Fatal(err)
	}
	want.RestartWantedAt, other.RestartWantedAt = now.Add(time.Minute), now.Add(time.Minute)
	expect(other, want)
}

func TestPrune(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	db := fresh(t)
	db.now = func() time.Time { return now }
	ctx := t.Context()
	kept, gone, bare, recent := Key{"kept", "f", ""}, Key{"gone", "f", ""}, Key{"bare", "f", ""}, Key{"recent", "f", ""}
	for _, k := range []Key{kept, gone} {
		if _, _, err := db.ReplaceItems(ctx, k, tools("1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.PutServer(ctx, Server{Key: bare}); err != nil {
		t.Fatal(err)
	}
	const age = 30 * 24 * time.Hour
	now = now.Add(age + time.Millisecond)
	if err := db.PutServer(ctx, Server{Key: recent}); err != nil {
		t.Fatal(err)
	}
	before, err := db.Generation(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 0} {
		keep := []Key{kept, gone}
		if i > 0 {
			keep = keep[:1]
		}
		if n, err := db.Prune(ctx, keep, age); n != want || err != nil {
			t.Errorf("round %d: %d pruned, %v; want %d", i, n, err, want)
		}
	}
	if after, err := db.Generation(ctx); after != before+1 || err != nil {
		t.Errorf("generation went from %d to %d, %v", before, after, err)
	}
	servers, err := db.Servers(ctx)
	if err != nil || len(servers) != 2 || servers[0].Key != kept || servers[1].Key != recent {
		t.Errorf("%+v, %v", servers, err)
	}
	var rows int
	if err := db.pool.QueryRowContext(ctx, "SELECT count(*) FROM items").Scan(&rows); rows != 1 || err != nil {
		t.Errorf("%d item rows, %v", rows, err)
	}
}

func TestLists(t *testing.T) {
	db := fresh(t)
	ctx := t.Context()
	for i := range keepLists + 10 {
		if err := db.PutList(ctx, fmt.Sprint(i), fmt.Appendf(nil, "body %d \x00\xff", i)); err != nil {
			t.Fatal(err)
		}
		// Written again all the time, the first is never among the oldest.
		if err := db.PutList(ctx, "0", nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keepLists + 10 {
		want := fmt.Sprintf("body %d \x00\xff", i)
		if i <= 10 {
			want = "" // and of 0, an empty body
		}
		if body, err := db.List(ctx, fmt.Sprint(i)); string(body) != want || err != nil {
			t.Errorf("list %d is %q, %v; want %q", i, body, err, want)
		}
	}
	var rows int
	if err := db.pool.QueryRowContext(ctx, "SELECT count(*) FROM lists").Scan(&rows); rows != keepLists || err != nil {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestMigrationsAreNumbered(t *testing.T) {
	list, err := migrations()
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	for _, m := range list {
		if err := apply(t.Context(), db.pool, m, time.Now()); err != nil {
			t.Errorf("%s a second time: %v", m.file, err)
		}
	}
}
