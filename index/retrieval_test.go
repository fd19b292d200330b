package index

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

// keptData is the folder of the data sets that the repository holds.
const keptData = "testdata/retrieval"

// retrievalSet is a labelled data set: the files of its tools, and the folder of
// its queries.
type retrievalSet struct {
	name    string
	tools   []string
	queries string
}

func retrievalSets() []retrievalSet {
	return []retrievalSet{
		{"mcpproxy45", []string{"mcpproxy45/tools.jsonl"}, "mcpproxy45"},
		{"livemcp", []string{"livemcp/tools.jsonl"}, "livemcp"},
		{"metatool", []string{"metatool/tools.jsonl"}, "metatool"},
		{"bfcl", []string{"bfcl/tools.jsonl"}, "bfcl"},
		{"sealtools", []string{"sealtools/tools.jsonl"}, "sealtools"},
		{"mcpbig", []string{"livemcp/tools.jsonl", "toucan/tools.jsonl.gz"}, "livemcp"},
	}
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
func retrievalSource(tb testing.TB, folder string, files ...string) (Source, bool) {
	tb.Helper()
	source := Source{Servers: map[string]Server{}}
	seen := map[string]bool{}
	for _, file := range files {
		here := eachLine(tb, filepath.Join(folder, file), func(tool retrievalTool, raw json.RawMessage) {
			id := tool.Server + ":" + tool.Name
			if seen[id] {
				return
			}
			seen[id] = true
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

// mean divides the sums by the number of queries, in the order of figureNames.
func (f *figures) mean() []float64 {
	means := []float64{f.hit1, f.hit3, f.hit5, f.rec5, f.rec10, f.rec15, f.mrr, f.ndcg}
	for i := range means {
		means[i] /= float64(max(f.queries, 1))
	}
	return means
}

const figureNames = "hit1\thit3\thit5\trecall5\trecall10\trecall15\tmrr\tndcg10"

// row is the means as the cells of a table.
func (f *figures) row() string {
	var cells []string
	for _, mean := range f.mean() {
		cells = append(cells, strconv.FormatFloat(mean, 'f', 3, 64))
	}
	return strings.Join(cells, "\t")
}

// rank gives the ids of the best fifteen tools for a text.
type rank func(text string) ([]string, error)

// evaluate ranks for every query of a set; the times are sorted.
func (set retrievalSet) evaluate(tb testing.TB, folder string, rank rank) (f figures, times []time.Duration) {
	tb.Helper()
	eachLine(tb, filepath.Join(folder, set.queries, "queries.dev.jsonl"), func(q retrievalQuery, _ json.RawMessage) {
		start := time.Now()
		ids, err := rank(q.Text)
		if err != nil {
			tb.Fatal(err)
		}
		times = append(times, time.Since(start))
		f.add(q, ids)
	})
	slices.Sort(times)
	return f, times
}

// rankBy ranks as the product does.
func rankBy(ctx context.Context, x *Index) rank {
	return func(text string) ([]string, error) {
		result, err := x.Search(ctx, Query{Text: text, Limit: 15})
		ids := make([]string, len(result.Hits))
		for i, hit := range result.Hits {
			ids[i] = Name(hit.Item)
		}
		return ids, err
	}
}
