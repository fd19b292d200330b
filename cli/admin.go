package cli

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/router"
)

// admin carries out what clients ask of the configuration over MCP. It edits the
// file, and the core learns of it as of any other edit.
type admin struct {
	app  *app
	core *core
}

// management are the built-in tools about servers and profiles, for the session
// of a core. changed is called when the client may see something else.
func (c *core) management(a *app, changed func()) *router.Management {
	return router.NewManagement(router.ManagementOptions{
		Admin:    &admin{a.hushed(), c},
		Gate:     c.gate,
		Who:      c.who,
		Enabled:  func() bool { return !c.cfg.Load().DisableManagement },
		ReadOnly: func() bool { return c.cfg.Load().ReadOnlyMode },
		Servers:  func() []string { return serverNames(c.cfg.Load()) },
		Profiles: func() (names []string) {
			for _, p := range c.cfg.Load().Profiles {
				names = append(names, p.Name)
			}
			return names
		},
		MaxResult: func() int { return c.cfg.Load().MaxResultSizeChars },
		Mask:      c.withoutSecrets,
		Record:    func(d router.Deed) { c.recorder.Add(deedRecord(d)) },
		Changed:   changed,
	})
}

// withoutSecrets takes out of JSON the secrets that the configuration holds or
// refers to, as far as they are known, and what has the form of one.
func (c *core) withoutSecrets(answer json.RawMessage) json.RawMessage {
	known := c.set.Secrets()
	cfg := c.cfg.Load()
	for i := range cfg.Servers {
		known = append(known, cfg.Servers[i].Secrets()...)
	}
	// A string that only looks random is more often the hash of an item.
	return activity.NewMasker(known, config.SecretName).Redact(answer, func(kind string) bool { return kind == activity.HighEntropy })
}

// deedRecord is the record of what was done or refused through a built-in tool.
// The arguments are not kept: they may hold secrets that nobody knows as such.
func deedRecord(d router.Deed) activity.Record {
	r := activity.Record{
		Kind: activity.Refusal, Status: activity.Rejected, Server: d.Server, Tool: d.Tool, Error: d.Error,
		Caller: string(d.Caller.Kind), Token: d.Caller.Token, RequestID: string(d.ID),
	}
	switch d.Kind {
	case router.ConfigChanged:
		r.Kind, r.Status = activity.Config, activity.Success
	case router.QuarantineChanged:
		r.Kind, r.Status = activity.Quarantine, activity.Blocked
	case router.DeedForbidden:
		r.Status = activity.Blocked
	}
	if d.Session != nil {
		r.Session, r.Client = d.Session.ID(), d.Session.Client().Name
	}
	if d.Operation != "" {
		r.Notes = append(r.Notes, "operation "+d.Operation)
	}
	if d.Note != "" {
		r.Notes = append(r.Notes, d.Note)
	}
	return r
}

// Servers implements router.Admin.
func (m *admin) Servers(ctx context.Context) ([]router.ServerState, error) {
	cfg, err := m.app.config()
	if err != nil {
		return nil, err
	}
	list, err := m.standings(ctx, cfg)
	if err != nil {
		return nil, err
	}
	states := make([]router.ServerState, len(list))
	for i, s := range list {
		states[i] = stateShown(s)
	}
	return states, nil
}

// standings is that of the app with the store of the core.
func (m *admin) standings(ctx context.Context, cfg *config.Config) ([]standing, error) {
	db := m.core.openStore()
	rows, err := db.Servers(ctx)
	if err != nil {
		return nil, err
	}
	cfg.SkipRecursion(m.app.own())
	list := make([]standing, len(cfg.Servers))
	for i := range cfg.Servers {
		server := &cfg.Servers[i]
		list[i] = standingOf(server, latest(rows, server.Name, server.Fingerprint()))
	}
	return list, nil
}

// stateShown is a server as a client is shown it. Of environment and headers only
// the names are: nobody knows which values are secrets.
func stateShown(s standing) router.ServerState {
	state := router.ServerState{
		Name: s.server.Name, State: s.state, Error: s.err, Target: target(s.server),
		Enabled: s.server.Enabled, Quarantined: s.server.Quarantined, Tags: s.server.Tags,
		EnabledTools: s.server.EnabledTools, DisabledTools: s.server.DisabledTools,
	}
	for name := range s.server.Env {
		state.Env = append(state.Env, name)
	}
	for name := range s.server.Headers {
		state.Headers = append(state.Headers, name)
	}
	slices.Sort(state.Env)
	slices.Sort(state.Headers)
	if !s.known.ListedAt.IsZero() {
		state.Tools = new(s.known.Counts.Tools)
	}
	return state
}

