package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/mcp/catalog"
)

// noise are tools that have nothing to do with the questions of the tests.
func noise() []*catalog.Item {
	return []*catalog.Item{
		tool("files", "read_file", "Read the content of a file."),
		tool("files", "write_file", "Write a file."),
		tool("weather", "get_forecast", "Get the weather forecast for a city."),
		tool("github", "list_pull_requests", "List pull requests of a repository."),
		tool("db", "run_query", "Run a SQL query against the database."),
	}
}

func TestNamesInAnyStyle(t *testing.T) {
	cases := []struct {
		tools       []*catalog.Item
		query, want string
	}{
		{[]*catalog.Item{tool("hr", "work_start_task_attachment_upload", "begin")}, "work_upload_attachment", "hr:work_start_task_attachment_upload"},
		{[]*catalog.Item{tool("lark", "appTableRecord_search", "")}, "table record", "lark:appTableRecord_search"},
		{[]*catalog.Item{tool("crm", "addPerson", "")}, "addPerson", "crm:addPerson"},
		{[]*catalog.Item{tool("crm", "addPerson", "")}, "add person", "crm:addPerson"},
		{[]*catalog.Item{tool("crm", "addPerson", "")}, "add-person", "crm:addPerson"},
		{[]*catalog.Item{tool("m", "add", "Add two numbers."), tool("m", "address_book_lookup", "add add add"), tool("m", "address_book_update", "add")}, "add", "m:add"},
		{[]*catalog.Item{tool("github", "create_issue", "New issue."), tool("gitlab", "create_issue", "New issue.")}, "github__create_issue", "github:create_issue"},
		{[]*catalog.Item{tool("github", "create_issue", "New issue."), tool("gitlab", "create_issue", "New issue.")}, "gitlab:create_issue", "gitlab:create_issue"},
		{[]*catalog.Item{tool("github", "create_issue", "New issue."), tool("gitlab", "create_issue", "New issue.")}, "GITLAB:Create_Issue ", "gitlab:create_issue"},
		{[]*catalog.Item{tool("scan", "npmVulnerabilities", "")}, "npm vulnerability", "scan:npmVulnerabilities"},
		{[]*catalog.Item{tool("scan", "parseHTTPResponse2", "")}, "http response", "scan:parseHTTPResponse2"},
		{[]*catalog.Item{tool("x", "use", "Of all help.")}, "use", "x:use"},
		{[]*catalog.Item{tool("map", "地图搜索", "搜索地点")}, "地点 搜索", "map:地图搜索"},
		{[]*catalog.Item{tool("gh", "create_repository", "Create a repository.")}, "creat repositry", "gh:create_repository"},
		{[]*catalog.Item{tool("gh", "star", "Works with github projects.")}, "git hub projects", "gh:star"},
		{[]*catalog.Item{tool("shop", "remove_product", "")}, "delete products", "shop:remove_product"},
	}
	for _, c := range cases {
		t.Run(c.query, func(t *testing.T) {
			x := open(t, Source{Items: append(noise(), c.tools...)}, Options{})
			got := names(search(t, x, Query{Text: c.query}))
			if len(got) == 0 || got[0] != c.want {
				t.Errorf("%q finds %q, want %s first", c.query, got, c.want)
			}
		})
	}
}

func TestAliasAndOverride(t *testing.T) {
	it := tool("server-with-a-long-name", "op_17", "Does it.")
	it = catalog.New(it.Ref, it.Raw, &catalog.Override{Name: "paint_fence", Description: "Paint a fence in a colour."})
	source := Source{Items: append(noise(), it), Servers: map[string]Server{it.Server: {Prefix: "short", Description: "House and garden."}}}
	x := open(t, source, Options{})
	for _, text := range []string{"short__paint_fence", "short:op_17", "fence colour", "op_17", "garden"} {
		if got := names(search(t, x, Query{Text: text})); len(got) == 0 || got[0] != Name(it) {
			t.Errorf("%q finds %q", text, got)
		}
	}
	if got := search(t, x, Query{Text: "does it"}); len(got.Hits) > 0 && got.Hits[0].Item == it {
		t.Error("the overridden description is still searched")
	}
}

