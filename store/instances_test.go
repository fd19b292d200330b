package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func expectInstances(t *testing.T, db *DB, want ...Instance) {
	t.Helper()
	if got, err := db.Instances(t.Context()); !slices.Equal(got, want) || err != nil {
		t.Errorf("instances are\n%+v, %v; want\n%+v", got, err, want)
	}
}

func expectProcesses(t *testing.T, db *DB, want ...Process) {
	t.Helper()
	if got, err := db.Processes(t.Context()); !slices.Equal(got, want) || err != nil {
		t.Errorf("processes are\n%+v, %v; want\n%+v", got, err, want)
	}
}

func TestInstances(t *testing.T) {
	ctx := t.Context()
	db := fresh(t)
	now := time.UnixMilli(1_800_000_000_123)
	db.now = func() time.Time { return now }
	hub := Instance{ID: "h", Kind: "hub", Build: "1.2.3 (abc)", Socket: "/run/x \x00\xff", PID: 17, StartedAt: now.Add(-time.Hour)}
	client := Instance{ID: "c", Kind: "client", Build: "1.2.3", Mode: "direct", Client: "Some Editor", ClientVersion: "9",
		Hub: "h", PID: 18, StartedAt: now.Add(-2 * time.Hour)}
	twin := Instance{ID: "b", Kind: "client", StartedAt: client.StartedAt}
	put := func(list ...Instance) {
		t.Helper()
		for _, i := range list {
			if err := db.PutInstance(ctx, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := func(i Instance, at time.Time) Instance { i.SeenAt = at; return i }
	expectInstances(t, db)
	put(hub, seen(client, now.Add(time.Hour)), twin)
	first := now
	expectInstances(t, db, seen(twin, first), seen(client, first), seen(hub, first))

	now = now.Add(time.Minute)
	hub.Mode, client.Hub = "serve", ""
	put(hub, client)
	expectInstances(t, db, seen(twin, first), seen(client, now), seen(hub, now))

	// The hub runs one server twice, with different environments.
	key, other := Key{"s", "f", "roots"}, Key{"s", "g", ""}
	ofHub := Process{Instance: "h", ID: "1", Key: key, PID: 99, Users: 2, StartedAt: now}
	processes := []Process{ofHub, {Instance: "b", ID: "1", Key: key, PID: 98}, {Instance: "h", ID: "2", Key: key},
		{Instance: "h", ID: "3", Key: other}, {Instance: "unknown", ID: "1", Key: other}}
	for _, p := range processes {
		if err := db.PutProcess(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	ofHub.Users, ofHub.PID, ofHub.StartedAt = 0, 100, now.Add(time.Minute)
	if err := db.PutProcess(ctx, ofHub); err != nil {
		t.Fatal(err)
	}
	expectProcesses(t, db, processes[1], ofHub, processes[2], processes[3], processes[4])
	if err := errors.Join(db.RemoveProcess(ctx, "h", "2"), db.RemoveProcess(ctx, "h", "3"), db.RemoveProcess(ctx, "h", "no")); err != nil {
		t.Error(err)
	}
	expectProcesses(t, db, processes[1], ofHub, processes[4])

	// The twin was seen a minute ago: that is not longer than a minute.
	for _, test := range []struct {
		age  time.Duration
		want int
	}{{time.Minute, 0}, {time.Minute - time.Millisecond, 1}, {0, 0}} {
		if n, err := db.PruneInstances(ctx, test.age); n != test.want || err != nil {
			t.Errorf("%d pruned, %v; want %d", n, err, test.want)
		}
	}
	expectInstances(t, db, seen(client, now), seen(hub, now))
	expectProcesses(t, db, ofHub)
	if err := errors.Join(db.RemoveInstance(ctx, "h"), db.RemoveInstance(ctx, "unknown")); err != nil {
		t.Error(err)
	}
	expectInstances(t, db, seen(client, now))
	expectProcesses(t, db)
}

func TestInstancesInTheQueue(t *testing.T) {
	ctx := t.Context()
	db := fresh(t)
	steps := []Op{
		func(ctx context.Context, tx *Tx) error { return tx.PutInstance(ctx, Instance{ID: "a", Kind: "client"}) },
		func(ctx context.Context, tx *Tx) error { return tx.PutProcess(ctx, Process{Instance: "a", ID: "1"}) },
		func(ctx context.Context, tx *Tx) error { return tx.RemoveProcess(ctx, "a", "1") },
		func(ctx context.Context, tx *Tx) error { return tx.RemoveInstance(ctx, "a") },
		func(ctx context.Context, tx *Tx) error { return tx.PutInstance(ctx, Instance{ID: "b", Kind: "client"}) },
		func(ctx context.Context, tx *Tx) error { _, err := tx.PruneInstances(ctx, -time.Second); return err },
	}
	for i, want := range [][2]int{{1, 0}, {1, 1}, {1, 0}, {0, 0}, {1, 0}, {0, 0}} {
		err := db.Later(steps[i])
		if err == nil {
			err = db.Flush(ctx)
		}
		instances, err1 := db.Instances(ctx)
		processes, err2 := db.Processes(ctx)
		if err := errors.Join(err, err1, err2); err != nil || len(instances) != want[0] || len(processes) != want[1] {
			t.Errorf("step %d: %+v, %+v, %v", i, instances, processes, err)
		}
	}
}
