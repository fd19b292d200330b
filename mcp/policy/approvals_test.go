package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// quarantine is a data folder with what a test does to it.
type quarantine struct {
	t       *testing.T
	dir     string
	enabled bool
	auto    bool
	clock   time.Time
}

func newQuarantine(t *testing.T) *quarantine {
	return &quarantine{t: t, dir: t.TempDir(), enabled: true, clock: time.UnixMilli(1_800_000_000_000)}
}

// open is a process of its own, as far as memory goes.
func (q *quarantine) open() *Approvals {
	q.t.Helper()
	db, err := store.Open(q.t.Context(), filepath.Join(q.dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			q.t.Error(err)
		}
	})
	return q.with(db)
}

func (q *quarantine) with(db *store.DB) *Approvals {
	return NewApprovals(ApprovalOptions{
		Store: func() *store.DB { return db }, DataDir: q.dir,
		Enabled:     func() bool { return q.enabled },
		AutoApprove: func(string) bool { return q.auto },
		Now:         func() time.Time { q.clock = q.clock.Add(time.Second); return q.clock },
	})
}

// offering is a snapshot of one server "s" with these definitions; a word
// without braces is a tool of that name.
func offering(definitions ...string) *catalog.Snapshot {
	server := &catalog.Server{Name: "s", Prefix: "s", Known: true}
	for _, text := range definitions {
		item := itemOf(text)
		server.SetItems(item.Kind, append(server.Items(item.Kind), item))
	}
	return catalog.NewSnapshot([]*catalog.Server{server})
}

// itemOf makes an item of "name", "name description" or "kind:JSON".
func itemOf(text string) *catalog.Item {
	kind, raw, ok := strings.Cut(text, ":{")
	if !ok {
		name, description, _ := strings.Cut(text, " ")
		raw, kind = fmt.Sprintf(`"name":%q,"description":%q}`, name, description), "tool"
	}
	var member struct{ Name, URI, URITemplate string }
	if err := json.Unmarshal([]byte("{"+raw), &member); err != nil {
		panic(err)
	}
	name := map[string]string{"resource": member.URI, "template": member.URITemplate}[kind]
	if name == "" {
		name = member.Name
	}
	return catalog.New(catalog.Ref{Server: "s", Kind: catalog.Kind(kind), Name: name}, json.RawMessage("{"+raw), nil)
}