func TestWhereWordsCount(t *testing.T) {
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"zebra": map[string]any{"type": "string", "description": "an okapi"},
		"outer": map[string]any{"type": "object", "properties": map[string]any{"giraffe": map[string]any{"enum": []any{"gnu", 4}}}},
	}}
	odd := item("zoo", catalog.Tool, "t", map[string]any{"inputSchema": schema, "title": "Walrus", "annotations": 7, "description": []any{1}})
	x := open(t, Source{Items: append(noise(), odd)}, Options{})
	for _, word := range []string{"zebra", "okapis", "giraffes", "gnu", "walrus", "zoo"} {
		if got := names(search(t, x, Query{Text: word})); len(got) == 0 || got[0] != "zoo:t" {
			t.Errorf("%q finds %q", word, got)
		}
	}
	for _, word := range []string{"properties", "object"} {
		if got := names(search(t, x, Query{Text: word})); slices.Contains(got, "zoo:t") {
			t.Errorf("%q, a word of the schema, finds it", word)
		}
	}
}

func TestKinds(t *testing.T) {
	items := append(noise(),
		item("docs", catalog.Resource, "file:///manual/penguin.md", map[string]any{"name": "Penguin manual", "uri": "file:///manual/penguin.md"}),
		item("docs", catalog.Template, "file:///{penguin}", map[string]any{"name": "Any penguin", "uriTemplate": "file:///{penguin}"}),
		item("docs", catalog.Prompt, "ask_penguin", map[string]any{"arguments": []any{map[string]any{"name": "beak"}, 4}}),
		tool("docs", "feed_penguin", ""))
	x := open(t, Source{Items: items}, Options{})
	for _, c := range []struct {
		kinds []catalog.Kind
		want  int
	}{{nil, 1}, {[]catalog.Kind{catalog.Tool}, 1}, {[]catalog.Kind{catalog.Resource, catalog.Template}, 2}, {catalog.Kinds(), 4}} {
		if got := search(t, x, Query{Text: "penguin", Kinds: c.kinds}); got.Total != c.want {
			t.Errorf("%v: %q", c.kinds, names(got))
		}
	}
	if got := search(t, x, Query{Text: "beak", Kinds: catalog.Kinds()}); got.Total != 1 {
		t.Errorf("an argument of a prompt finds %q", names(got))
	}
	read := Query{Text: "penguin", Kinds: catalog.Kinds(), ReadOnly: true, NotDestructive: true, ClosedWorld: true}
	if got := search(t, x, read); got.Total != 3 {
		t.Errorf("the filters for tools leave %q", names(got))
	}
}

func TestFilters(t *testing.T) {
	with := func(name string, annotations any) *catalog.Item {
		return item("a", catalog.Tool, name, map[string]any{"description": "walk the dog", "annotations": annotations})
	}
	type hints = map[string]any
	x := open(t, Source{Items: []*catalog.Item{
		with("none", nil), with("odd", "yes"), with("odd_hint", hints{"openWorldHint": "no"}),
		with("read", hints{"readOnlyHint": true}), with("write", hints{"destructiveHint": false}),
		with("closed", hints{"readOnlyHint": true, "openWorldHint": false}), with("destroy", hints{"destructiveHint": true}),
		tool("b", "other", "walk the dog"),
	}}, Options{})
	for _, c := range []struct {
		name  string
		query Query
		want  string
	}{
		{"all", Query{}, "a:closed a:destroy a:none a:odd a:odd_hint a:read a:write b:other"},
		{"read only", Query{ReadOnly: true}, "a:closed a:read"},
		{"not destructive", Query{NotDestructive: true}, "a:closed a:read a:write"},
		{"closed world", Query{ClosedWorld: true}, "a:closed"},
		{"servers", Query{Servers: []string{"b", "c"}}, "b:other"},
		{"no such server", Query{Servers: []string{"c"}}, ""},
		{"allow", Query{Allow: func(it *catalog.Item) bool { return it.Ref.Name == "none" }}, "a:none"},
		{"nothing allowed", Query{Allow: func(*catalog.Item) bool { return false }}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.query.Text = "dog"
			result := search(t, x, c.query)
			got := names(result)
			slices.Sort(got)
			if strings.Join(got, " ") != c.want || result.Total != len(got) || result.Hits == nil {
				t.Errorf("got %q of %d, want %s", got, result.Total, c.want)
			}
		})
	}
}

