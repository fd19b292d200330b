package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/router"
	"mcpproxy/mcp/wire"
)

// Add implements router.Admin.
func (m *admin) Add(ctx context.Context, name string, entry json.RawMessage) (router.ServerState, error) {
	cfg, err := m.app.config()
	if err != nil {
		return router.ServerState{}, err
	}
	if err := onlyKeys(entry); err != nil {
		return router.ServerState{}, err
	}
	entry = wire.SetMember(entry, json.RawMessage("true"), "quarantined")
	alone, err := config.Parse(slices.Concat(json.RawMessage(`{"mcpServers":{"new":`), entry, json.RawMessage("}}")), m.app.loadOptions())
	if err != nil {
		return router.ServerState{}, err
	}
	if len(alone.Servers) != 1 || !alone.Servers[0].Quarantined {
		return router.ServerState{}, errors.New("the server would not be held")
	}
	if err := noNewReference(&config.Server{}, &alone.Servers[0]); err != nil {
		return router.ServerState{}, err
	}
	err = config.AddServer(ctx, cfg.Path, name, entry)
	if errors.Is(err, config.ErrServerExists) {
		return router.ServerState{}, fmt.Errorf("there is a server %q already; operation patch changes it", name)
	}
	if err != nil {
		return router.ServerState{}, err
	}
	return m.settled(ctx, name)
}

// Change implements router.Admin.
func (m *admin) Change(ctx context.Context, name string, patch json.RawMessage, whole bool) (router.ServerChange, error) {
	if err := onlyKeys(patch); err != nil {
		return router.ServerChange{}, err
	}
	return m.change(ctx, name, config.Patch{
		Make:  func(*config.Server) (json.RawMessage, error) { return patch, nil },
		Whole: whole,
	})
}

// DisableTool implements router.Admin.
func (m *admin) DisableTool(ctx context.Context, server, tool string) error {
	_, err := m.change(ctx, server, config.Patch{
		Make: func(before *config.Server) (json.RawMessage, error) {
			switch {
			case !mayTool(before, tool):
				return nil, nil
			case before.EnabledTools != nil:
				left := slices.DeleteFunc(slices.Clone(before.EnabledTools), func(t string) bool { return t == tool })
				return json.Marshal(map[string][]string{"enabled_tools": left})
			}
			return json.Marshal(map[string][]string{"disabled_tools": append(slices.Clone(before.DisabledTools), tool)})
		},
	})
	return err
}

// change patches an entry so that nothing is widened, and waits until it is in
// effect.
func (m *admin) change(ctx context.Context, name string, p config.Patch) (router.ServerChange, error) {
	cfg, err := m.app.config()
	if err != nil {
		return router.ServerChange{}, err
	}
	p.Hold, p.Check = true, notWider
	result, err := config.PatchServer(ctx, cfg.Path, name, p)
	if err != nil {
		return router.ServerChange{}, missing(cfg, name, err)
	}
	state, err := m.settled(ctx, name)
	return router.ServerChange{
		State: state,
		Keys:  changedKeys(&result.Before, &result.After),
		Held:  result.After.Quarantined && !result.Before.Quarantined,
	}, err
}

// Remove implements router.Admin.
func (m *admin) Remove(ctx context.Context, name string) error {
	cfg, err := m.app.config()
	if err != nil {
		return err
	}
	if err := missing(cfg, name, config.RemoveServer(ctx, cfg.Path, name)); err != nil {
		return err
	}
	_, err = m.settled(ctx, name)
	return err
}

// SetEnabled implements router.Admin.
func (m *admin) SetEnabled(ctx context.Context, name string, enabled bool) (router.ServerState, error) {
	return m.set(ctx, name, func(path string) error { return config.SetEnabled(ctx, path, name, enabled) })
}

// Hold implements router.Admin.
func (m *admin) Hold(ctx context.Context, name string) (router.ServerState, error) {
	return m.set(ctx, name, func(path string) error { return config.SetQuarantined(ctx, path, name, true) })
}

func (m *admin) set(ctx context.Context, name string, edit func(path string) error) (router.ServerState, error) {
	cfg, err := m.app.config()
	if err != nil {
		return router.ServerState{}, err
	}
	if err := missing(cfg, name, edit(cfg.Path)); err != nil {
		return router.ServerState{}, err
	}
	return m.settled(ctx, name)
}

// onlyKeys refuses keys that nobody sets over MCP. What they would change cannot
// be seen from an entry alone: a key that says the default may be wider than what
// the whole configuration says.
func onlyKeys(entry json.RawMessage) error {
	for key, value := range wire.Members(entry) {
		switch {
		case key == "quarantined" || !slices.ContainsFunc(entryKeys(), func(k entryKey) bool { return k.key == key }):
			return forbidden(key, "a person sets it in the configuration file")
		case (key == "expose_resources" || key == "expose_prompts") && string(value) != "false":
			return forbidden(key, "it can only be switched off")
		}
	}
	return nil
}

