package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLeaseGoesFromHandToHand(t *testing.T) {
	ctx := t.Context()
	db := fresh(t)
	now := time.UnixMilli(1_800_000_000_123)
	db.now = func() time.Time { return now }
	const ttl = 10 * time.Second
	acquire := func(holder string, held bool, by string, expires time.Time) {
		t.Helper()
		got, lease, err := db.Acquire(ctx, "hub", holder, ttl)
		if want := (Lease{"hub", by, expires}); got != held || lease != want || err != nil {
			t.Errorf("%s: held %v, %+v, %v; want %v, %+v", holder, got, lease, err, held, want)
		}
	}
	expect := func(want Lease) {
		t.Helper()
		if got, err := db.Lease(ctx, "hub"); got != want || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	expect(Lease{})
	first := now.Add(ttl)
	acquire("a", true, "a", first)
	now = now.Add(ttl / 2)
	acquire("b", false, "a", first)
	if held, _, err := db.Acquire(ctx, "discovery", "b", ttl); !held || err != nil {
		t.Errorf("a lease of another name: %v, %v", held, err)
	}
	acquire("a", true, "a", now.Add(ttl)) // renewed
	renewed := Lease{"hub", "a", now.Add(ttl)}
	expect(renewed)
	now = renewed.ExpiresAt.Add(-time.Millisecond)
	acquire("b", false, "a", renewed.ExpiresAt)
	now = renewed.ExpiresAt
	expect(Lease{})
	acquire("b", true, "b", now.Add(ttl))
	acquire("a", false, "b", now.Add(ttl)) // it comes too late

	if err := db.Release(ctx, "hub", "a"); err != nil {
		t.Error(err)
	}
	expect(Lease{"hub", "b", now.Add(ttl)})
	if err := db.Release(ctx, "hub", "b"); err != nil {
		t.Error(err)
	}
	expect(Lease{})
	acquire("a", true, "a", now.Add(ttl))
}

func TestLeaseSucceeds(t *testing.T) {
	ctx := t.Context()
	db := fresh(t)
	now := time.UnixMilli(1_800_000_000_000)
	db.now = func() time.Time { return now }
	succeed := func(from, to string, want bool) {
		t.Helper()
		if done, err := db.Succeed(ctx, "hub", from, to, time.Second); done != want || err != nil {
			t.Errorf("%s to %s: %v, %v; want %v", from, to, done, err, want)
		}
	}
	succeed("", "a", false) // nobody has it
	if held, _, err := db.Acquire(ctx, "hub", "a", time.Second); !held || err != nil {
		t.Fatal(held, err)
	}
	succeed("b", "c", false)
	succeed("a", "b", true)
	succeed("a", "c", false) // of two who think a dead, one succeeds
	now = now.Add(time.Hour)
	succeed("b", "c", true) // expired, and nobody else was faster
	if l, err := db.Lease(ctx, "hub"); l != (Lease{"hub", "c", now.Add(time.Second)}) || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestLeasesInTheQueue(t *testing.T) {
	ctx := t.Context()
	db := fresh(t)
	err := db.Later(func(ctx context.Context, tx *Tx) error {
		_, _, err := tx.Acquire(ctx, "hub", "a", time.Hour)
		return err
	})
	if err == nil {
		err = db.Later(func(ctx context.Context, tx *Tx) error {
			_, err := tx.Succeed(ctx, "hub", "a", "b", time.Hour)
			return err
		})
	}
	if err == nil {
		err = db.Flush(ctx)
	}
	if l, _ := db.Lease(ctx, "hub"); err != nil || l.Holder != "b" {
		t.Errorf("%+v, %v", l, err)
	}
	err = db.Later(func(ctx context.Context, tx *Tx) error { return tx.Release(ctx, "hub", "b") })
	if err == nil {
		err = db.Flush(ctx)
	}
	if l, _ := db.Lease(ctx, "hub"); err != nil || l != (Lease{}) {
		t.Errorf("%+v, %v", l, err)
	}
}

// roleAcquire takes the leases "0" to "19" in the file args[0] under the name
// args[1] and prints who has each.
func roleAcquire(args []string) error {
	ctx := context.Background()
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	awaitStart()
	for i := range 20 {
		held, now, err := db.Acquire(ctx, fmt.Sprint(i), args[1], time.Hour)
		if err != nil || held != (now.Holder == args[1]) {
			return fmt.Errorf("held %v, %+v: %w", held, now, err)
		}
		fmt.Println(now.Holder)
	}
	return nil
}

func TestOneOfTwentyProcessesGetsALease(t *testing.T) {
	db := fresh(t)
	gang := gather(t, 20, "acquire", func(i int) []string { return []string{db.Path(), fmt.Sprint("holder-", i)} })
	told := map[string]int{}
	for _, output := range gang.run(t) {
		told[output]++
	}
	var want strings.Builder
	for i := range 20 {
		l, err := db.Lease(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&want, l.Holder)
	}
	if told[want.String()] != 20 {
		t.Errorf("%v were told to have the leases; want\n%s", told, &want)
	}
}

// killedTTL is what roleRenew takes a lease for.
const killedTTL = 2 * time.Second

// roleRenew takes the lease "discovery" in the file args[0], again and again.
func roleRenew(args []string) error {
	ctx := context.Background()
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	for {
		held, _, err := db.Acquire(ctx, "discovery", "first", killedTTL)
		if err != nil || !held {
			return fmt.Errorf("held %v: %w", held, err)
		}
		fmt.Println("renewed")
		time.Sleep(50 * time.Millisecond)
	}
}

func TestLeaseOfAKilledProcessIsTaken(t *testing.T) {
	db := fresh(t)
	cmd, _ := process(t, "renew", db.Path())
	cmd.Stderr = os.Stderr
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for range 5 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if held, now, err := db.Acquire(t.Context(), "discovery", "second", killedTTL); held || err != nil {
			t.Fatalf("it was taken from one that lives: %+v, %v", now, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	died := time.Now()
	for held := false; !held; {
		if held, _, err = db.Acquire(t.Context(), "discovery", "second", killedTTL); err != nil {
			t.Fatal(err)
		}
		if time.Since(died) > killedTTL+2*time.Second {
			t.Fatal("the lease outlives its holder")
		}
		time.Sleep(time.Millisecond)
	}
}
