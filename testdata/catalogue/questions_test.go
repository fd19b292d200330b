package catalogue_test

import (
	"slices"
	"testing"

	"mcpproxy/index"
	"mcpproxy/mcp/catalog"
	"mcpproxy/testdata/catalogue"
)

// TestQuestions asks what a person would ask.
func TestQuestions(t *testing.T) {
	questions, err := catalogue.Questions()
	if err != nil {
		t.Fatal(err)
	}
	x, known := openIndex(t)
	answered := 0
	for _, q := range questions {
		for _, tool := range q.Tools {
			if !known[tool] {
				t.Errorf("%q: there is no tool %s", q.Question, tool)
			}
		}
		result, err := x.Search(t.Context(), index.Query{Text: q.Question, Limit: index.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		rank := 1 + slices.IndexFunc(result.Hits, func(hit index.Hit) bool {
			return slices.Contains(q.Tools, index.Name(hit.Item))
		})
		if rank > 0 && rank <= catalogue.First {
			answered++
		}
		t.Logf("%2d  %s", rank, q.Question)
	}
	t.Logf("%d of %d questions are answered among the first %d of %d tools", answered, len(questions), catalogue.First, len(known))
	if answered < catalogue.Goal {
		t.Logf("short of the goal, which is %d", catalogue.Goal)
	}
	if answered < catalogue.Held || len(questions) != 20 {
		t.Errorf("%d of %d questions are answered, at least %d of 20 were before", answered, len(questions), catalogue.Held)
	}
}

// openIndex is the index of the whole catalogue, and the names of all tools in it.
func openIndex(t *testing.T) (*index.Index, map[string]bool) {
	t.Helper()
	about := map[string]string{}
	servers := catalogue.Load(t)
	known := map[string]bool{}
	for _, server := range servers {
		about[server.Name] = server.About
		for _, tool := range server.Tools {
			known[index.Name(tool)] = true
		}
	}
	x, err := index.Open(t.Context(), index.FromSnapshot(catalog.NewSnapshot(servers), about), index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x, known
}