// notWider refuses a change after which more may be used than before, or that is
// a person's to make.
func notWider(before, after *config.Server) error {
	if err := noNewReference(before, after); err != nil {
		return err
	}
	if err := unchangedByPerson(before, after); err != nil {
		return err
	}
	switch {
	case before.Quarantined && !after.Quarantined:
		return forbidden("quarantined", "mcpproxy quarantine release "+before.Name)
	case after.Enabled && !before.Enabled:
		return forbidden("enabled", "use the operation enable")
	}
	return noNewTool(before, after)
}

func forbidden(key, how string) error {
	return &router.Forbidden{Text: fmt.Sprintf("%q cannot be set so over MCP: %s", key, how)}
}

// unchangedByPerson refuses a change of what only a person sets.
func unchangedByPerson(before, after *config.Server) error {
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"unannotated_tools", before.UnannotatedTools == after.UnannotatedTools},
		{"inherit_env", before.InheritEnv == after.InheritEnv},
		{"shared", before.Shared == after.Shared},
		{"alias", before.Alias == after.Alias},
		{"auto_approve_tool_changes", before.AutoApproveToolChanges == after.AutoApproveToolChanges},
		{"tool_overrides", reflect.DeepEqual(before.ToolOverrides, after.ToolOverrides)},
		{"isolation", reflect.DeepEqual(before.Isolation, after.Isolation)},
		{"oauth", reflect.DeepEqual(before.OAuth, after.OAuth)},
	} {
		if !k.same {
			return forbidden(k.key, "a person sets it in the configuration file")
		}
	}
	return nil
}

// noNewReference refuses a reference that a field has not had before: it would
// give the server a secret that nobody meant for it.
func noNewReference(before, after *config.Server) error {
	had := before.References()
	now := after.References()
	for _, field := range slices.Sorted(maps.Keys(now)) {
		for _, reference := range now[field] {
			if !slices.Contains(had[field], reference) {
				return &router.Forbidden{Text: fmt.Sprintf("%s: the reference %s cannot be added over MCP: a person writes it into the configuration file", field, reference)}
			}
		}
	}
	return nil
}

// noNewTool refuses a change of enabled_tools and disabled_tools after which a
// tool may be used that could not be before.
func noNewTool(before, after *config.Server) error {
	widened := false
	switch {
	case after.EnabledTools != nil:
		widened = slices.ContainsFunc(after.EnabledTools, func(tool string) bool { return !mayTool(before, tool) })
	case before.EnabledTools != nil:
		widened = true // all but a few may be used then
	default:
		widened = slices.ContainsFunc(before.DisabledTools, func(tool string) bool { return mayTool(after, tool) })
	}
	if widened {
		return &router.Forbidden{Text: "no tool can be enabled over MCP: a person changes enabled_tools and disabled_tools in the configuration file"}
	}
	return nil
}

// changedKeys are the keys of an entry that are not what they were.
func changedKeys(before, after *config.Server) (keys []string) {
	for _, k := range entryKeys() {
		if !reflect.DeepEqual(k.of(before), k.of(after)) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// entryKey is a key of an entry that an edit over MCP can change.
type entryKey struct {
	key string
	of  func(*config.Server) any
}

func entryKeys() []entryKey {
	return []entryKey{
		{"command", func(s *config.Server) any { return s.Command }},
		{"args", func(s *config.Server) any { return s.Args }},
		{"env", func(s *config.Server) any { return s.Env }},
		{"working_dir", func(s *config.Server) any { return s.WorkingDir }},
		{"url", func(s *config.Server) any { return s.URL }},
		{"headers", func(s *config.Server) any { return s.Headers }},
		{"protocol", func(s *config.Server) any { return s.Protocol }},
		{"quarantined", func(s *config.Server) any { return s.Quarantined }},
		{"tags", func(s *config.Server) any { return s.Tags }},
		{"enabled_tools", func(s *config.Server) any { return s.EnabledTools }},
		{"disabled_tools", func(s *config.Server) any { return s.DisabledTools }},
		{"expose_resources", func(s *config.Server) any { return s.ExposeResources }},
		{"expose_prompts", func(s *config.Server) any { return s.ExposePrompts }},
		{"reconnect_on_use", func(s *config.Server) any { return s.ReconnectOnUse }},
		{"health_check_interval", func(s *config.Server) any { return s.HealthCheckInterval }},
		{"tool_discovery_interval", func(s *config.Server) any { return s.ToolDiscoveryInterval }},
		{"init_timeout", func(s *config.Server) any { return s.InitTimeout }},
		{"call_tool_timeout", func(s *config.Server) any { return s.CallToolTimeout }},
		{"call_idle_timeout", func(s *config.Server) any { return s.CallIdleTimeout }},
		{"queue_timeout", func(s *config.Server) any { return s.QueueTimeout }},
		{"max_concurrent_requests", func(s *config.Server) any { return s.MaxConcurrentRequests }},
		{"queue_size", func(s *config.Server) any { return s.QueueSize }},
	}
}
