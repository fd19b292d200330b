package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// makeCount makes the number that roleCount counts.
func makeCount(t testing.TB, db *DB) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		_, err := tx.tx.ExecContext(ctx, "INSERT INTO state VALUES ('count', 0)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// roleCount reads a number in the file args[0] and then writes the next, args[1]
// times, and prints how many microseconds each time took.
func roleCount(args []string) error {
	ctx := context.Background()
	var times int
	if _, err := fmt.Sscan(args[1], &times); err != nil {
		return err
	}
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	awaitStart()
	took := make([]int64, times)
	for i := range took {
		start := time.Now()
		err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			var n int
			if err := tx.tx.QueryRowContext(ctx, "SELECT value FROM state WHERE key = 'count'").Scan(&n); err != nil {
				return err
			}
			_, err := tx.tx.ExecContext(ctx, "UPDATE state SET value = ? WHERE key = 'count'", n+1)
			return err
		})
		if err != nil {
			return err
		}
		took[i] = time.Since(start).Microseconds()
	}
	fmt.Println(took)
	return nil
}

// count has n processes count together, times times each, and returns the time
// each step took, sorted.
func count(t testing.TB, n, times int) (took []time.Duration) {
	t.Helper()
	db := fresh(t)
	makeCount(t, db)
	gang := gather(t, n, "count", func(int) []string { return []string{db.Path(), fmt.Sprint(times)} })
	for _, output := range gang.run(t) {
		for _, word := range strings.Fields(strings.Trim(output, "[]\n")) {
			var us int64
			if _, err := fmt.Sscan(word, &us); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Duration(us)*time.Microsecond)
		}
	}
	var counted int
	if err := db.pool.QueryRowContext(t.Context(), "SELECT value FROM state WHERE key = 'count'").Scan(&counted); err != nil || counted != n*times || len(took) != n*times {
		t.Errorf("they counted to %d in %d steps, %v; want %d", counted, len(took), err, n*times)
	}
	check(t, db)
	expectSmallLog(t, db.Path())
	slices.Sort(took)
	return took
}

// logSize is the size of the write-ahead log in bytes.
func logSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func expectSmallLog(t testing.TB, path string) {
	t.Helper()
	if n := logSize(t, path); n > 8<<20 {
		t.Errorf("the write-ahead log has %d bytes", n)
	}
}

func TestProcessesReadAndThenWrite(t *testing.T) {
	count(t, 8, 200)
}

func TestTwentyProcessesWrite(t *testing.T) {
	count(t, 20, 50)
}

// roleFill writes args[1] entries of 20,000 bytes to the file args[0] and prints
// the most that the write-ahead log had in bytes.
func roleFill(args []string) error {
	ctx := context.Background()
	var times int
	if _, err := fmt.Sscan(args[1], &times); err != nil {
		return err
	}
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	awaitStart()
	body, most := make([]byte, 20_000), int64(0)
	for i := range times {
		if err := db.PutList(ctx, fmt.Sprint(i), body); err != nil {
			return err
		}
		info, err := os.Stat(args[0] + "-wal")
		if err != nil {
			return err
		}
		most = max(most, info.Size())
	}
	fmt.Println(most)
	return nil
}

func TestLogStaysSmallUnderTwentyProcesses(t *testing.T) {
	db := fresh(t)
	gang := gather(t, 20, "fill", func(int) []string { return []string{db.Path(), "50"} })
	var most int64
	for _, output := range gang.run(t) {
		var n int64
		if _, err := fmt.Sscan(output, &n); err != nil {
			t.Error(err)
		}
		most = max(most, n)
	}
	if most > 8<<20 {
		t.Errorf("the log had %d bytes", most)
	}
	expectSmallLog(t, db.Path())
	check(t, db)
}

// Somebody who reads for long keeps the log from being emptied. That may delay
// few of the writes.
func TestLongReaderDelaysFewWrites(t *testing.T) {
	db := fresh(t)
	reader, err := open(t, db.Path()).pool.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM lists").Scan(&n); err != nil {
		t.Fatal(err)
	}
	body, delayed := make([]byte, 100_000), 0
	for i := range 200 { // three times what is too much
		start := time.Now()
		if err := db.PutList(t.Context(), fmt.Sprint(i), body); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) > shrinkWait {
			delayed++
		}
	}
	if size := logSize(t, db.Path()); size < 18<<20 || delayed > 10 {
		t.Errorf("%d writes were delayed, and the log has %d bytes", delayed, size)
	}
	if err := reader.Rollback(); err != nil {
		t.Error(err)
	}
	for i := range 100 {
		if err := db.PutList(t.Context(), fmt.Sprint(i), body); err != nil {
			t.Fatal(err)
		}
	}
	expectSmallLog(t, db.Path())
}

// roleIdle reads what an instance reads in the file args[0], then does nothing.
func roleIdle(args []string) error {
	ctx := context.Background()
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := readAll(ctx, db); err != nil {
		return err
	}
	awaitStart()
	return nil
}

// readAll uses every way to read.
func readAll(ctx context.Context, db *DB) error {
	servers, err := db.Servers(ctx)
	if err != nil {
		return err
	}
	var keys []Key
	for _, s := range servers {
		keys = append(keys, s.Key)
	}
	reads := []func() error{
		func() error { _, err := db.Items(ctx, keys); return err },
		func() error { _, _, err := db.ReplaceItems(ctx, keys[0], nil); return err },
		func() error { _, err := db.List(ctx, "k"); return err },
		func() error { _, err := db.Generation(ctx); return err },
		func() error { _, err := db.Lease(ctx, "hub"); return err },
		func() error { _, err := db.Instances(ctx); return err },
		func() error { _, err := db.Processes(ctx); return err },
		func() error { _, err := db.DataVersion(ctx); return err },
	}
	for _, read := range reads {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// Somebody who keeps a view of the file keeps the log from ending. Here 20,000
// entries are written beside eight who have read.
func TestIdleProcessesHoldNothing(t *testing.T) {
	db := fresh(t)
	if _, _, err := db.ReplaceItems(t.Context(), Key{Name: "s"}, nil); err != nil {
		t.Fatal(err)
	}
	gang := gather(t, 8, "idle", func(int) []string { return []string{db.Path()} })
	if err := readAll(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			_, err := tx.tx.ExecContext(ctx, `WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n LIMIT 100)
				INSERT INTO lists SELECT ? || ' ' || n, randomblob(1200), 0 FROM n`, i)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expectSmallLog(t, db.Path())
	var busy, frames, moved int
	if err := db.pool.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil || busy != 0 {
		t.Errorf("the log cannot be emptied: %d, %v", busy, err)
	}
	if n := logSize(t, db.Path()); n != 0 {
		t.Errorf("the log has %d bytes though nobody reads", n)
	}
	gang.run(t)
}
