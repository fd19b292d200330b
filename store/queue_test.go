package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// hold keeps the file locked for writing until release, from another DB.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	other := open(t, path)
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(t.Context(), func(context.Context, *Tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-done:
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// later queues a write of body under key.
func later(t *testing.T, db *DB, key, body string) {
	t.Helper()
	err := db.Later(func(ctx context.Context, tx *Tx) error { return tx.PutList(ctx, key, []byte(body)) })
	if err != nil {
		t.Fatal(err)
	}
}

func expectList(t *testing.T, db *DB, key, want string) {
	t.Helper()
	if body, err := db.List(t.Context(), key); string(body) != want || err != nil {
		t.Errorf("%s is %q, %v; want %q", key, body, err, want)
	}
}

func TestLaterWritesInOrder(t *testing.T) {
	db := fresh(t)
	for i := range 500 {
		later(t, db, "k", fmt.Sprint(i))
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectList(t, db, "k", "499")
	if err := db.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLaterDoesNotWaitForOtherWriters(t *testing.T) {
	db := fresh(t)
	release := hold(t, db.Path())
	defer release()
	for i := range 100 {
		later(t, db, "k", fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("flush under a lock: %v", err)
	}
	expectList(t, db, "k", "")
	release()
	if err := db.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	expectList(t, db, "k", "99")
}

func TestFailedOpIsUndoneAlone(t *testing.T) {
	failure := errors.New("no")
	var told []error
	db, err := Open(t.Context(), fresh(t).Path(), Options{OnError: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, db.Path()) // so that they share a transaction
	later(t, db, "before", "1")
	err = db.Later(func(ctx context.Context, tx *Tx) error {
		return errors.Join(tx.PutList(ctx, "inside", []byte("1")), failure)
	})
	if err != nil {
		t.Fatal(err)
	}
	later(t, db, "after", "1")
	release()
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectList(t, db, "before", "1")
	expectList(t, db, "inside", "")
	expectList(t, db, "after", "1")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || !errors.Is(told[0], failure) {
		t.Errorf("OnError was told %v", told)
	}
}

func TestWriteIsUndoneWhenItFails(t *testing.T) {
	db := fresh(t)
	failure := errors.New("no")
	err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		return errors.Join(tx.PutList(ctx, "k", []byte("1")), failure)
	})
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	expectList(t, db, "k", "")
}

func TestQueueIsBounded(t *testing.T) {
	db := fresh(t)
	release := hold(t, db.Path())
	defer release()
	accepted := 0
	var err error
	for range maxPending + maxGroup + 1 {
		err = db.Later(func(ctx context.Context, tx *Tx) error { return tx.PutList(ctx, "k", nil) })
		if err != nil {
			break
		}
		accepted++
	}
	if !errors.Is(err, ErrFull) || accepted < maxPending {
		t.Errorf("%d accepted, then %v", accepted, err)
	}
	release()
	if err := db.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	later(t, db, "k", "room again")
}

func TestCloseWritesWhatWaits(t *testing.T) {
	path := fresh(t).Path()
	ctx, cancel := context.WithCancel(t.Context())
	db, err := Open(ctx, path, Options{OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	cancel() // the end of the program is when the last writes come
	for i := range 300 {
		later(t, db, "k", fmt.Sprint(i))
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Later(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("later after close: %v", err)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Errorf("flush after close: %v", err)
	}
	if _, err := db.Servers(t.Context()); err == nil {
		t.Error("a closed DB answers")
	}
	expectList(t, open(t, path), "k", "299")
}

func TestCloseIsBounded(t *testing.T) {
	var told []error
	db, err := Open(t.Context(), fresh(t).Path(), Options{OnError: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, db.Path())
	defer release()
	later(t, db, "k", "1")
	start := time.Now()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d < closeWait || d > busyTimeout {
		t.Errorf("close took %v", d)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "1 writes were lost") || !errors.Is(told[0], context.Canceled) {
		t.Errorf("OnError was told %v", told)
	}
	release()
	expectList(t, open(t, db.Path()), "k", "")
}

func TestWriteWaitsForItsContextAlone(t *testing.T) {
	db := fresh(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Write(t.Context(), func(context.Context, *Tx) error {
		if err := db.PutList(ended, "k", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a second writer got %v", err)
		}
		for range maxConns { // writers that wait keep no connection
			if _, err := db.Servers(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestManyWritersInOneProcess(t *testing.T) {
	db := fresh(t)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			key := Key{Name: fmt.Sprint(i)}
			for n := range 20 {
				if _, changed, err := db.ReplaceItems(t.Context(), key, tools(fmt.Sprint(n))); err != nil || !changed {
					t.Error(changed, err)
				}
				if items, err := db.Items(t.Context(), []Key{key}); len(items) != 1 || err != nil || string(items[0].Raw) != fmt.Sprint(n) {
					t.Errorf("%+v, %v", items, err)
				}
				if err := db.Later(func(ctx context.Context, tx *Tx) error { return tx.PutServer(ctx, Server{Key: key}) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := db.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if servers, err := db.Servers(t.Context()); len(servers) != 16 || err != nil {
		t.Error(len(servers), err)
	}
}