// TestNothingLeaks asks for what only a hidden item has.
func TestNothingLeaks(t *testing.T) {
	hidden := tool("secret", "launch_rocket", "Launch a rocket.")
	x := open(t, Source{Items: append(noise(), hidden, tool("open", "packet", "Send a packet."))}, Options{})
	asked := map[string]int{}
	allow := func(it *catalog.Item) bool {
		asked[Name(it)]++
		return it != hidden
	}
	for _, text := range []string{"launch_rocket", "secret:launch_rocket", "rockt", "roket", "launchrocket", "pocket"} {
		clear(asked)
		result := search(t, x, Query{Text: text, Allow: allow, Explain: true})
		for _, hit := range result.Hits {
			if hit.Item == hidden {
				t.Errorf("%q finds the hidden item", text)
			}
			for _, w := range hit.Explanation.Words {
				if w.Term == "rocket" || w.Term == "launch" {
					t.Errorf("%q: the explanation tells %q", text, w.Term)
				}
			}
		}
		for name, times := range asked {
			if times > 1 {
				t.Errorf("%q: allow was asked %d times about %s", text, times, name)
			}
		}
	}
	if got := names(search(t, x, Query{Text: "pocket", Allow: allow})); len(got) != 1 || got[0] != "open:packet" {
		t.Errorf("a hidden word keeps a visible one from being guessed: %q", got)
	}
}

func TestAnyText(t *testing.T) {
	x := open(t, Source{Items: noise()}, Options{})
	for _, text := range []string{
		"", "   ", `"unbalanced`, "+", "-", "a:b:c", "/[/", `\`, "*", "name:*", "~2", "^9", "\x00", "\xff\xfe", "'", "’s", "s's's",
		strings.Repeat("x", 10_000), strings.Repeat("weather ", 10_000), strings.Repeat("’", 5_000), strings.Repeat("é", 9_000),
		strings.Repeat("createIssueFor", 2_000), strings.Repeat("天", 9_000), "🦊🦊", "İstanbul", "ﬁle", "e\u0301te\u0301", ":", "__", "files:", ":read_file", "files__",
	} {
		result := search(t, x, Query{Text: text})
		if result.Hits == nil || len(result.Hits) > result.Total {
			t.Errorf("%.40q: %d hits of %d", text, len(result.Hits), result.Total)
		}
		for _, hit := range result.Hits {
			if math.IsNaN(hit.Score) || math.IsInf(hit.Score, 0) || hit.Score <= 0 {
				t.Errorf("%.40q: score %v", text, hit.Score)
			}
		}
	}
}

func TestOddItems(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 5_000) + "{}" + strings.Repeat("}}", 5_000)
	raws := []string{
		`{}`, `null`, `[]`, `"x"`, `7`, `{"name":4}`, `{"description":"` + strings.Repeat("long ", 200_000) + `"}`,
		`{"inputSchema":` + deep + `}`, `{"inputSchema":{"properties":[1]}}`, `{"inputSchema":{"properties":{"a":true,"b":null}}}`,
		`{"inputSchema":{"enum":[1,null,{}]}}`, `{"inputSchema":"x"}`, `not json`, ``, `{"description":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	source := Source{}
	for i, raw := range raws {
		source.Items = append(source.Items, catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: fmt.Sprintf("odd%d", i)}, []byte(raw), nil))
	}
	source.Items = append(source.Items, tool("s", strings.Repeat("n", 70_000), ""), tool("s", "\xff\n\x00", ""), tool("s", "plain", "a penguin"))
	x := open(t, source, Options{})
	if got := names(search(t, x, Query{Text: "penguin"})); len(got) != 1 || got[0] != "s:plain" {
		t.Errorf("beside odd items the plain one is found as %q", got)
	}
	if got := names(search(t, x, Query{Text: "odd3"})); len(got) == 0 || got[0] != "s:odd3" {
		t.Errorf("the odd item is found as %q", got)
	}
	empty := open(t, Source{}, Options{Folder: t.TempDir(), Lease: granted})
	if got := search(t, empty, Query{Text: "anything"}); got.Total != 0 || got.Hits == nil {
		t.Errorf("an empty index has %v", got)
	}
}

