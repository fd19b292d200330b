package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

// review returns what is known of a server's items. A server of which nothing is
// known is started for it, and one that is held is started each time, for this
// alone.
func (c *core) review(ctx context.Context, a *app, server *config.Server) ([]policy.Reviewed, error) {
	switch {
	case server.Err != nil:
		return nil, server.Err
	case !server.Enabled:
		return nil, hinted("mcpproxy enable "+server.Name, "server %s is disabled", server.Name)
	case server.Quarantined:
		return c.inspect(ctx, a, server)
	}
	failed, err := c.introduce(ctx, server.Name)
	if err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return nil, unreachable(failed[0])
	}
	return c.reviewKnown(ctx, a, server)
}

// reviewKnown returns what is known of a server's items, and starts nothing.
func (c *core) reviewKnown(ctx context.Context, a *app, server *config.Server) ([]policy.Reviewed, error) {
	key := keyOf(server)
	if server.Quarantined {
		key.Fingerprint = "" // what it offered when it was not held counts no more
	} else {
		if err := c.openStore().Flush(ctx); err != nil {
			return nil, err
		}
		offered, err := c.reviewed.Offered(ctx, []store.Key{key})
		if err != nil {
			return nil, err
		}
		events, err := c.reviewed.Judge(ctx, catalog.NewSnapshot(offered))
		if err != nil {
			return nil, err
		}
		c.judged(a.hushed(), events, nil)
	}
	return c.reviewed.Review(ctx, []store.Key{key})
}

// inspect starts a held server in private, reads what it offers, stops it, and
// keeps what a person is about to be shown: when the server is released, that is
// what was approved.
func (c *core) inspect(ctx context.Context, a *app, server *config.Server) ([]policy.Reviewed, error) {
	folder := filepath.Join(c.cfg.Load().DataDir, logFolder)
	log := filepath.Join(folder, server.Name+".log")
	begin := int64(0)
	if info, err := os.Stat(log); err == nil {
		begin = info.Size()
	}
	set := upstream.Open(ctx, upstream.Options{
		Servers:  []config.Server{*server},
		Env:      a.env(),
		Store:    func() *store.DB { return nil }, // nothing of it is known to anybody else
		LogDir:   folder,
		StartDir: filepath.Join(c.cfg.Load().DataDir, "starts"),
		Guard:    a.self().guard,
		Mask:     maskForms,
		Version:  buildOf().Version,
		Warn:     a.hushed().warn, // the error says it
		Now:      a.Now,
	})
	probe, cancel := context.WithTimeout(ctx, checkLimit)
	status := set.Introduce(probe, server.Name)
	cancel()
	offered := set.Snapshot(ctx).Server(server.Name)
	set.Close(ctx)
	a.retell(server.Name, log, begin)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(status) != 1 || offered == nil || !offered.Known:
		if len(status) != 1 || status[0].Reason == "" {
			status = []upstream.Status{{Name: server.Name, Reason: "no answer within " + checkLimit.String()}}
		}
		return nil, unreachable(status[0])
	}
	events, err := c.reviewed.Inspected(ctx, offered)
	if errors.Is(err, auth.ErrNoStore) {
		a.warn("without a store, what is shown cannot be told from what the server offers later")
	} else if err != nil {
		return nil, err
	}
	c.judged(a.hushed(), events, nil)
	var forms []policy.Reviewed
	for _, kind := range catalog.Kinds() {
		for _, item := range offered.Items(kind) {
			forms = append(forms, c.reviewed.Look(item))
		}
	}
	return forms, nil
}

// retell prints what a server wrote to its stderr from an offset of its log on.
func (a *app) retell(server, path string, begin int64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return // it never got as far as to write anything
	}
	if begin > int64(len(text)) {
		begin = 0 // a new log was begun
	}
	for line := range strings.Lines(string(text[begin:])) {
		if _, said, ok := strings.Cut(strings.TrimRight(line, "\n"), "] stderr: "); ok {
			a.note("%s says: %s", server, reveal(said))
		}
	}
}
