package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"mcpproxy/mcp/catalog"
)

// TestNext changes a source at random again and again and wants the ranking of
// an index that was built at once.
func TestNext(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	source := invented(60)
	source.Servers = map[string]Server{}
	x, err := Open(t.Context(), source, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 40 {
		source = Source{slices.Clone(source.Items), maps.Clone(source.Servers)}
		at := r.IntN(len(source.Items))
		it := source.Items[at]
		switch r.IntN(6) {
		case 0:
			source.Items = slices.Delete(source.Items, at, at+1)
		case 1:
			source.Items[at] = tool(it.Server, it.Ref.Name, fmt.Sprintf("Bakes %d cakes or lists issues.", round))
		case 2:
			source.Items = append(source.Items, tool(it.Server, fmt.Sprintf("new_%d", round), "Create an invoice."))
		case 3:
			source.Items[at] = catalog.New(it.Ref, it.Raw, &catalog.Override{Name: "other", Description: fmt.Sprint("Exports notes ", round)})
		case 4:
			source.Servers[it.Server] = Server{Description: fmt.Sprint("All about invoices ", round)}
		case 5:
			source = shuffled(source)
		}
		next, err := x.Next(t.Context(), source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if same := next.Generation() == x.Generation(); same != (next == x) {
			t.Fatal("an index that did not change is another, or one that did is not")
		}
		fresh := open(t, source, Options{})
		for _, text := range []string{"create issue", "list an invoice", "bake cakes", "exprt notes", "server3", "thing 17"} {
			got, want := ranking(search(t, next, Query{Text: text})), ranking(search(t, fresh, Query{Text: text}))
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, %q: ranks\n%q\nbuilt at once\n%q", round, text, got, want)
			}
		}
		if next != x {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = next
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNextFiltersByTheNewAnnotations changes what is not searched, but filtered
// by.
func TestNextFiltersByTheNewAnnotations(t *testing.T) {
	source := Source{Items: noise()}
	x := open(t, source, Options{})
	changed := Source{Items: slices.Clone(source.Items)}
	it := changed.Items[0]
	changed.Items[0] = catalog.New(it.Ref, it.Raw, &catalog.Override{Annotations: []byte(`{"readOnlyHint":true}`)})
	next, err := x.Next(t.Context(), changed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := names(search(t, next, Query{Text: "read file", ReadOnly: true})); len(got) != 1 {
		t.Errorf("of read-only tools it finds %q", got)
	}
}

// BenchmarkNext is what a changed tool of a small index costs.
func BenchmarkNext(b *testing.B) {
	source := benchSource(b, Small)
	x := open(b, source, Options{})
	changed := Source{slices.Clone(source.Items), source.Servers}
	changed.Items[7] = tool(changed.Items[7].Server, changed.Items[7].Ref.Name, "Something else.")
	for b.Loop() {
		next, err := x.Next(b.Context(), changed, Options{})
		if err != nil {
			b.Fatal(err)
		}
		_ = next.Close()
	}
}
