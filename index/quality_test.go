package index

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

// retrievalData is the folder of data sets; others than those kept here are
// measured where they lie.
func retrievalData() string {
	if folder := os.Getenv("MCPPROXY_RETRIEVAL"); folder != "" {
		return folder
	}
	return "testdata/retrieval"
}

type retrievalTool struct {
	Server            string `json:"server"`
	ServerDescription string `json:"serverDescription"`
	Name              string `json:"name"`
}

type retrievalQuery struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Text     string     `json:"text"`
	Relevant []string   `json:"relevant"`
	Groups   [][]string `json:"groups"`
}

// needs are the lists of which any member will do.
func (q retrievalQuery) needs() [][]string {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	var needs [][]string
	for _, id := range q.Relevant {
		needs = append(needs, []string{id})
	}
	return needs
}

// eachLine decodes the objects of a file, a line each; .gz is unpacked.
func eachLine[T any](tb testing.TB, path string, do func(T, json.RawMessage)) bool {
	tb.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			tb.Fatal(err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		raw := json.RawMessage(slices.Clone(lines.Bytes()))
		var value T
		if err := json.Unmarshal(raw, &value); err != nil {
			tb.Fatal(err)
		}
		do(value, raw)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return true
}

// retrievalSource reads the tools of data sets; false = not here.
func retrievalSource(tb testing.TB, files ...string) (Source, bool) {
	tb.Helper()
	source := Source{Servers: map[string]Server{}}
	seen := map[string]bool{}
	for _, file := range files {
		here := eachLine(tb, filepath.Join(retrievalData(), file), func(tool retrievalTool, raw json.RawMessage) {
			if id := tool.Server + ":" + tool.Name; seen[id] {
				return
			} else {
				seen[id] = true
			}
			source.Servers[tool.Server] = Server{Description: tool.ServerDescription}
			source.Items = append(source.Items, catalog.New(catalog.Ref{Server: tool.Server, Kind: catalog.Tool, Name: tool.Name}, raw, nil))
		})
		if !here {
			return Source{}, false
		}
	}
	return source, true
}

// figures are means over queries.
type figures struct {
	queries                              int
	hit1, hit3, hit5, rec5, rec10, rec15 float64
	mrr, ndcg                            float64
}

func (f *figures) add(q retrievalQuery, ids []string) {
	needs := q.needs()
	found := make([]bool, len(needs))
	first := 0
	gain := 0.0
	recall := map[int]float64{}
	for i, id := range ids {
		if slices.Contains(q.Relevant, id) && first == 0 {
			first = i + 1
		}
		for n, need := range needs {
			if !found[n] && slices.Contains(need, id) {
				found[n] = true
				if i < 10 {
					gain += 1 / math.Log2(float64(i+2))
				}
				for _, k := range []int{5, 10, 15} {
					if i < k {
						recall[k] += 1 / float64(len(needs))
					}
				}
				break
			}
		}
	}
	ideal := 0.0
	for i := range min(len(needs), 10) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	hit := func(k int) float64 {
		if first > 0 && first <= k {
			return 1
		}
		return 0
	}
	f.queries++
	f.hit1 += hit(1)
	f.hit3 += hit(3)
	f.hit5 += hit(5)
	f.rec5 += recall[5]
	f.rec10 += recall[10]
	f.rec15 += recall[15]
	if first > 0 {
		f.mrr += 1 / float64(first)
	}
	f.ndcg += gain / ideal
}

// floors are far below what is reached: they catch a broken search, not a
// changed one.
func floors() map[string]float64 {
	return map[string]float64{
		"mcpproxy45": 0.75, "livemcp": 0.62, "mcpbig": 0.40, "metatool": 0.54, "bfcl": 0.70, "sealtools": 0.86,
	}
}

// TestRetrievalQuality measures the search on labelled queries and logs a table
// (go test -v). MCPPROXY_RETRIEVAL names a folder with more data sets.
func TestRetrievalQuality(t *testing.T) {
	sets := []struct {
		name  string
		tools []string
	}{
		{"mcpproxy45", []string{"mcpproxy45/tools.jsonl"}},
		{"livemcp", []string{"livemcp/tools.jsonl"}},
		{"metatool", []string{"metatool/tools.jsonl"}},
		{"bfcl", []string{"bfcl/tools.jsonl"}},
		{"sealtools", []string{"sealtools/tools.jsonl"}},
		{"mcpbig", []string{"livemcp/tools.jsonl", "toucan/tools.jsonl.gz"}},
	}
	t.Log("set\ttools\tqueries\thit1\thit3\thit5\trecall5\trecall10\trecall15\tmrr\tndcg10\tp50_us\tp99_us\tbuild_ms")
	measured := 0
	for _, set := range sets {
		source, here := retrievalSource(t, set.tools...)
		if !here {
			continue
		}
		start := time.Now()
		x, err := Open(t.Context(), source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		built := time.Since(start)
		var sum figures
		var times []time.Duration
		queries := set.name
		if queries == "mcpbig" {
			queries = "livemcp"
		}
		eachLine(t, filepath.Join(retrievalData(), queries, "queries.dev.jsonl"), func(q retrievalQuery, _ json.RawMessage) {
			start := time.Now()
			result, err := x.Search(t.Context(), Query{Text: q.Text, Limit: 15})
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, time.Since(start))
			ids := make([]string, len(result.Hits))
			for i, hit := range result.Hits {
				ids[i] = Name(hit.Item)
			}
			sum.add(q, ids)
		})
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		measured++
		slices.Sort(times)
		n := float64(sum.queries)
		t.Logf("%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d", set.name, len(source.Items), sum.queries,
			sum.hit1/n, sum.hit3/n, sum.hit5/n, sum.rec5/n, sum.rec10/n, sum.rec15/n, sum.mrr/n, sum.ndcg/n,
			times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds(), built.Milliseconds())
		if sum.ndcg/n < floors()[set.name] {
			t.Errorf("%s: nDCG@10 is %.3f, below %.2f", set.name, sum.ndcg/n, floors()[set.name])
		}
	}
	if measured == 0 {
		t.Fatal("no data set was found")
	}
}
