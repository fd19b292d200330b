package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/router"
	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// audience is whom a core works for.
type audience struct {
	session *wire.Session // nil for a command
	mode    string
	who     holder
}

// ofCommand is for the user who typed a command.
func ofCommand() audience { return audience{mode: commandMode} }

// core is the wired program between a client and the servers.
type core struct {
	cfg    atomic.Pointer[config.Config]
	mode   string
	set    *upstream.Set
	gate   *policy.Gate
	search *router.Search
	router *router.Router
	who    *auth.Identity

	reviewed *policy.Approvals
	recorder *activity.Recorder

	instance  string      // this process in the store; "" for a command
	joined    chan string // holds one: the hub that serves this process
	openStore func() *store.DB
}

// compose wires the packages together for one session: store, servers, gate,
// mode. Nothing is opened and no server is started before it is needed. A command
// has its servers for itself. The core is to be closed.
func (a *app) compose(ctx context.Context, cfg *config.Config, audience audience) *core {
	a.admit(cfg)
	c := &core{mode: audience.mode, openStore: sync.OnceValue(func() *store.DB { return a.openStore(ctx, cfg) })}
	c.cfg.Store(cfg)
	options := upstream.Options{
		Servers:  usable(cfg),
		Env:      a.env(),
		Session:  audience.session,
		Store:    c.openStore,
		LogDir:   filepath.Join(cfg.DataDir, logFolder),
		StartDir: filepath.Join(cfg.DataDir, "starts"),
		Guard:    a.self().guard,
		Mask:     maskForms,
		Version:  buildOf().Version,
		Warn:     a.warn,
		Changed:  func() { c.router.Changed() },
		Now:      a.Now,
	}
	if audience.session != nil {
		a.share(&options, c, runtime.GOOS)
	}
	c.set = upstream.Open(ctx, options)
	c.reviewed = c.approvals(a)
	c.recorder = activity.Open(ctx, activity.Options{
		Store: c.openStore, Instance: c.instance, Mode: c.mode, Limits: limitsOf(cfg),
		Secrets: c.set.Secrets, SecretName: config.SecretName, Now: a.Now,
		OnError: once(func(err error) { a.warn("record activity: " + err.Error()) }),
	})
	c.gate = policy.NewGate(gated{c.set}, rules(cfg), policy.Options{
		Approvals: c.reviewed, Judged: func(events []policy.Event, err error) { c.judged(a, events, err) },
		Sanitise: c.sanitise, Record: c.recorder.Add, Now: a.Now,
	})
	c.who = a.identity(audience.who, c.openStore, cfg.DataDir)
	c.search = c.newSearch(a)
	c.router = c.newRouter(a)
	return c
}

// newRouter returns the mode that the client of the core is shown.
func (c *core) newRouter(a *app) *router.Router {
	options := router.Options{
		Mode: c.mode, Gate: c.gate, Callers: c.who, Settings: c.settings, Lists: lists{c.openStore}, Warn: a.warn,
		Search: c.search, Pages: c.pages(a),
	}
	if c.mode != modeRetrieve {
		return router.NewDirect(options)
	}
	options.Management = c.management(a, func() { c.router.Changed() })
	return router.NewRetrieve(options)
}

// settings are what the configuration now says of the modes.
func (c *core) settings() router.Settings {
	cfg := c.cfg.Load()
	return router.Settings{
		MaxName:         cfg.MaxToolNameLength,
		MaxResult:       cfg.MaxResultSizeChars,
		Deferred:        cfg.DirectToolResponseMode == "deferred",
		DirectTruncate:  cfg.DirectTruncate,
		ToolsLimit:      cfg.ToolsLimit,
		Compact:         cfg.ToolResponseMode == "compact",
		ResponseLimit:   cfg.ToolResponseLimit,
		LenientVariants: !cfg.StrictServerValidation,
		Servers:         serverNames(cfg),
		Anonymous:       !cfg.AdvertiseUpstreamServers,
	}
}

// serverNames are the names of all servers in the order of the configuration.
func serverNames(cfg *config.Config) (names []string) {
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	return names
}

// admit leaves out what leads back to this program, and says what is wrong with
// a configuration.
func (a *app) admit(cfg *config.Config) {
	cfg.SkipRecursion(a.own())
	for _, warning := range cfg.Warnings {
		a.warn(warning)
	}
	for _, s := range cfg.Servers {
		if s.Err != nil && s.Enabled && !slices.Contains(cfg.Warnings, s.Err.Error()) {
			a.warn(s.Err.Error())
		}
	}
}

