package index

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

// embeddings is an endpoint to which texts with "sea" mean one thing and all
// others another.
func embeddings(t *testing.T, answer func(w http.ResponseWriter, texts []string) bool) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "m" ||
			r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("asked %s %v %v", r.URL, r.Header, err)
		}
		if answer(w, request.Input) {
			return
		}
		var data []any
		for i, text := range slices.Backward(request.Input) {
			vector := []float64{0, 3}
			if strings.Contains(text, "sea") {
				vector = []float64{2, 0}
			}
			data = append(data, map[string]any{"index": i, "embedding": vector})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	return server
}

func boats() []*catalog.Item {
	return []*catalog.Item{
		tool("a", "boat_list", "List boats of a lake."), tool("b", "boat_show", "Shows boats, all boats, on the sea."),
		tool("c", "boat", "A boat, of the air."),
	}
}

func TestEmbedding(t *testing.T) {
	var texts atomic.Int64
	server := embeddings(t, func(_ http.ResponseWriter, asked []string) bool {
		texts.Add(int64(len(asked)))
		return false
	})
	source := Source{Items: append(boats(), noise()...)}
	scorer := NewEmbedding(EmbeddingOptions{URL: server.URL + "/v1", Model: "m", Key: "k"})
	words := open(t, source, Options{})
	both := open(t, source, Options{Scorer: scorer, ScorerWeight: 1, Warn: func(err error) { t.Error(err) }})
	query := Query{Text: "list of boats at sea", Explain: true, Limit: 2}
	if got := names(search(t, words, query)); got[0] != "a:boat_list" && got[0] != "b:boat_show" {
		t.Fatalf("by words %q", got)
	}
	result := search(t, both, query)
	if got := names(result); len(got) != 2 || got[0] != "b:boat_show" {
		t.Errorf("with embeddings %q", got)
	}
	if e := result.Hits[0].Explanation; e.Second <= 0 {
		t.Errorf("the explanation lacks the second score: %+v", e)
	}
	before := texts.Load()
	search(t, both, query)
	if asked := texts.Load() - before; asked != 1 {
		t.Errorf("the second search embedded %d texts, want the query alone", asked)
	}
	if got := names(search(t, both, Query{Text: "c:boat"})); got[0] != "c:boat" {
		t.Errorf("an exact name finds %q", got)
	}
}

func TestEmbeddingFails(t *testing.T) {
	never := make(chan struct{})
	for name, answer := range map[string]func(w http.ResponseWriter, texts []string) bool{
		"status":  func(w http.ResponseWriter, _ []string) bool { w.WriteHeader(500); return true },
		"no JSON": func(w http.ResponseWriter, _ []string) bool { _, _ = w.Write([]byte("<html>")); return true },
		"too few": func(w http.ResponseWriter, _ []string) bool { _, _ = w.Write([]byte(`{"data":[]}`)); return true },
		"of no length": func(w http.ResponseWriter, _ []string) bool {
			_, _ = w.Write([]byte(`{"data":[{"embedding":[0,0]}]}`))
			return true
		},
		"of no item": func(w http.ResponseWriter, _ []string) bool {
			_, _ = w.Write([]byte(`{"data":[{"index":99,"embedding":[1]}]}`))
			return true
		},
		"no answer": func(http.ResponseWriter, []string) bool { <-never; return true },
	} {
		t.Run(name, func(t *testing.T) {
			server := embeddings(t, answer)
			if name == "no answer" {
				defer close(never)
			}
			warned := 0
			o := Options{Warn: func(error) { warned++ }, ScorerWeight: 1}
			words := open(t, Source{Items: boats()}, o)
			o.Scorer = NewEmbedding(EmbeddingOptions{URL: server.URL + "/v1/embeddings", Model: "m", Key: "k"})
			both := open(t, Source{Items: boats()}, o)
			both.second.patience = 200 * time.Millisecond
			want := ranking(search(t, words, Query{Text: "list of boats"}))
			for range 2 {
				if got := ranking(search(t, both, Query{Text: "list of boats"})); !slices.Equal(got, want) {
					t.Errorf("without an answer %q, want %q", got, want)
				}
			}
			if warned != 1 {
				t.Errorf("warned %d times, want once", warned)
			}
		})
	}
}
