package policy

import (
	"slices"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Profile is a named subset of the servers.
type Profile struct {
	Servers []string
	Tier    catalog.Tier // the highest that may be used
}

// Explained reports whether a caller is told why something is refused. To all
// others what they may not use does not exist.
func (g *Gate) Explained(caller auth.Caller) bool {
	return caller.Kind == auth.Admin && caller.Profile == ""
}

// Tier is the tier that the use of an item needs; reading is enough for
// anything that is no tool.
func (g *Gate) Tier(item *catalog.Item) catalog.Tier {
	if item.Kind != catalog.Tool {
		return catalog.Read
	}
	return item.Tier(g.law.Load().Servers[item.Server].Unannotated)
}

// Reaches reports whether a server is in the scope of the caller: of its
// credential and of its profile, if it has one. A profile that does not exist
// holds no server.
func (g *Gate) Reaches(caller auth.Caller, server string) bool {
	return caller.InScope(server) &&
		(caller.Profile == "" || slices.Contains(g.law.Load().Profiles[caller.Profile].Servers, server))
}

// MaxTier is the highest tier of tools that the caller may use.
func (g *Gate) MaxTier(caller auth.Caller) catalog.Tier {
	if caller.Profile == "" {
		return caller.Tier
	}
	return min(caller.Tier, g.law.Load().Profiles[caller.Profile].Tier)
}

// May reports whether the caller can see and use the item.
func (g *Gate) May(caller auth.Caller, item *catalog.Item) bool {
	// What is out of scope must cost no more than what is not there at all.
	return g.Reaches(caller, item.Server) && g.Tier(item) <= g.MaxTier(caller) && g.reason(caller, item) == nil
}

// reason makes the words of a refusal when they are asked for: to a caller that
// is told nothing the time to make them would tell that there is something.
type reason func() *wire.Error

func because(format string, args ...any) reason {
	return func() *wire.Error { return refused(format, args...) }
}

// error is nil for no reason.
func (r reason) error() *wire.Error {
	if r == nil {
		return nil
	}
	return r()
}

// Refusal says why a caller cannot use an item, nil if it can. It is for callers
// to whom this is Explained.
func (g *Gate) Refusal(caller auth.Caller, item *catalog.Item) *wire.Error {
	return g.reason(caller, item).error()
}

// reason is why a caller cannot use an item, nil if it can.
func (g *Gate) reason(caller auth.Caller, item *catalog.Item) reason {
	if !g.Reaches(caller, item.Server) {
		return because("server %s is not in the scope of this %s", item.Server, caller.Kind)
	}
	if tier := g.Tier(item); tier > g.MaxTier(caller) {
		return because("tool %s of server %s needs the permission %q", item.Name, item.Server, tier)
	}
	if refusal := g.serverRefusal(item.Server); refusal != nil {
		return refusal
	}
	if refusal := g.itemRefusal(item); refusal != nil {
		return refusal
	}
	rule := g.law.Load().Servers[item.Server]
	switch {
	case item.Kind == catalog.Tool && !rule.toolEnabled(item.Name):
		return because("tool %s of server %s is disabled by the configuration (enabled_tools, disabled_tools)", item.Name, item.Server)
	case item.Kind == catalog.Prompt && rule.HidePrompts:
		return because("prompts of server %s are not exposed (expose_prompts)", item.Server)
	case item.Kind != catalog.Tool && item.Kind != catalog.Prompt && rule.HideResources:
		return because("resources of server %s are not exposed (expose_resources)", item.Server)
	}
	return nil
}

// serverRefusal says why a server cannot be used by anybody, nil if it can.
func (g *Gate) serverRefusal(server string) reason {
	rule, known := g.law.Load().Servers[server]
	switch {
	case !known:
		return because("server %s is not configured", server)
	case rule.Disabled:
		return because("server %s is disabled; to use it: mcpproxy enable %s", server, server)
	case rule.Invalid != nil:
		return because("server %s cannot be used: %v", server, rule.Invalid)
	case rule.Quarantined:
		return func() *wire.Error {
			return refused("server %s is quarantined until a person has reviewed it: %s", server, ReviewCommand(catalog.Ref{Server: server}))
		}
	}
	return nil
}

// itemRefusal says what a person has to review before an item can be used, nil
// if nothing. Without a store there is nothing to go by.
func (g *Gate) itemRefusal(item *catalog.Item) reason {
	a := g.options.Approvals
	if a == nil || a.Allows(item) || !a.Usable() {
		return nil
	}
	show, about := item.Ref, "%s %s of server %s is new and waits for a person's review: %s"
	switch a.Status(item) {
	case Unknown:
		if item.Raw == nil { // there is nothing of that name to show
			show = catalog.Ref{Server: item.Server}
		}
	case Blocked:
		about = "%s %s of server %s is blocked; a person can look at it and allow it: %s"
	case Changed:
		about = "%s %s of server %s has changed since it was approved and waits for a person's review: %s"
	}
	return func() *wire.Error {
		return refused(about, item.Kind, item.Name, item.Server, ReviewCommand(show))
	}
}

func (r Rule) toolEnabled(name string) bool {
	if r.EnabledTools != nil {
		return slices.Contains(r.EnabledTools, name)
	}
	return !slices.Contains(r.DisabledTools, name)
}

// Explain says why a server that the catalog holds nothing of cannot be used,
// nil if nothing forbids it. server is its name or its alias.
func (g *Gate) Explain(server string) *wire.Error {
	for name, rule := range g.law.Load().Servers {
		if server != "" && (server == name || server == rule.Alias) {
			return g.serverRefusal(name).error()
		}
	}
	return nil
}

func refused(format string, args ...any) *wire.Error {
	return wire.Errorf(wire.CodeRefused, format, args...)
}

// present is what is known now, nil for nothing.
func (a *Approvals) present() *view {
	if a == nil {
		return nil
	}
	return a.view.Load()
}