func TestLimitAndOrder(t *testing.T) {
	x := open(t, invented(280), Options{})
	for limit, want := range map[int]int{-1: 1, 1: 1, 7: 7, 100: 100, 1e9: 100} {
		if got := search(t, x, Query{Text: "thing", Limit: limit}); len(got.Hits) != want || got.Total != 280 {
			t.Errorf("limit %d: %d hits of %d", limit, len(got.Hits), got.Total)
		}
	}
	result := search(t, x, Query{Text: "create an issue thing", Limit: 100})
	for i := 1; i < len(result.Hits); i++ {
		a, b := result.Hits[i-1], result.Hits[i]
		if a.Score < b.Score || a.Score == b.Score && Name(a.Item) >= Name(b.Item) {
			t.Errorf("%s (%v) stands before %s (%v)", Name(a.Item), a.Score, Name(b.Item), b.Score)
		}
	}
}

// TestExplanation adds up.
func TestExplanation(t *testing.T) {
	x := open(t, Source{Items: append(noise(), tool("github", "create_issue", "Create an issue."))}, Options{})
	ways := map[string]bool{}
	for _, text := range []string{"create issue", "github:create_issue", "weathr forecast for the town", "delete the file", "read file in git hub", "readfile", "Read the file. Then get the weather forecast."} {
		for _, hit := range search(t, x, Query{Text: text, Explain: true}).Hits {
			e := hit.Explanation
			sum := 0.0
			for _, w := range e.Words {
				sum += w.Score
				ways[w.Via] = true
				if len(w.Fields) == 0 || w.Word == "" {
					t.Errorf("%q: %+v", text, w)
				}
			}
			if got := sum*e.Coverage*e.Naming + e.Clause + e.Pairs + e.Exact; math.Abs(got-hit.Score) > 1e-9*hit.Score {
				t.Errorf("%q: %s has score %v, explained %v", text, Name(hit.Item), hit.Score, got)
			}
		}
	}
	for _, via := range []string{viaWord, viaSynonym, viaTypo, viaPart} {
		if !ways[via] {
			t.Errorf("no word was answered as %s", via)
		}
	}
}

// TestSentences holds that an item that answers one of two sentences whole
// stands before one that has half of each.
func TestSentences(t *testing.T) {
	x := open(t, Source{Items: append(noise(),
		tool("a", "x1", "Paints fences green."), tool("b", "x2", "Bakes apple cakes."), tool("c", "x3", "Green cakes."),
	)}, Options{})
	result := search(t, x, Query{Text: "Paint the fence green. Then bake apple cakes!", Explain: true})
	if got := names(result); len(got) < 2 || slices.Contains(got[:2], "c:x3") {
		t.Errorf("found %q", got)
	}
	for _, hit := range result.Hits[:2] {
		if hit.Explanation.Clause <= 0 {
			t.Errorf("%s has nothing for its sentence: %+v", Name(hit.Item), hit.Explanation)
		}
	}
	for _, hit := range search(t, x, Query{Text: "Paint the fence", Explain: true}).Hits {
		if hit.Explanation.Clause != 0 {
			t.Error("a single sentence counts twice")
		}
	}
}

