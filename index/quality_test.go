package index

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/retrieval.tsv anew")

// allowance is how much nDCG@10 of a data set may fall below the table.
const allowance = 0.005

// TestRetrievalQuality holds the search to the figures of testdata/retrieval.tsv
// on the data sets that the repository holds.
func TestRetrievalQuality(t *testing.T) {
	const table = "testdata/retrieval.tsv"
	var got bytes.Buffer
	fmt.Fprintf(&got, "set\tqueries\t%s\n", figureNames)
	ndcg := map[string]float64{}
	for _, set := range retrievalSets() {
		source, here := retrievalSource(t, keptData, set.tools...)
		if !here {
			continue
		}
		f, _ := set.evaluate(t, keptData, rankBy(t.Context(), open(t, source, Options{})))
		fmt.Fprintf(&got, "%s\t%d\t%s\n", set.name, f.queries, f.row())
		means := f.mean()
		ndcg[set.name] = means[len(means)-1]
	}
	t.Logf("measured\n%s", &got)
	if *update {
		if err := os.WriteFile(table, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(raw)), "\n")[1:]
	if len(rows) != len(ndcg) || len(rows) == 0 {
		t.Errorf("%d data sets are here, %d in the table", len(ndcg), len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(row, "\t")
		want, err := strconv.ParseFloat(cells[len(cells)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if now := ndcg[cells[0]]; now < want-allowance {
			t.Errorf("%s: nDCG@10 fell from %.3f to %.3f; if that is meant, write the table anew with -update", cells[0], want, now)
		}
	}
}
