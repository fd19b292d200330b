package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkOpenRead is what an instance does at its start: open, read 1,000
// items of 20 servers.
func BenchmarkOpenRead(b *testing.B) {
	db := fresh(b)
	fill(b, db)
	var keys []Key
	for i := range 20 {
		keys = append(keys, benchKey(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		other, err := Open(b.Context(), db.Path(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		items, err := other.Items(b.Context(), keys)
		if err != nil || len(items) != 1000 {
			b.Fatal(len(items), err)
		}
		if err := other.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFreshProcess is the same in a process of its own, timed inside:
// medians of the opening and of opening and reading.
func BenchmarkFreshProcess(b *testing.B) {
	db := fresh(b)
	fill(b, db)
	var opened, read []float64
	for b.Loop() {
		cmd, output := process(b, "read", db.Path())
		if err := cmd.Run(); err != nil {
			b.Fatal(err, output)
		}
		var n int
		var o, r float64
		if _, err := fmt.Sscan(output.String(), &n, &o, &r); err != nil || n != 1000 {
			b.Fatal(output, err)
		}
		opened, read = append(opened, o), append(read, r)
	}
	slices.Sort(opened)
	slices.Sort(read)
	b.ReportMetric(opened[len(opened)/2]/1000, "ms-open")
	b.ReportMetric(read[len(read)/2]/1000, "ms-open+read")
}

func BenchmarkDataVersion(b *testing.B) {
	db := fresh(b)
	for b.Loop() {
		if _, err := db.DataVersion(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTwentyWriters has twenty processes write two hundred times each, as
// fast as they can.
func BenchmarkTwentyWriters(b *testing.B) {
	var took []time.Duration
	for range b.N {
		took = append(took, count(b, 20, 200)...)
	}
	slices.Sort(took)
	for name, at := range map[string]int{"ms-p50": 500, "ms-p95": 950, "ms-p99": 990, "ms-max": 1000} {
		b.ReportMetric(milliseconds(took[(len(took)-1)*at/1000]), name)
	}
}