func judge(t *testing.T, a *Approvals, snapshot *catalog.Snapshot) []string {
	t.Helper()
	events, err := a.Judge(t.Context(), snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return brief(events)
}

// brief is what happened in a word each.
func brief(events []Event) []string {
	var list []string
	for _, e := range events {
		text := e.Name + " " + string(e.Was) + ">" + string(e.Status)
		if e.Kind == "" {
			text = fmt.Sprintf("baseline %d", e.Items)
		}
		if e.Who != "" {
			text += " by " + e.Who
		}
		list = append(list, text)
	}
	return list
}

// standing are the statuses of these items, by what is in memory.
func standing(a *Approvals, snapshot *catalog.Snapshot) string {
	var list []string
	for _, kind := range catalog.Kinds() {
		for _, item := range snapshot.Server("s").Items(kind) {
			text := item.Name + "=" + string(a.Status(item))
			if allowed := a.Allows(item); allowed != (a.Status(item) == Approved) {
				text += fmt.Sprintf("(allowed %v)", allowed)
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

// TestStateMachine goes through what can become of an item. A step offers
// definitions or decides ("approve a", "block a"); want are the statuses of what
// is offered then, and what was found.
func TestStateMachine(t *testing.T) {
	const prompt1, prompt2 = `prompt:{"name":"p","description":"1"}`, `prompt:{"name":"p","description":"2"}`
	const res1, res2 = `resource:{"uri":"file:///r","name":"r"}`, `resource:{"uri":"file:///r","name":"r","mimeType":"text/html"}`
	const tmpl1, tmpl2 = `template:{"uriTemplate":"x:{a}","name":"t"}`, `template:{"uriTemplate":"x:{a}","name":"u"}`
	type step struct {
		do    string
		offer []string
		want  string
		found []string
	}
	for name, test := range map[string]struct {
		auto, disabled bool
		steps          []step
	}{
		"first discovery": {steps: []step{
			{offer: []string{"a 1", prompt1, res1, tmpl1}, want: "a=approved file:///r=approved x:{a}=approved p=approved", found: []string{"baseline 4 by first discovery"}},
		}},
		"empty first discovery": {steps: []step{
			{offer: nil, found: []string{"baseline 0 by first discovery"}},
			{offer: []string{"a 1"}, want: "a=pending", found: []string{"a >pending"}},
		}},
		"all tools lost and others come": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: nil},
			{offer: []string{"b 1"}, want: "b=pending", found: []string{"b >pending"}},
			{offer: []string{"a 1"}, want: "a=approved"},
		}},
		"new, approved": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"a 1", "b 1"}, want: "a=approved b=pending", found: []string{"b >pending"}},
			{do: "approve b 1", offer: []string{"a 1", "b 1"}, want: "a=approved b=approved", found: []string{"b pending>approved by me"}},
			{do: "approve b 1", offer: []string{"a 1", "b 1"}, want: "a=approved b=approved"},
		}},
		"changed and back": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"a 2"}, want: "a=changed", found: []string{"a approved>changed"}},
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"a changed>approved by approved before"}},
			{do: "approve a 2", want: "stale"},
			{offer: []string{"a 2"}, want: "a=changed", found: []string{"a approved>changed"}},
			{do: "approve a 2", offer: []string{"a 2"}, want: "a=approved", found: []string{"a changed>approved by me"}},
			{offer: []string{"a 1"}, want: "a=approved"},
		}},
		"changed again before it was approved": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"a 2"}, want: "a=changed", found: []string{"a approved>changed"}},
			{offer: []string{"a 3"}, want: "a=changed", found: []string{"a approved>changed"}},
			{do: "approve a 2", want: "stale"},
			{do: "approve a 3", offer: []string{"a 3"}, want: "a=approved", found: []string{"a changed>approved by me"}},
		}},
		"removed and back": {steps: []step{
			{offer: []string{"a 1", "b 1"}, want: "a=approved b=approved", found: []string{"baseline 2 by first discovery"}},
			{offer: []string{"b 1"}, want: "b=approved"},
			{offer: []string{"a 1", "b 1"}, want: "a=approved b=approved"},
			{offer: []string{"a 2"}, want: "a=changed", found: []string{"a approved>changed"}},
		}},
		"what does not matter": {steps: []step{
			{offer: []string{`tool:{"name":"a","inputSchema":{"x":1,"y":2}}`}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{`tool:{ "inputSchema" : {"y":2.0,"x":1e0}, "name":"\u0061" }`}, want: "a=approved"},
			{offer: []string{`tool:{"name":"a","inputSchema":{"x":1,"y":3}}`}, want: "a=changed", found: []string{"a approved>changed"}},
		}},
		"prompts, resources and templates": {steps: []step{
			{offer: []string{prompt1, res1, tmpl1}, want: "file:///r=approved x:{a}=approved p=approved", found: []string{"baseline 3 by first discovery"}},
			{offer: []string{prompt2, res2, tmpl2}, want: "file:///r=changed x:{a}=changed p=changed",
				found: []string{"file:///r approved>changed", "x:{a} approved>changed", "p approved>changed"}},
			{do: "approve " + res2, offer: []string{prompt1, res2, tmpl2}, want: "file:///r=approved x:{a}=changed p=approved",
				found: []string{"file:///r changed>approved by me", "p changed>approved by approved before"}},
		}},
		"a prompt of the name of a tool": {steps: []step{
			{offer: []string{"p 1"}, want: "p=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"p 1", prompt1}, want: "p=approved p=pending", found: []string{"p >pending"}},
		}},
		"blocked": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{do: "block a", offer: []string{"a 1"}, want: "a=blocked", found: []string{"a approved>blocked by me"}},
			{do: "block a", offer: []string{"a 1"}, want: "a=blocked"},
			{offer: []string{"a 2"}, want: "a=blocked"},
			{do: "all", offer: []string{"a 2"}, want: "a=blocked"},
			{do: "approve a 2", offer: []string{"a 2"}, want: "a=approved", found: []string{"a blocked>approved by me"}},
			{do: "block a", offer: []string{"a 1"}, want: "a=blocked", found: []string{"a approved>blocked by me"}},
			{do: "approve a 1", offer: []string{"a 1"}, want: "a=approved", found: []string{"a blocked>approved by me"}},
		}},
		"blocked in a form that was never approved": {steps: []step{
			{offer: nil, found: []string{"baseline 0 by first discovery"}},
			{offer: []string{"a 1"}, want: "a=pending", found: []string{"a >pending"}},
			{do: "block a", offer: []string{"a 1"}, want: "a=blocked", found: []string{"a pending>blocked by me"}},
			{do: "unblock a", offer: []string{"a 1"}, want: "a=pending", found: []string{"a blocked>pending by me"}},
		}},
		"all": {steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"a 2", "b 1", prompt1}, want: "a=changed b=pending p=pending", found: []string{"a approved>changed", "b >pending", "p >pending"}},
			{do: "all", offer: []string{"a 2", "b 1", prompt1}, want: "a=approved b=approved p=approved",
				found: []string{"a changed>approved by me", "b pending>approved by me", "p pending>approved by me"}},
		}},
		"auto_approve_tool_changes": {auto: true, steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"a pending>approved by auto_approve_tool_changes", "baseline 0 by first discovery"}},
			{offer: []string{"a 2", "b 1"}, want: "a=approved b=approved",
				found: []string{"a changed>approved by auto_approve_tool_changes", "b pending>approved by auto_approve_tool_changes"}},
			{do: "block a", offer: []string{"a 3", "b 1"}, want: "a=blocked b=approved", found: []string{"a approved>blocked by me"}},
			{do: "unblock a", offer: []string{"a 1", "b 1"}, want: "a=approved b=approved", found: []string{"a blocked>changed by me", "a changed>approved by approved before"}},
		}},
		"quarantine_enabled off": {disabled: true, steps: []step{
			{offer: []string{"a 1"}, want: "a=approved", found: []string{"baseline 1 by first discovery"}},
			{offer: []string{"a 2", "b 1"}, want: "a=changed(allowed true) b=pending(allowed true)", found: []string{"a approved>changed", "b >pending"}},
			{do: "block b", offer: []string{"a 1", "b 1"}, want: "a=approved b=blocked", found: []string{"b pending>blocked by me", "a changed>approved by approved before"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuarantine(t)
			q.auto, q.enabled = test.auto, !test.disabled
			a := q.open()
			for i, step := range test.steps {
				var found []string
				verb, what, _ := strings.Cut(step.do, " ")
				var events []Event
				var err error
				switch verb {
				case "approve":
					item := itemOf(what)
					events, err = a.Approve(t.Context(), item.Ref, item.Fingerprint(), "me")
				case "unblock":
					events, err = a.Approve(t.Context(), itemOf(what).Ref, "", "me")
				case "block":
					events, err = a.Block(t.Context(), itemOf(what).Ref, "me")
				case "all":
					events, err = a.ApproveAll(t.Context(), offering(step.offer...).Server("s"), "me")
				}
				var stale *StaleError
				if step.want == "stale" {
					if !errors.As(err, &stale) || !strings.Contains(err.Error(), "mcpproxy quarantine show s:a") {
						t.Errorf("step %d: %v, want a StaleError", i, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, brief(events)...)
				snapshot := offering(step.offer...)
				// What was not judged is not approved, unless its very form was.
				found = append(found, judge(t, a, snapshot)...)
				if got := standing(a, snapshot); got != step.want {
					t.Errorf("step %d: %s, want %s", i, got, step.want)
				}
				if !slices.Equal(found, step.found) {
					t.Errorf("step %d: found %q, want %q", i, found, step.found)
				}
				if again := judge(t, a, offering(step.offer...)); len(again) != 0 {
					t.Errorf("step %d: found once more: %q", i, again)
				}
				other := q.open() // another process, later
				if again := judge(t, other, offering(step.offer...)); len(again) != 0 {
					t.Errorf("step %d: another process found %q", i, again)
				}
				if got := standing(other, snapshot); got != step.want {
					t.Errorf("step %d: another process: %s, want %s", i, got, step.want)
				}
			}
		})
	}
}

// TestNotJudgedIsNotApproved looks at items before anybody has judged them.
func TestNotJudgedIsNotApproved(t *testing.T) {
	q := newQuarantine(t)
	a := q.open()
	one, other := offering("a 1"), offering("a 2", "b 1")
	unlisted := &catalog.Item{Ref: catalog.Ref{Server: "s", Kind: catalog.Resource, Name: "file:///x"}}
	if got := standing(a, one); got != "a=" || a.Allows(unlisted) {
		t.Errorf("before anything was read: %s, unlisted %v", got, a.Allows(unlisted))
	}
	if _, err := a.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standing(a, one); got != "a=pending" {
		t.Errorf("before anything was judged: %s", got)
	}
	judge(t, a, one)
	if got := standing(a, other); got != "a=changed b=pending" {
		t.Errorf("what was not judged: %s", got)
	}
	if !a.Allows(unlisted) || a.Status(unlisted) != Unknown {
		t.Errorf("a resource that nobody lists: %q", a.Status(unlisted))
	}
	judge(t, a, offering("a 1", `resource:{"uri":"file:///x","name":"x"}`))
	if a.Allows(unlisted) || a.Status(unlisted) != Pending {
		t.Errorf("a held resource that is read by its URI: %q", a.Status(unlisted))
	}
	// A server whose lists were not read yet is not judged.
	blank := &catalog.Server{Name: "new", Prefix: "new"}
	if found := judge(t, a, catalog.NewSnapshot([]*catalog.Server{blank})); len(found) != 0 {
		t.Errorf("an unknown server was judged: %q", found)
	}
}

// TestUnreadKinds has a server whose prompts come later than its tools: they
// belong to the first discovery, and what comes after them does not.
func TestUnreadKinds(t *testing.T) {
	a := newQuarantine(t).open()
	with := func(unread []catalog.Kind, definitions ...string) *catalog.Snapshot {
		snapshot := offering(definitions...)
		snapshot.Server("s").Unread = unread
		return snapshot
	}
	const p, q = `prompt:{"name":"p"}`, `prompt:{"name":"q"}`
	judge(t, a, with([]catalog.Kind{catalog.Prompt}, "a 1"))
	judge(t, a, with([]catalog.Kind{catalog.Prompt}, "a 1", "b 1"))
	judge(t, a, with(nil, "a 1", "b 1", p))
	last := with(nil, "a 1", "b 1", p, q)
	judge(t, a, last)
	if got := standing(a, last); got != "a=approved b=pending p=approved q=pending" {
		t.Error(got)
	}
}

// TestLostStore deletes the store under the key file: what is discovered then is
// held until a person approves it.
func TestLostStore(t *testing.T) {
	q := newQuarantine(t)
	judge(t, q.open(), offering("a 1"))
	before := q.dir
	q.dir = t.TempDir() // as if the store had been deleted
	key, err := os.ReadFile(filepath.Join(before, auth.KeyFile))
	if err != nil {
		t.Fatalf("nothing tells that there was a store: %v", err)
	}
	if err := os.WriteFile(filepath.Join(q.dir, auth.KeyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := q.open(), q.open()
	one := offering("a 1", "b 1")
	if found := judge(t, a, one); !slices.Equal(found, []string{"a >pending", "b >pending"}) {
		t.Errorf("found %q", found)
	}
	if found := judge(t, b, offering("a 1", "b 1")); len(found) != 0 {
		t.Errorf("the other process found %q", found)
	}
	if lost, err := b.Lost(t.Context()); !lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
	judge(t, a, offering())
	judge(t, a, one)
	if got := standing(a, one); got != "a=pending b=pending" {
		t.Errorf("after an empty list: %s", got)
	}
	// One server's baseline.
	if _, err := b.ApproveAll(t.Context(), one.Server("s"), "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standing(a, one); got != "a=approved b=approved" {
		t.Errorf("after approval: %s", got)
	}
	more := offering("a 1", "b 1", "c 1")
	judge(t, a, more)
	if got := standing(a, more); got != "a=approved b=approved c=pending" {
		t.Errorf("a new item: %s", got)
	}
	other := func(definition string) *catalog.Snapshot {
		item := itemOf(definition)
		item = catalog.New(catalog.Ref{Server: "other", Kind: item.Kind, Name: item.Name}, item.Raw, nil)
		return catalog.NewSnapshot([]*catalog.Server{{Name: "other", Prefix: "other", Known: true, Tools: []*catalog.Item{item}}})
	}
	if found := judge(t, a, other("x 1")); !slices.Equal(found, []string{"x >pending"}) {
		t.Errorf("another server: %q", found)
	}
	// The end of it.
	events, err := b.Confirm(t.Context(), "me")
	if err != nil || len(events) != 1 {
		t.Errorf("%v, %v", events, err)
	}
	if lost, err := a.Lost(t.Context()); lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
	third := catalog.NewSnapshot([]*catalog.Server{{Name: "third", Prefix: "third", Known: true}})
	if found := judge(t, a, third); !slices.Equal(found, []string{"baseline 0 by first discovery"}) {
		t.Errorf("a third server: %q", found)
	}
}

// TestTwoForms has two clients to which a server offers different tools. Each
// form is approved by itself, and nothing goes back and forth.
func TestTwoForms(t *testing.T) {
	q := newQuarantine(t)
	a, b := q.open(), q.open()
	atA, atB := offering("a for A"), offering("a for B")
	judge(t, a, atA)
	judge(t, b, atB)
	for range 3 {
		if _, err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := append(judge(t, a, atA), judge(t, b, atB)...); len(found) != 0 {
			t.Fatalf("goes back and forth: %q", found)
		}
	}
	number := a.Stamp(t.Context())
	if standing(a, atA) != "a=approved" || standing(b, atB) != "a=changed" {
		t.Error(standing(a, atA), standing(b, atB))
	}
	item := itemOf("a for B")
	if _, err := a.Approve(t.Context(), item.Ref, item.Fingerprint(), "me"); err != nil {
		t.Fatal(err)
	}
	if a.Stamp(t.Context()) == number {
		t.Error("the stamp is as before")
	}
	if changed, err := b.Refresh(t.Context()); !changed || err != nil {
		t.Error(changed, err)
	}
	if changed, err := b.Refresh(t.Context()); changed || err != nil {
		t.Error("refreshed for nothing", err)
	}
	if standing(a, atA) != "a=approved" || standing(b, atB) != "a=approved" {
		t.Error(standing(a, atA), standing(b, atB))
	}
	if found := append(judge(t, a, atA), judge(t, b, atB)...); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}

// TestFormsAreBounded has a server that never says the same twice.
func TestFormsAreBounded(t *testing.T) {
	q := newQuarantine(t)
	a := q.open()
	judge(t, a, offering("a 0"))
	for i := range 3 * maxHeldForms {
		judge(t, q.open(), offering(fmt.Sprint("a held ", i)))
	}
	q.auto = true
	for i := range 3 * maxApprovedForms {
		judge(t, a, offering(fmt.Sprint("a approved ", i)))
	}
	if _, err := a.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	approved, held := 0, 0
	for _, f := range a.view.Load().entries[itemOf("a").Ref].forms {
		if f.Approved {
			approved++
		} else {
			held++
		}
	}
	if approved != maxApprovedForms || held != maxHeldForms {
		t.Errorf("%d approved forms, %d held", approved, held)
	}
	newest := offering(fmt.Sprint("a approved ", 3*maxApprovedForms-1))
	if got := standing(a, newest); got != "a=approved" {
		t.Error(got)
	}
}

// TestInspectedIsTheBaseline has a person look at a held server and release it;
// what it offers after that and did not show is held.
func TestInspectedIsTheBaseline(t *testing.T) {
	q := newQuarantine(t)
	a := q.open()
	if _, err := a.Inspected(t.Context(), offering("a 0", "gone 1").Server("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Inspected(t.Context(), offering("a 1", "b 1").Server("s")); err != nil {
		t.Fatal(err)
	}
	released := offering("a 1", "b 2", "gone 1", `prompt:{"name":"p"}`)
	if got := standing(a, released); got != "a=pending b=pending gone=pending p=pending" {
		t.Errorf("before its release: %s", got)
	}
	found := judge(t, q.open(), released)
	if _, err := a.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standing(a, released); got != "a=approved b=pending gone=pending p=pending" {
		t.Errorf("after its release: %s, found %q", got, found)
	}
	// So is what comes to one of which all was approved item by item.
	q = newQuarantine(t)
	b := q.open()
	if _, err := b.Inspected(t.Context(), offering("a 1").Server("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Approve(t.Context(), itemOf("a").Ref, itemOf("a 1").Fingerprint(), "me"); err != nil {
		t.Fatal(err)
	}
	judge(t, b, offering("a 1", "b 1"))
	if got := standing(b, offering("a 1", "b 1")); got != "a=approved b=pending" {
		t.Errorf("approved before its release: %s", got)
	}
	// A server that was trusted before is judged as ever.
	if _, err := a.Inspected(t.Context(), offering("a 2").Server("s")); err != nil {
		t.Fatal(err)
	}
	judge(t, a, offering("a 2"))
	if got := standing(a, offering("a 2")); got != "a=changed" {
		t.Errorf("held again: %s", got)
	}
}

// TestWithoutStore has nothing to judge with.
func TestWithoutStore(t *testing.T) {
	a := newQuarantine(t).with(nil)
	snapshot := offering("a 1")
	if found := judge(t, a, snapshot); len(found) != 0 || a.Usable() || a.Stamp(t.Context()) != "" {
		t.Errorf("found %q, usable %v, stamp %q", found, a.Usable(), a.Stamp(t.Context()))
	}
	if got := standing(a, snapshot); got != "a=" {
		t.Error(got)
	}
	_, err := a.Approve(t.Context(), itemOf("a").Ref, "x", "me")
	if !errors.Is(err, auth.ErrNoStore) {
		t.Error(err)
	}
	if _, err := a.Block(t.Context(), itemOf("a").Ref, "me"); !errors.Is(err, auth.ErrNoStore) {
		t.Error(err)
	}
	if list, err := a.Review(t.Context(), []store.Key{{Name: "s"}}); list != nil || err != nil {
		t.Error(list, err)
	}
}
