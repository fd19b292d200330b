package cli

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"time"

	"mcpproxy/index"
	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/router"
)

const (
	// indexFolder is the name of the folder of search indexes in the data folder.
	indexFolder = "index"
	// indexLease is how long one process may take to write an index.
	indexLease = 2 * time.Minute
)

// newSearch returns the search over what the servers of a core offer.
func (c *core) newSearch(a *app) *router.Search {
	return router.NewSearch(router.SearchOptions{
		Gate: c.gate, Settings: c.settings, Usage: c.usage, Index: c.indexOptions(a),
	})
}

// indexOptions say where the index may lie, and who has a say in the ranking.
func (c *core) indexOptions(a *app) index.Options {
	cfg := c.cfg.Load()
	options := index.Options{
		Folder: filepath.Join(cfg.DataDir, indexFolder),
		Lease:  func(ctx context.Context) (func(), bool) { return c.leaseIndex(ctx, a) },
		Warn:   once(func(err error) { a.warn("search: " + err.Error() + "; the search goes on without it") }),
	}
	if wanted := cfg.SearchEmbedding; wanted.URL != "" {
		options.ScorerWeight = float64(wanted.Weight) / 100
		options.Scorer = endpoint(sync.OnceValues(func() (*index.Embedding, error) {
			resolved, err := wanted.Resolve(a.env(), cfg.Path)
			return index.NewEmbedding(index.EmbeddingOptions{URL: resolved.URL, Model: resolved.Model, Key: resolved.Key}), err
		}))
	}
	return options
}

// endpoint is an endpoint of embeddings, of which references are resolved when it
// is first asked.
type endpoint func() (*index.Embedding, error)

// Scores implements index.Scorer.
func (e endpoint) Scores(ctx context.Context, query string, items []*catalog.Item) ([]float64, error) {
	embedding, err := e()
	if err != nil {
		return nil, err
	}
	return embedding.Scores(ctx, query, items)
}

// leaseIndex asks for the right to write the search index, which one process has
// at a time.
func (c *core) leaseIndex(ctx context.Context, a *app) (release func(), held bool) {
	holder := c.instance
	if holder == "" {
		holder = rand.Text()
	}
	held, _, err := c.openStore().Acquire(ctx, indexFolder, holder, indexLease)
	if err != nil || !held {
		return nil, false // it is searched in memory
	}
	return func() {
		// A lease that is not given back expires.
		_ = c.openStore().Release(context.WithoutCancel(ctx), indexFolder, holder)
	}, true
}

// usage sums up the calls that a caller may know of: an agent of its own.
func (c *core) usage(ctx context.Context, caller auth.Caller) ([]router.Usage, error) {
	filter := activity.Filter{}
	if caller.Kind != auth.Admin {
		filter.Caller, filter.Token = string(caller.Kind), caller.Token
	}
	sums, err := activity.Summarize(ctx, c.openStore(), filter, false)
	list := make([]router.Usage, len(sums))
	for i, s := range sums {
		list[i] = router.Usage{Server: s.Server, Tool: s.Tool, Calls: s.Calls, Errors: s.Errors, P50: float64(s.P50.Microseconds()) / 1000}
	}
	return list, err
}