// close stops the servers and closes the store.
func (c *core) close(ctx context.Context) {
	c.set.Close(ctx)
	c.recorder.Close()
	_ = c.search.Close() // it was only read
	// What could not be written is read from the servers again.
	_ = c.openStore().Close()
}

// openStore opens the shared store; nil where it cannot be used, which is said
// once, as is the first write that fails. A file that is no database is moved
// aside.
func (a *app) openStore(ctx context.Context, cfg *config.Config) *store.DB {
	var said sync.Once
	db, err := store.Open(ctx, filepath.Join(cfg.DataDir, storeFile), store.Options{
		Now:    a.Now,
		Mended: a.warn,
		OnError: func(err error) {
			if !errors.Is(err, context.Canceled) { // the program ends
				said.Do(func() {
					a.warn("write to the store: " + err.Error() + "; the next start will not know what was to be kept")
				})
			}
		},
	})
	if err == nil {
		return db
	}
	if unusable := new(store.UnusableError); errors.As(err, &unusable) {
		a.warn(unusable.Error() + "; going on without it")
		return nil
	}
	a.warn("open the store: " + err.Error() + "; going on without it")
	return nil
}

// maskForms masks what is a secret by its form: keys of the known providers, agent
// tokens, private keys.
func maskForms(text string) string { return activity.NewMasker(nil, nil).Text(text) }

// once is a function that does something at its first call only.
func once(do func(error)) func(error) {
	var first sync.Once
	return func(err error) { first.Do(func() { do(err) }) }
}

// usable are the servers that may run.
func usable(cfg *config.Config) []config.Server {
	var servers []config.Server
	for _, s := range cfg.Servers {
		if s.Enabled && !s.Quarantined && s.Err == nil {
			servers = append(servers, s)
		}
	}
	return servers
}

// rules translates the configuration for the gate.
func rules(cfg *config.Config) policy.Rules {
	r := policy.Rules{Servers: map[string]policy.Rule{}, Profiles: map[string]policy.Profile{}, Total: limit(cfg.Limits)}
	for _, p := range cfg.Profiles {
		tier := catalog.Destructive
		if p.MaxTier != "" {
			tier = catalog.ParseTier(p.MaxTier)
		}
		r.Profiles[p.Name] = policy.Profile{Servers: p.Servers, Tier: tier}
	}
	for _, s := range cfg.Servers {
		if _, taken := r.Servers[s.Name]; taken {
			continue // of two entries of one name the first counts
		}
		r.Servers[s.Name] = policy.Rule{
			Alias:         s.Alias,
			Invalid:       s.Err,
			Disabled:      !s.Enabled,
			Quarantined:   s.Quarantined,
			EnabledTools:  s.EnabledTools,
			DisabledTools: s.DisabledTools,
			Unannotated:   catalog.ParseTier(s.UnannotatedTools),
			HideResources: !s.ExposeResources,
			HidePrompts:   !s.ExposePrompts,
			Limit:         limit(s.Limits),
		}
	}
	return r
}

func limit(l config.Limits) policy.Limit {
	return policy.Limit{Concurrent: l.MaxConcurrentRequests, Queue: l.QueueSize, Timeout: l.QueueTimeout}
}

// gated shows the Set to the gate, which knows nothing of package upstream.
type gated struct{ *upstream.Set }

// Do implements policy.Upstreams.
func (g gated) Do(ctx context.Context, r policy.Request) (json.RawMessage, *wire.Error) {
	return g.Set.Do(ctx, upstream.Request(r))
}

// Start implements policy.Upstreams.
func (g gated) Start(r policy.Request, done func(json.RawMessage, *wire.Error)) (func(error), bool) {
	return g.Set.Start(upstream.Request(r), done)
}

// Subscribe implements policy.Upstreams.
func (g gated) Subscribe(ctx context.Context, r policy.Request, uri string) (json.RawMessage, *wire.Error) {
	return g.Set.Subscribe(ctx, upstream.Request(r), uri)
}

// Unsubscribe implements policy.Upstreams.
func (g gated) Unsubscribe(ctx context.Context, r policy.Request, uri string) (json.RawMessage, *wire.Error) {
	return g.Set.Unsubscribe(ctx, upstream.Request(r), uri)
}

// lists keeps rendered lists in the store.
type lists struct{ open func() *store.DB }

// Get implements router.Lists.
func (l lists) Get(ctx context.Context, key string) json.RawMessage {
	// What cannot be read is rendered again.
	body, _ := l.open().List(ctx, key)
	return body
}

// Put implements router.Lists.
func (l lists) Put(key string, body json.RawMessage) {
	// What cannot be kept is rendered again.
	_ = l.open().Later(func(ctx context.Context, tx *store.Tx) error { return tx.PutList(ctx, key, body) })
}
