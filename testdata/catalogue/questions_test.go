package catalogue_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"mcpproxy/index"
	"mcpproxy/mcp/catalog"
	"mcpproxy/testdata/catalogue"
)

// The right tool is to be among the first five for nineteen of twenty questions.
// What is reached is held, so that no change of the search loses it unseen.
const (
	first = 5
	goal  = 19
	held  = 18
)

// TestQuestions asks what a person would ask. The questions and their answers
// were written from the list of the tools' names, before any search was made.
func TestQuestions(t *testing.T) {
	text, err := os.ReadFile("questions.json")
	if err != nil {
		t.Fatal(err)
	}
	var questions []struct {
		Question string
		Tools    []string // any of which is right
	}
	if err := json.Unmarshal(text, &questions); err != nil {
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
		if rank > 0 && rank <= first {
			answered++
		}
		t.Logf("%2d  %s", rank, q.Question)
	}
	t.Logf("%d of %d questions are answered among the first %d of %d tools", answered, len(questions), first, len(known))
	if answered < goal {
		t.Logf("short of the goal, which is %d", goal)
	}
	if answered < held || len(questions) != 20 {
		t.Errorf("%d of %d questions are answered, at least %d of 20 were before", answered, len(questions), held)
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
