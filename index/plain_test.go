package index

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	blevesearch "github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/collector"
	"github.com/blevesearch/bleve/v2/search/query"
	api "github.com/blevesearch/bleve_index_api"
)

// plain is the search that one gets of bleve without more: one text field with
// all of a definition, the default analyzer, the default scoring.
type plain struct {
	index   api.Index
	mapping *mapping.IndexMappingImpl
}

func newPlain(tb testing.TB, source Source) *plain {
	tb.Helper()
	queue := api.NewAnalysisQueue(analysts)
	defer queue.Close()
	index, err := scorch.NewScorch(scorch.Name, map[string]any{"path": ""}, queue)
	if err == nil {
		err = index.Open()
	}
	x := &plain{index, mapping.NewIndexMapping()}
	batch := api.NewBatch()
	for _, it := range source.Items {
		doc := document.NewDocument(Name(it))
		text := it.Server + " " + it.Ref.Name + " " + string(it.Raw)
		if err == nil {
			err = x.mapping.MapDocument(doc, map[string]string{"text": text})
		}
		batch.Update(doc)
	}
	if err == nil {
		err = index.Batch(batch)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func (x *plain) rank(ctx context.Context) rank {
	return func(text string) (ids []string, err error) {
		err = withReader(x.index, func(reader api.IndexReader) error {
			searcher, err := query.NewMatchQuery(text).Searcher(ctx, reader, x.mapping, blevesearch.SearcherOptions{})
			if err != nil {
				return err
			}
			defer func() { _ = searcher.Close() }()
			best := collector.NewTopNCollector(15, 0, blevesearch.SortOrder{&blevesearch.SortScore{Desc: true}})
			if err := best.Collect(ctx, searcher, reader); err != nil {
				return err
			}
			for _, hit := range best.Results() {
				ids = append(ids, hit.ID)
			}
			return nil
		})
		return ids, err
	}
}

// heap is the memory in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkRetrieval prints a table of quality, time and memory of the search
// and of the plain one, by data set. MCPPROXY_RETRIEVAL names a folder with more
// sets than the repository holds.
func BenchmarkRetrieval(b *testing.B) {
	folder := os.Getenv("MCPPROXY_RETRIEVAL")
	if folder == "" {
		folder = keptData
	}
	for b.Loop() {
		fmt.Printf("\nset\ttools\tqueries\tsearch\t%s\tp50_us\tp99_us\tbuild_ms\theap_kib\n", figureNames)
		for _, set := range retrievalSets() {
			source, here := retrievalSource(b, folder, set.tools...)
			if !here {
				continue
			}
			print := func(name string, build func() (rank, func() error)) {
				before, start := heap(), time.Now()
				rank, done := build()
				built := time.Since(start)
				grown := heap() - before
				f, times := set.evaluate(b, folder, rank)
				if err := done(); err != nil {
					b.Error(err)
				}
				fmt.Printf("%s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\n", set.name, len(source.Items), f.queries, name, f.row(),
					times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds(), built.Milliseconds(), grown>>10)
			}
			print("mcpproxy", func() (rank, func() error) {
				x, err := Open(b.Context(), source, Options{})
				if err != nil {
					b.Fatal(err)
				}
				return rankBy(b.Context(), x), x.Close
			})
			print("plain", func() (rank, func() error) {
				x := newPlain(b, source)
				return x.rank(b.Context()), x.index.Close
			})
		}
	}
}