// settleMost bounds the wait for this process to act by what was written.
const settleMost = 3 * time.Second

// settled waits until this process acts by the entry that the file has now, so
// that what was held is held when the client is told so, and returns the state of
// the server; the zero one where it is gone.
func (m *admin) settled(ctx context.Context, name string) (router.ServerState, error) {
	cfg, err := m.app.config()
	if err != nil {
		return router.ServerState{}, err
	}
	wanted := cfg.Server(name)
	limit, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !inEffect(wanted, m.core.cfg.Load().Server(name)) {
		select {
		case <-tick.C:
			continue
		case <-limit.Done():
		}
		break // it takes effect when the file is next looked at
	}
	list, err := m.standings(ctx, cfg)
	if err != nil {
		return router.ServerState{}, err
	}
	for _, s := range list {
		if s.server.Name == name {
			return stateShown(s), nil
		}
	}
	return router.ServerState{}, nil
}

// inEffect reports whether two entries are one.
func inEffect(wanted, present *config.Server) bool {
	if wanted == nil || present == nil {
		return wanted == present
	}
	return wanted.Fingerprint() == present.Fingerprint() && wanted.Quarantined == present.Quarantined && wanted.Enabled == present.Enabled &&
		slices.Equal(wanted.DisabledTools, present.DisabledTools) && slices.Equal(wanted.EnabledTools, present.EnabledTools)
}

// server is the entry of a name.
func (m *admin) server(name string) (*config.Config, *config.Server, error) {
	cfg, err := m.app.config()
	if err != nil {
		return nil, nil, err
	}
	cfg.SkipRecursion(m.app.own())
	server := cfg.Server(name)
	if server == nil {
		return nil, nil, noServer(cfg, name)
	}
	return cfg, server, nil
}

// Items implements router.Admin.
func (m *admin) Items(ctx context.Context, name string) ([]router.ReviewItem, error) {
	_, server, err := m.server(name)
	if err != nil {
		return nil, err
	}
	forms, err := m.core.reviewKnown(ctx, m.app, server)
	if err != nil {
		return nil, err
	}
	items := make([]router.ReviewItem, len(forms))
	for i, f := range forms {
		items[i] = router.ReviewItem{Ref: f.Item.Ref, Status: f.Status, Offered: f.Offered, Definition: f.Item.Raw}
		if f.Item.Raw != nil {
			items[i].Hash = f.Item.Fingerprint()
		}
		items[i].Disabled = f.Item.Kind == catalog.Tool && !mayTool(server, f.Item.Name)
	}
	return items, nil
}

// mayTool reports whether enabled_tools and disabled_tools let a tool be used.
func mayTool(s *config.Server, tool string) bool {
	if s.EnabledTools != nil {
		return slices.Contains(s.EnabledTools, tool)
	}
	return !slices.Contains(s.DisabledTools, tool)
}

// Block implements router.Admin.
func (m *admin) Block(ctx context.Context, ref catalog.Ref, who string) error {
	_, err := m.core.reviewed.Block(ctx, ref, who)
	return err
}

// Restart implements router.Admin.
func (m *admin) Restart(ctx context.Context, name string) error {
	_, server, err := m.server(name)
	switch {
	case err != nil:
		return err
	case server.Quarantined:
		return &router.Forbidden{Text: "server " + name + " is quarantined and runs nowhere; a person reviews it: " + policy.ReviewCommand(catalog.Ref{Server: name})}
	case !server.Enabled:
		return hinted("mcpproxy enable "+name, "server %s is disabled and runs nowhere", name)
	}
	return m.core.openStore().RequestRestart(ctx, name, m.app.Now())
}

// Refresh implements router.Admin.
func (m *admin) Refresh(ctx context.Context, name string) error {
	if err := m.Restart(ctx, name); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	for _, status := range m.core.set.Introduce(limit, name) {
		if status.Err != nil {
			return unreachable(status)
		}
	}
	return nil
}
