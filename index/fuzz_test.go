package index

import (
	"math"
	"testing"
	"unicode/utf8"
)

// FuzzSearch holds that any text has a result, in order, explained, and the
// same twice.
func FuzzSearch(f *testing.F) {
	for _, text := range append(benchQueries(), "", `"`, "a:b:c", "server1:list_thing_1", "github__create_issue", "’s", "İ", "天地", "\xff", "fooBARBaz12") {
		f.Add(text, 10)
	}
	x := open(f, Source{Items: append(noise(), invented(100).Items...)}, Options{})
	f.Fuzz(func(t *testing.T, text string, limit int) {
		result := search(t, x, Query{Text: text, Limit: limit, Explain: true})
		if len(result.Hits) > MaxLimit || len(result.Hits) > result.Total {
			t.Fatalf("%d hits of %d", len(result.Hits), result.Total)
		}
		for i, hit := range result.Hits {
			if math.IsNaN(hit.Score) || math.IsInf(hit.Score, 0) || hit.Score <= 0 || i > 0 && result.Hits[i-1].Score < hit.Score {
				t.Fatalf("score %v", hit.Score)
			}
		}
		if again := search(t, x, Query{Text: text, Limit: limit}); len(again.Hits) != len(result.Hits) || again.Total != result.Total {
			t.Fatal("the second answer is another")
		}
		for _, w := range split(text) {
			if w.start < 0 || w.end > len(text) || w.start >= w.end || utf8.RuneCountInString(w.text) == 0 {
				t.Fatalf("word %q at %d to %d", w.text, w.start, w.end)
			}
		}
		for _, span := range Spans(text, text) {
			if span.Start < 0 || span.End > len(text) || span.Start >= span.End {
				t.Fatalf("span %v", span)
			}
		}
	})
}

// FuzzEntry holds that any definition can be indexed and asked for.
func FuzzEntry(f *testing.F) {
	f.Add(`{"description":"a. b","inputSchema":{"properties":{"a":{"enum":["x"]}}}}`, "name")
	f.Add(`{"title":4,"arguments":[{"name":"x"}]}`, "file:///x")
	f.Fuzz(func(_ *testing.T, raw, name string) {
		s := newStemmer()
		for _, it := range odd(raw, name) {
			e := newEntry(s, it, Server{Prefix: name, Description: raw})
			e.bleve(0)
			exactness(raw, it, Server{Prefix: name})
		}
	})
}
