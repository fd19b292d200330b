package store

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestKilledWritersLoseNothing(t *testing.T) {
	path := fresh(t).Path() // open throughout: a sibling that lives on
	for round := range 4 {
		killWriters(t, path, round)
	}
}

// BenchmarkKilledWriters does one round for each iteration.
func BenchmarkKilledWriters(b *testing.B) {
	db := fresh(b)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	var reopened []time.Duration
	var log int64
	for round := range b.N {
		took, size := killWriters(b, db.Path(), round)
		reopened, log = append(reopened, took), max(log, size)
	}
	slices.Sort(reopened)
	b.ReportMetric(milliseconds(reopened[len(reopened)/2]), "ms-reopen-p50")
	b.ReportMetric(milliseconds(reopened[len(reopened)-1]), "ms-reopen-max")
	b.ReportMetric(float64(log)/(1<<20), "MiB-log-max")
}

// killWriters has three processes write, kills them while they do, and looks
// whether all is there that they said was written. It returns how long it took
// to open the file after them and to read one row, and how many bytes of log
// they left.
func killWriters(t testing.TB, path string, round int) (reopened time.Duration, log int64) {
	t.Helper()
	type writer struct {
		cmd    *exec.Cmd
		output *lineWatcher
	}
	var writers []writer
	for i := range 3 {
		cmd, _ := process(t, "change", path, fmt.Sprintf("server-%d", i), "1000000")
		output := &lineWatcher{after: 20 + 15*(round%8) + 7*i, reached: make(chan struct{})}
		cmd.Stdout = output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, writer{cmd, output})
	}
	for _, w := range writers {
		select {
		case <-w.output.reached:
		case <-time.After(time.Minute):
			t.Error("a writer makes no progress")
		}
		if err := w.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	for _, w := range writers {
		_ = w.cmd.Wait() // killed
	}
	expectSmallLog(t, path)
	log = logSize(t, path)
	start := time.Now()
	db := open(t, path)
	if _, err := db.Generation(t.Context()); err != nil {
		t.Error(err)
	}
	reopened = time.Since(start)
	for i, w := range writers {
		items, err := db.Items(t.Context(), []Key{{Name: fmt.Sprintf("server-%d", i)}})
		n := -1
		if err == nil && len(items) == 2 {
			_, err = fmt.Sscanf(string(items[0].Raw), `{"n":%d}`, &n)
		}
		if acked := w.output.last(); err != nil || n < acked {
			t.Errorf("round %d: server %d has change %d (%d items), %v; %d was acknowledged", round, i, n, len(items), err, acked)
		}
	}
	check(t, db)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	return reopened, log
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
