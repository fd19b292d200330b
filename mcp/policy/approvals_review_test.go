package policy

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// TestReview lists what the store says that servers offer.
func TestReview(t *testing.T) {
	q := newQuarantine(t)
	a := q.open()
	ctx := t.Context()
	offer := func(audience string, texts ...string) {
		var items []store.Item
		for _, text := range texts {
			item := itemOf(text)
			items = append(items, store.Item{Kind: string(item.Kind), Name: item.Name, Raw: item.Raw})
		}
		if _, _, err := a.options.Store().ReplaceItems(ctx, store.Key{Name: "s", Fingerprint: "f", Audience: audience}, items); err != nil {
			t.Fatal(err)
		}
	}
	review := func() []string {
		list, err := a.Review(ctx, []store.Key{{Name: "none", Fingerprint: "f"}, {Name: "s", Fingerprint: "f"}})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, r := range list {
			texts = append(texts, fmt.Sprintf("%s %s %v", r.Item.Raw, r.Status, r.Offered))
		}
		return texts
	}
	form := func(text, rest string) string { return string(itemOf(text).Raw) + " " + rest }
	offer("", "a 1", "b 1")
	if got := review(); got != nil {
		t.Errorf("before anything was judged: %q", got)
	}
	judge(t, a, offering("a 1", "b 1"))
	offer("", "a 2", "b 1")
	want := []string{form("a 2", "changed true"), form("b 1", "approved true")}
	if got := review(); !reflect.DeepEqual(got, want) {
		t.Errorf("not judged yet: %q, want %q", got, want)
	}
	judge(t, a, offering("a 2", "b 1"))
	if got := review(); !reflect.DeepEqual(got, want) {
		t.Errorf("judged: %q, want %q", got, want)
	}
	if before, err := a.Before(ctx, itemOf("a").Ref); err != nil || string(before) != string(itemOf("a 1").Raw) {
		t.Errorf("before it was %s, %v", before, err)
	}
	// Another client is offered something else; later nobody is offered the change.
	offer("sampling", "a 1", "b 1", "c 1")
	want = append(want, form("c 1", "pending true"))
	want = []string{want[0], want[1], form("a 1", "approved true"), want[2]}
	if got := review(); !reflect.DeepEqual(got, want) {
		t.Errorf("two clients: %q, want %q", got, want)
	}
	offer("", "a 1", "b 1")
	offer("sampling", "a 1", "b 1")
	if _, err := a.Block(ctx, itemOf("z").Ref, "me"); err != nil {
		t.Fatal(err)
	}
	want = []string{form("a 1", "approved true"), form("b 1", "approved true"), form("a 2", "changed false"), " blocked false"}
	if got := review(); !reflect.DeepEqual(got, want) {
		t.Errorf("back: %q, want %q", got, want)
	}
}

// TestConnections has the entry of a server changed.
func TestConnections(t *testing.T) {
	q := newQuarantine(t)
	a, b := q.open(), q.open()
	told := func(a *Approvals, config string, servers ...store.Connection) string {
		t.Helper()
		changes, err := a.Connections(t.Context(), config, servers)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(changes)
	}
	one := store.Connection{Server: "s", Fingerprint: "1", Target: "npx a"}
	two := store.Connection{Server: "s", Fingerprint: "2", Target: "npx b"}
	three := store.Connection{Server: "s", Fingerprint: "3", Target: "npx b"}
	other := store.Connection{Server: "o", Fingerprint: "1", Target: "npx o"}
	for i, step := range []struct {
		got, want string
	}{
		{told(a, "/c", one), "[]"},
		{told(a, "/c", one, other), "[]"},
		{told(b, "/c", two, other), "[server s: it was npx a and is now npx b]"},
		{told(a, "/c", two, other), "[]"},
		{told(a, "/c", three), "[server s: its environment, headers or settings of the connection have changed; it still is npx b]"},
		{told(b, "/other", one), "[]"}, // another file that calls a server so
		{told(b, "/c", three), "[]"},
		{told(b, "/c", two), "[server s: its environment, headers or settings of the connection have changed; it still is npx b]"},
		{told(b, "/c", three), "[server s: its environment, headers or settings of the connection have changed; it still is npx b]"},
	} {
		if step.got != step.want {
			t.Errorf("step %d: %s, want %s", i, step.got, step.want)
		}
	}
}

// TestEventWords checks that what a person is told to type can be typed.
func TestEventWords(t *testing.T) {
	ref := catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "odd name'; rm -rf ~"}
	for _, test := range []struct {
		event Event
		want  string
	}{
		{Event{Ref: ref, Status: Pending}, `tool odd name'; rm -rf ~ of server s is new and held until a person approves it: mcpproxy quarantine show 's:odd name'\''; rm -rf ~'`},
		{Event{Ref: catalog.Ref{Server: "s", Kind: catalog.Resource, Name: "file:///x"}, Status: Changed}, `resource file:///x of server s is not what was approved and is held until a person approves it: mcpproxy quarantine show s:file:///x`},
		{Event{Ref: ref, Status: Blocked, Who: "me"}, `tool odd name'; rm -rf ~ of server s is blocked by me`},
		{Event{Ref: catalog.Ref{Server: "s"}, Status: Approved, Who: ByDiscovery, Items: 3}, `server s: 3 items are approved (first discovery)`},
	} {
		if got := test.event.String(); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// BenchmarkStatus is what a call pays.
func BenchmarkStatus(b *testing.B) {
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(b.TempDir(), "mcpproxy.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	a := NewApprovals(ApprovalOptions{Store: func() *store.DB { return db }, DataDir: b.TempDir()})
	var definitions []string
	for i := range 1000 {
		definitions = append(definitions, fmt.Sprintf("tool_%d %s", i, strings.Repeat("word ", 200)))
	}
	snapshot := offering(definitions...)
	if _, err := a.Judge(ctx, snapshot); err != nil {
		b.Fatal(err)
	}
	item := snapshot.Server("s").Tools[500]
	for b.Loop() {
		if !a.Allows(item) {
			b.Fatal("not allowed")
		}
	}
}

// BenchmarkJudge is what a process pays for a thousand tools: the first of all,
// and any that starts later.
func BenchmarkJudge(b *testing.B) {
	ctx := context.Background()
	var definitions []string
	for i := range 1000 {
		definitions = append(definitions, fmt.Sprintf("tool_%d %s", i, strings.Repeat("word ", 200)))
	}
	for _, name := range []string{"first", "later"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				db, err := store.Open(ctx, filepath.Join(dir, "mcpproxy.db"), store.Options{})
				if err != nil {
					b.Fatal(err)
				}
				options := ApprovalOptions{Store: func() *store.DB { return db }, DataDir: dir}
				if name == "later" {
					if _, err := NewApprovals(options).Judge(ctx, offering(definitions...)); err != nil {
						b.Fatal(err)
					}
				}
				a, snapshot := NewApprovals(options), offering(definitions...)
				b.StartTimer()
				if _, err := a.Judge(ctx, snapshot); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				db.Close()
				b.StartTimer()
			}
		})
	}
}
