package index

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"mcpproxy/mcp/catalog"
)

// TestMain is a process of its own that searches, where it is called so: it
// takes the folder and the query from its arguments and writes its ranking.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "search" {
		os.Exit(searchProcess(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// granted is a lease that is always to be had.
func granted(context.Context) (func(), bool) { return func() {}, true }

// refused is a lease that another process holds.
func refused(context.Context) (func(), bool) { return nil, false }

func item(server string, kind catalog.Kind, name string, members map[string]any) *catalog.Item {
	all := map[string]any{"name": name}
	for member, value := range members {
		all[member] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return catalog.New(catalog.Ref{Server: server, Kind: kind, Name: name}, raw, nil)
}

func tool(server, name, description string) *catalog.Item {
	return item(server, catalog.Tool, name, map[string]any{"description": description})
}

// invented are tools with texts that depend on nothing but their number.
func invented(n int) Source {
	verbs := []string{"create", "list", "delete", "update", "search", "export", "merge"}
	nouns := []string{"issue", "invoice", "calendar event", "repository", "photo", "playlist", "container", "ticket", "note"}
	source := Source{}
	for i := range n {
		verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
		source.Items = append(source.Items, item(fmt.Sprintf("server%d", i%23), catalog.Tool, fmt.Sprintf("%s_thing_%d", verb, i), map[string]any{
			"description": fmt.Sprintf("%s a %s. Number %d of many.", verb, noun, i%50),
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{
				fmt.Sprintf("param%d", i%9): map[string]any{"type": "string", "description": "what to " + verb},
			}},
		}))
	}
	return source
}

// open gives an index that the test closes.
func open(tb testing.TB, source Source, o Options) *Index {
	tb.Helper()
	x, err := Open(tb.Context(), source, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

func search(tb testing.TB, x *Index, q Query) Result {
	tb.Helper()
	if q.Limit == 0 {
		q.Limit = 15
	}
	result, err := x.Search(tb.Context(), q)
	if err != nil {
		tb.Fatalf("search %.80q: %v", q.Text, err)
	}
	return result
}

func names(result Result) []string {
	list := make([]string, len(result.Hits))
	for i, hit := range result.Hits {
		list[i] = Name(hit.Item)
	}
	return list
}

// ranking is a result to the last bit of its scores.
func ranking(result Result) []string {
	list := []string{fmt.Sprint(result.Total)}
	for _, hit := range result.Hits {
		list = append(list, fmt.Sprintf("%s %s %x", hit.Item.Kind, Name(hit.Item), hit.Score))
	}
	return list
}

func searchProcess(folder, query string) int {
	x, err := Open(context.Background(), shuffled(invented(700)), Options{Folder: folder, Lease: refused})
	if err == nil && !x.InFolder() {
		err = fmt.Errorf("the folder was not used")
	}
	var result Result
	if err == nil {
		result, err = x.Search(context.Background(), Query{Text: query, Limit: 100})
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(ranking(result))
	}
	if err == nil {
		err = x.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// shuffled is the same source in another order.
func shuffled(s Source) Source {
	items := slices.Clone(s.Items)
	slices.Reverse(items)
	return Source{items, s.Servers}
}

// odd is a definition as each kind of item.
func odd(raw, name string) []*catalog.Item {
	var items []*catalog.Item
	for _, kind := range catalog.Kinds() {
		items = append(items, catalog.New(catalog.Ref{Server: "s", Kind: kind, Name: name}, []byte(raw), &catalog.Override{Name: raw}))
	}
	return items
}
