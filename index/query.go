package index

import (
	"encoding/json"
	"errors"
	"slices"

	"mcpproxy/mcp/catalog"
)

// Limits of a query.
const (
	// MaxLimit is the most hits a search returns.
	MaxLimit = 100
	// maxQuery is how much of a query is read, in bytes.
	maxQuery = 16 << 10
	// maxTerms is how many different words of a query count.
	maxTerms = 128
)

// ErrClosed is what a search of a closed Index ends with.
var ErrClosed = errors.New("the search index is closed")

// Query asks for the items that fit a text. Only items that pass all filters
// are ranked, counted and returned.
type Query struct {
	// Text may be anything: words, a name, "server:tool", "server__tool". No
	// character in it is an operator. Its first 16 KiB are read.
	Text string
	// Limit is the most hits, 1 to MaxLimit; others are brought into this range.
	Limit int
	// Servers are the names of the servers to search, empty = all.
	Servers []string
	// Kinds are the kinds to search, empty = tools.
	Kinds []catalog.Kind
	// Allow says whether the caller may use an item, nil = all. It is asked at
	// most once for each item that fits, and must not search this Index.
	Allow func(*catalog.Item) bool
	// ReadOnly, NotDestructive and ClosedWorld leave out tools by their
	// annotations, where missing hints count by the defaults of MCP.
	ReadOnly, NotDestructive, ClosedWorld bool
	// Explain fills Hit.Explanation, which costs about as much as the search.
	Explain bool
}

// Hit is an item that fits.
type Hit struct {
	Item *catalog.Item
	// Score is comparable within one Result only.
	Score float64
	// Explanation is nil unless it was asked for.
	Explanation *Explanation
	// exact = the query is its name.
	exact bool
}

// Result is what fits a Query.
type Result struct {
	// Hits come by falling score, then rising name (see Name), then kind.
	Hits []Hit
	// Total counts all items that fit and pass the filters.
	Total int
}

// filter decides once about each item that fits.
type filter struct {
	query   *Query
	servers map[string]bool
	kinds   []catalog.Kind
	items   []*catalog.Item
	verdict []byte // by item: 0 = not asked, then pass or fail
}

const (
	pass byte = 1
	fail byte = 2
)

func newFilter(q *Query, items []*catalog.Item, verdict []byte) *filter {
	f := &filter{query: q, items: items, kinds: q.Kinds, verdict: verdict}
	if len(f.kinds) == 0 {
		f.kinds = []catalog.Kind{catalog.Tool}
	}
	if len(q.Servers) > 0 {
		f.servers = map[string]bool{}
		for _, name := range q.Servers {
			f.servers[name] = true
		}
	}
	return f
}

// passes reports whether an item may be in the result.
func (f *filter) passes(item uint32) bool {
	if f.verdict[item] == 0 {
		f.verdict[item] = fail
		if f.judge(f.items[item]) {
			f.verdict[item] = pass
		}
	}
	return f.verdict[item] == pass
}

func (f *filter) judge(it *catalog.Item) bool {
	q := f.query
	switch {
	case !slices.Contains(f.kinds, it.Kind), f.servers != nil && !f.servers[it.Server]:
		return false
	case it.Kind == catalog.Tool && q.ReadOnly && it.Tier(catalog.Destructive) != catalog.Read,
		it.Kind == catalog.Tool && q.NotDestructive && it.Tier(catalog.Destructive) == catalog.Destructive,
		it.Kind == catalog.Tool && q.ClosedWorld && openWorld(it):
		return false
	}
	return q.Allow == nil || q.Allow(it)
}

// openWorld follows openWorldHint, which is true where it is missing.
func openWorld(it *catalog.Item) bool {
	var hints struct {
		OpenWorld lenient[*bool] `json:"openWorldHint"`
	}
	_ = json.Unmarshal(it.Annotations(), &hints)
	return hints.OpenWorld.value == nil || *hints.OpenWorld.value
}
