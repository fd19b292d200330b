package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

// benchSource gives so many items: the real ones kept here, again and again
// under other servers.
func benchSource(tb testing.TB, items int) Source {
	tb.Helper()
	real, here := retrievalSource(tb, keptData, "livemcp/tools.jsonl", "mcpproxy45/tools.jsonl")
	if !here {
		tb.Fatal("the tools of livemcp are not here")
	}
	source := Source{Servers: map[string]Server{}}
	for i := range items {
		it := real.Items[i%len(real.Items)]
		server := it.Server
		if round := i / len(real.Items); round > 0 {
			server = fmt.Sprintf("%s-%d", it.Server, round)
		}
		source.Servers[server] = real.Servers[it.Server]
		source.Items = append(source.Items, catalog.New(catalog.Ref{Server: server, Kind: catalog.Tool, Name: it.Ref.Name}, it.Raw, nil))
	}
	return source
}

func benchQueries() []string {
	return []string{
		"create a github issue", "get weather forecast", "filesystem:read_file", "serch web pages", "convert document to pdf",
		"plot a bar chart of sales by month", "stock price history of a company", "list files in a directory",
		"find nearby restaurants and their opening hours", "translate text",
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, items := range []int{100, Small, 1000, 5000} {
		source := benchSource(b, items)
		b.Run(fmt.Sprintf("memory/%d", items), func(b *testing.B) {
			for b.Loop() {
				x, err := Open(b.Context(), source, Options{})
				if err != nil {
					b.Fatal(err)
				}
				_ = x.Close()
			}
		})
		if items <= Small {
			continue
		}
		b.Run(fmt.Sprintf("folder/%d", items), func(b *testing.B) {
			for b.Loop() {
				x, err := Open(b.Context(), source, Options{Folder: b.TempDir(), Lease: granted})
				if err != nil {
					b.Fatal(err)
				}
				_ = x.Close()
			}
		})
	}
}

// BenchmarkOpenAndSearch is what a process does that finds a folder.
func BenchmarkOpenAndSearch(b *testing.B) {
	for _, items := range []int{1000, 5000, 10000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			source := benchSource(b, items)
			o := Options{Folder: b.TempDir(), Lease: granted}
			x, err := Open(b.Context(), source, o)
			if err != nil {
				b.Fatal(err)
			}
			_ = x.Close()
			for b.Loop() {
				x, err := Open(b.Context(), source, o)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := x.Search(b.Context(), Query{Text: "create a github issue", Limit: 10}); err != nil {
					b.Fatal(err)
				}
				_ = x.Close()
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, items := range []int{1000, 5000, 10000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			x, err := Open(b.Context(), benchSource(b, items), Options{Folder: b.TempDir(), Lease: granted})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = x.Close() }()
			queries := benchQueries()
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if _, err := x.Search(b.Context(), Query{Text: queries[i%len(queries)], Limit: 15}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
		})
	}
}
