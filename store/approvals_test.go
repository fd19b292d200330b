package store

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// TestApprovals writes and reads what is stored of approvals.
func TestApprovals(t *testing.T) {
	db := fresh(t)
	ctx := t.Context()
	at := time.UnixMilli(1_800_000_000_123)
	form := func(server, name, hash string, approved bool) Form {
		f := Form{Server: server, Kind: "tool", Name: name, Hash: hash, RawHash: "raw " + hash, Raw: []byte(`{"name":"` + hash + `"}`), SeenAt: at}
		if approved {
			f.Approved, f.Who, f.DecidedAt = true, "me", at.Add(time.Hour)
		}
		return f
	}
	number := func() int64 {
		t.Helper()
		n, err := db.ApprovalsNumber(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := number()
	if last < 1_000_000_000_000 {
		t.Errorf("the number begins at %d", last)
	}
	write := func(what string, op Op) {
		t.Helper()
		if err := db.Write(ctx, op); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := number(); n <= last {
			t.Errorf("%s: the number is %d after %d", what, n, last)
		} else {
			last = n
		}
	}
	a1, a2, b1 := form("s", "a", "1", true), form("s", "a", "2", false), form("other", "b", "1", true)
	a2.SeenAt = at.Add(time.Second)
	write("forms", func(ctx context.Context, tx *Tx) error { return tx.PutForms(ctx, a2, b1, a1) })
	block := Block{Server: "s", Kind: "prompt", Name: "p", Who: "me", At: at}
	write("block", func(ctx context.Context, tx *Tx) error { return tx.PutBlock(ctx, block) })
	later := block
	later.Who, later.At = "you", at.Add(time.Hour)
	write("block again", func(ctx context.Context, tx *Tx) error { return tx.PutBlock(ctx, later) })
	baseline := Baseline{Server: "s", Kind: "tool", Who: "first discovery", At: at}
	write("baseline", func(ctx context.Context, tx *Tx) error { return tx.PutBaselines(ctx, baseline) })

	bare := func(f Form) Form { f.Raw = nil; return f }
	check := func(got, want Approvals) {
		t.Helper()
		want.Number = got.Number
		if !reflect.DeepEqual(got, want) {
			t.Errorf("stored are %+v\nwant %+v", got, want)
		}
	}
	read := func() Approvals {
		t.Helper()
		all, err := db.Approvals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := read()
	check(all, Approvals{Forms: []Form{bare(b1), bare(a1), bare(a2)}, Blocks: []Block{block}, Baselines: []Baseline{baseline}})
	if all.Number != last {
		t.Errorf("read with number %d, it is %d", all.Number, last)
	}
	if raw, err := db.FormRaw(ctx, a2); err != nil || string(raw) != string(a2.Raw) {
		t.Errorf("raw %s, %v", raw, err)
	}
	if raw, err := db.FormRaw(ctx, form("s", "a", "3", false)); err != nil || raw != nil {
		t.Errorf("raw of none %s, %v", raw, err)
	}

	// What is there keeps its raw and the time when it was seen.
	approved := form("s", "a", "2", true)
	approved.Raw, approved.RawHash, approved.SeenAt = []byte("other"), "other", at.Add(time.Minute)
	write("approve", func(ctx context.Context, tx *Tx) error { return tx.PutForms(ctx, approved) })
	want := bare(a2)
	want.Approved, want.Who, want.DecidedAt = true, "me", at.Add(time.Hour)
	write("delete", func(ctx context.Context, tx *Tx) error { return tx.DeleteForms(ctx, a1) })
	write("unblock", func(ctx context.Context, tx *Tx) error { return tx.DeleteBlock(ctx, block) })
	write("confirm", func(ctx context.Context, tx *Tx) error { return tx.ConfirmApprovals(ctx) })
	check(read(), Approvals{Confirmed: true, Forms: []Form{bare(b1), want}, Baselines: []Baseline{baseline}})
	write("one server", func(ctx context.Context, tx *Tx) error {
		one, err := tx.Approvals(ctx, "s")
		check(one, Approvals{Confirmed: true, Forms: []Form{want}, Baselines: []Baseline{baseline}})
		return errOr(err, tx.ConfirmApprovals(ctx))
	})
	var none *DB
	if all, err := none.Approvals(ctx); err != nil || all.Forms != nil {
		t.Error(all, err)
	}
	if n, err := none.ApprovalsNumber(ctx); err != nil || n != 0 {
		t.Error(n, err)
	}
	if raw, err := none.FormRaw(ctx, a1); err != nil || raw != nil {
		t.Error(raw, err)
	}
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestConnections writes how servers are connected; each file has its own.
func TestConnections(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "mcpproxy.db"))
	ctx := t.Context()
	at := time.UnixMilli(1_800_000_000_123)
	one := Connection{Config: "/a", Server: "s", Fingerprint: "1", Target: "npx a", SeenAt: at}
	two := one
	two.Fingerprint, two.Target = "2", "npx b"
	other := one
	other.Config = "/b"
	for _, c := range []Connection{one, other, two} {
		if err := db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.PutConnection(ctx, c) }); err != nil {
			t.Fatal(err)
		}
	}
	for config, want := range map[string][]Connection{"/a": {two}, "/b": {other}, "/c": nil} {
		got, err := db.Connections(ctx, config)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", config, got, err, want)
		}
	}
	var none *DB
	if got, err := none.Connections(ctx, "/a"); err != nil || got != nil {
		t.Error(got, err)
	}
}
