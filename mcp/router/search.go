package router

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"mcpproxy/index"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
)

// SearchOptions say what a Search works with.
type SearchOptions struct {
	Gate     *policy.Gate
	Settings func() Settings
	// Index says where a large index may lie.
	Index index.Options
	// Usage sums up the calls that the caller may know of; nil = nothing is known.
	Usage func(ctx context.Context, caller auth.Caller) ([]Usage, error)
}

// Search finds what the servers offer for who asks. It makes its index when it
// first needs one, and is to be closed.
type Search struct {
	options SearchOptions
	finder  *finder
}

// NewSearch returns a Search that has read nothing yet.
func NewSearch(options SearchOptions) *Search {
	return &Search{options: options, finder: newFinder(options.Index)}
}

// Close gives the index back once the searches under way have ended.
func (s *Search) Close() error { return s.finder.close() }

// Query is what a caller searches for.
type Query struct {
	// Text is not blank.
	Text string
	// Limit is the most tools in the answer.
	Limit int
	// Compact has signatures in the answer in place of schemas.
	Compact bool
	// Servers are the only ones to search, none = all in reach.
	Servers []string
	// Kinds are what is searched for, none = tools.
	Kinds []catalog.Kind
	// ReadOnly, NotDestructive and ClosedWorld leave out tools whose annotations,
	// with the defaults of MCP, say otherwise.
	ReadOnly, NotDestructive, ClosedWorld bool
	// Stats, Debug, Disabled and Risk ask for more than the tools; Explain for why
	// the tool of that name stands where it does.
	Stats, Debug, Disabled, Risk bool
	Explain                      string
	// MaxName is how long public names are for the client.
	MaxName int
	// Still has no server started: of one of which nothing is known nothing is found.
	Still bool
}

// Find answers a query with what the caller may use. Servers of which nothing is
// known are started and given a bounded time to say what they offer.
func (s *Search) Find(ctx context.Context, caller auth.Caller, q Query) (*Answer, error) {
	began := time.Now()
	gate := s.options.Gate
	if !q.Still {
		gate.Settle(ctx)
	}
	snapshot := gate.Catalog(ctx)
	f := &finding{s: s, caller: caller, q: q, snapshot: snapshot}
	f.resolveServers()
	result, err := f.run(ctx, f.permitted)
	if err != nil {
		return nil, err
	}
	if err := f.raiseNamed(ctx, &result); err != nil {
		return nil, err
	}
	a := &Answer{Query: clipped(q.Text, maxEcho), Total: result.Total, limit: s.options.Settings().ResponseLimit}
	for _, hit := range f.ranked(result.Hits) {
		a.entries = append(a.entries, s.entry(hit, f.public(hit.Item), q.Compact))
	}
	if err := f.more(ctx, a); err != nil {
		return nil, err
	}
	if q.Debug {
		if a.debug, err = f.debug(ctx, began); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// finding is one search under way.
type finding struct {
	s        *Search
	caller   auth.Caller
	q        Query
	snapshot *catalog.Snapshot
	servers  []string // the only ones to search, by their names
	strange  []string // named by the caller, and none of its servers
}

// scope is what is ranked for the caller.
func (f *finding) scope() scope {
	gate := f.s.options.Gate
	if gate.Explained(f.caller) {
		return scope{snapshot: f.snapshot}
	}
	return scope{f.snapshot, gate.View(f.caller), f.permitted}
}

// permitted reports whether the caller may use an item.
func (f *finding) permitted(item *catalog.Item) bool { return f.s.options.Gate.May(f.caller, item) }

// public is the name of an item in lists.
func (f *finding) public(item *catalog.Item) string {
	if item.Kind != catalog.Prompt {
		return ""
	}
	return f.snapshot.Names(catalog.Prompt, f.q.MaxName).Public(item)
}

// run ranks what fits, passes the query's filters, and is allowed.
func (f *finding) run(ctx context.Context, allow func(*catalog.Item) bool, change ...func(*index.Query)) (index.Result, error) {
	q := index.Query{
		Text: f.q.Text, Limit: f.q.Limit, Servers: f.servers, Kinds: f.q.Kinds, Allow: allow,
		ReadOnly: f.q.ReadOnly, NotDestructive: f.q.NotDestructive, ClosedWorld: f.q.ClosedWorld,
	}
	for _, c := range change {
		c(&q)
	}
	if len(f.q.Servers) > 0 && len(f.servers) == 0 {
		return index.Result{}, ctx.Err()
	}
	return f.s.finder.search(ctx, f.scope(), q)
}

// resolveServers takes the servers of the query for those of the configuration.
// One that is out of reach is taken for one that is not there.
func (f *finding) resolveServers() {
	for _, wanted := range f.q.Servers {
		found := ""
		for _, server := range f.snapshot.Servers() {
			if (server.Name == wanted || server.Prefix == wanted) && f.s.options.Gate.Reaches(f.caller, server.Name) {
				found = server.Name
				break
			}
		}
		switch {
		case found == "":
			f.strange = append(f.strange, shorten(wanted))
		case !slices.Contains(f.servers, found):
			f.servers = append(f.servers, found)
		}
	}
}

// scoreUnit is how many parts of one a score is told in.
const scoreUnit = 100

// ranked are hits by the score that is told, then by name.
func (f *finding) ranked(hits []index.Hit) []index.Hit {
	for i := range hits {
		hits[i].Score = math.Round(hits[i].Score * scoreUnit)
	}
	slices.SortStableFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(fullName(a.Item), fullName(b.Item)))
	})
	return hits[:min(len(hits), max(f.q.Limit, 1))]
}

// raiseNamed puts the tool first of which the query is the public name: that may
// hold a hash, which is no word of the tool.
func (f *finding) raiseNamed(ctx context.Context, result *index.Result) error {
	item := f.snapshot.Names(catalog.Tool, f.q.MaxName).Lookup(strings.TrimSpace(f.q.Text))
	if item == nil || len(result.Hits) > 0 && result.Hits[0].Item.Ref == item.Ref {
		return nil
	}
	named, err := f.only(ctx, item)
	if err != nil || len(named.Hits) == 0 {
		return err
	}
	hit := named.Hits[0]
	others := slices.DeleteFunc(result.Hits, func(h index.Hit) bool { return h.Item.Ref == item.Ref })
	if len(others) == len(result.Hits) {
		result.Total++
	}
	if len(others) > 0 {
		hit.Score = max(hit.Score, others[0].Score+1)
	}
	result.Hits = append([]index.Hit{hit}, others...)
	return nil
}

// only is the search for one tool by its name, with the filters of the query.
func (f *finding) only(ctx context.Context, item *catalog.Item) (index.Result, error) {
	allow := func(other *catalog.Item) bool { return other.Ref == item.Ref && f.permitted(other) }
	return f.run(ctx, allow, func(q *index.Query) { q.Text = fullName(item) })
}

// maxEcho is how many characters of a query an answer repeats.
const maxEcho = 500

// clipped is a text cut after so many characters.
func clipped(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