// TestServerSaid holds that a query that says a server's name whole prefers it
// to one of which it says half.
func TestServerSaid(t *testing.T) {
	x := open(t, Source{Items: append(noise(), tool("blue-harbor", "go", "Goes."), tool("blue", "go", "Goes."), tool("harbor", "halt", ""))}, Options{})
	if got := names(search(t, x, Query{Text: "halt blue"})); got[0] != "harbor:halt" {
		t.Errorf("halt blue finds %q", got)
	}
	if got := names(search(t, x, Query{Text: "blue ships"})); got[0] != "blue:go" {
		t.Errorf("blue ships finds %q", got)
	}
}

// TestSynonyms holds that words are found by their stems, in both directions.
func TestSynonyms(t *testing.T) {
	all, s := synonyms(), newStemmer()
	for _, c := range all.classes {
		for _, word := range c.words {
			for _, other := range c.words {
				term, stem := s.stem(word), s.stem(other)
				if term != stem && !slices.ContainsFunc(all.of(term), func(have synonym) bool { return have.term == stem }) {
					t.Errorf("%s does not find %s", word, other)
				}
			}
		}
	}
	if got := all.of("xyzzy"); got != nil {
		t.Errorf("a word of no class finds %v", got)
	}
	if got := all.of(s.stem("deleting")); len(got) == 0 || got[0] != (synonym{s.stem("remove"), synonymWeight}) {
		t.Errorf("deleting finds %v", got)
	}
}

func TestVocabularyKnowsTheFields(t *testing.T) {
	v := newVocabulary(map[string]uint8{"a": 1, "ab": 2, "abc": 4, "天": 128, "zz": 255})
	for term, want := range map[string]uint8{"a": 1, "ab": 2, "abc": 4, "天": 128, "zz": 255, "": 0, "aa": 0, "b": 0, "zzz": 0, "a 01": 0} {
		if got := v.has(term); got != want {
			t.Errorf("%q is in fields %x, want %x", term, got, want)
		}
	}
	if got := newVocabulary(nil).has("a"); got != 0 {
		t.Errorf("an empty vocabulary has a in %x", got)
	}
}

func TestSpans(t *testing.T) {
	text := "Searches repositories, and finds a createIssue’s end"
	var got []string
	for _, span := range Spans("search repository issue", text) {
		got = append(got, text[span.Start:span.End])
	}
	if want := []string{"Searches", "repositories", "finds", "Issue"}; !slices.Equal(got, want) {
		t.Errorf("marked %q, want %q", got, want)
	}
}

func TestCloseAndCancel(t *testing.T) {
	x := open(t, invented(400), Options{Folder: t.TempDir(), Lease: granted})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				if _, err := x.Search(t.Context(), Query{Text: "create issue", Limit: 5}); errors.Is(err, ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	search(t, x, Query{Text: "issue"})
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, invented(400), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open of a cancelled context: %v", err)
	}
}

// TestRareSynonym: in a small catalogue each item holds what its server says of
// itself, and a word of that is not rare any more. A synonym that is must not win
// against it.
func TestRareSynonym(t *testing.T) {
	source := Source{
		Items: []*catalog.Item{
			tool("notes", "read_note", "Read the text of one note."), tool("notes", "ask", "Ask a question and return the answer."),
			tool("notes", "list_notes", "List all notes."), tool("notes", "write_note", "Write a note."),
		},
		Servers: map[string]Server{"notes": {Description: "Read and write notes."}},
	}
	x := open(t, source, Options{})
	for _, query := range []string{"read a note", "read one note"} {
		result, err := x.Search(t.Context(), Query{Text: query, Limit: 1})
		if err != nil || len(result.Hits) != 1 || result.Hits[0].Item.Ref.Name != "read_note" {
			t.Errorf("%s: %+v, %v", query, result.Hits, err)
		}
	}
}
