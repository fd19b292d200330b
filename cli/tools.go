package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
)

// toolsCmd is about the tools of all servers.
type toolsCmd struct {
	List   toolsListCmd   `cmd:"" help:"list the tools of all servers, or of one"`
	Search toolsSearchCmd `cmd:"" help:"find tools by what they do"`
	Show   toolsShowCmd   `cmd:"" help:"show one tool"`
	Call   toolsCallCmd   `cmd:"" help:"call one tool and print its result"`
}

// Help implements kong.HelpProvider.
func (*toolsCmd) Help() string {
	return `A tool is written SERVER:TOOL, or SERVER__TOOL as clients of direct mode see it.

    mcpproxy tools list
    mcpproxy tools search create an issue
    mcpproxy tools call notes:read_note --args '{"name": "groceries"}'`
}

// toolsListCmd lists tools.
type toolsListCmd struct {
	Server string `arg:"" optional:"" help:"only the tools of this server"`
	All    bool   `help:"also those that cannot be used now, and how each stands"`
}

// The states of tools in lists, beside the statuses of those that a person has
// to review first.
const (
	toolUsable   = "usable"
	toolDisabled = "disabled" // by the configuration
)

// Help implements kong.HelpProvider.
func (*toolsListCmd) Help() string {
	return `What was stored at the last connection is listed; only servers of which nothing is known are started. A tier is one of read, write, destructive. A state is one of usable, pending (new, and not reviewed), changed (since it was approved), blocked, disabled (by enabled_tools or disabled_tools).

    mcpproxy tools list github
    mcpproxy tools list --all
    mcpproxy tools list --json | jq -r '.tools[] | select(.tier == "read").public_name'`
}

// toolList is the answer of tools list --json.
type toolList struct {
	Tools []toolSummary `json:"tools"`
}

// toolSummary is one tool in lists.
type toolSummary struct {
	Server      string `json:"server"`
	Name        string `json:"name"`        // as the server calls it
	PublicName  string `json:"public_name"` // as clients of direct mode see it
	Tier        string `json:"tier"`
	State       string `json:"state"`
	Description string `json:"description,omitempty"`
}

// run lists the tools in the order of the configuration.
func (c *toolsListCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if c.Server != "" {
		return c.runFor(ctx, a, cfg)
	}
	if len(cfg.Servers) == 0 {
		if a.JSON {
			return a.writeJSON(toolList{Tools: []toolSummary{}})
		}
		a.note("no servers in %s", cfg.Path)
		a.note("hint: mcpproxy add NAME -- COMMAND ARG...")
		return nil
	}
	core := a.compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	failed, err := core.introduce(ctx)
	if err != nil {
		return err
	}
	if err := c.print(a, core.offered(ctx)); err != nil {
		return err
	}
	return core.notUsable(failed)
}

// runFor lists the tools of one server.
func (c *toolsListCmd) runFor(ctx context.Context, a *app, cfg *config.Config) error {
	server, err := serverNamed(cfg, c.Server)
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	if err := core.forbids(server); err != nil {
		return err
	}
	failed, err := core.introduce(ctx, server.Name)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return unreachable(failed[0])
	}
	return c.print(a, core.offered(ctx, server.Name))
}

// hushed is the app without warnings, for a command whose error says what they
// would say.
func (a *app) hushed() *app {
	quiet := *a
	quiet.Quiet = true
	return &quiet
}

// print prints those of the tools that are asked for.
func (c *toolsListCmd) print(a *app, tools []toolSummary) error {
	if !c.All {
		tools = usableTools(tools)
	}
	switch {
	case a.JSON:
		return a.writeJSON(toolList{Tools: tools})
	case a.Quiet:
		var names strings.Builder
		for _, t := range tools {
			names.WriteString(clean(t.Server+":"+t.Name) + "\n")
		}
		return a.print(names.String())
	}
	if err := a.toolTable(tools, c.All).print(); err != nil {
		return err
	}
	for _, t := range tools {
		if t.State != toolUsable && t.State != toolDisabled {
			a.note("hint: %s", clean(policy.ReviewCommand(catalog.Ref{Server: t.Server, Name: t.Name})))
			break
		}
	}
	return nil
}

// toolTable shows tools, with a column more for their states where these differ.
func (a *app) toolTable(tools []toolSummary, states bool) *table {
	headers := []string{"TOOL", "TIER", "STATE", "SERVER", "DESCRIPTION"}
	if !states {
		headers = slices.Delete(headers, 2, 3)
	}
	t := a.newTable(headers...)
	for _, tool := range tools {
		first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
		name := tool.Name
		if tool.State != toolUsable {
			name = reveal(name) // it may be made to look like another
		}
		cells := []cell{
			txt(name), {text: tool.Tier, tint: tintOfTier(tool.Tier)}, {text: tool.State, tint: tintOfToolState(tool.State)},
			txt(tool.Server), txt(strings.TrimSpace(first)),
		}
		if !states {
			cells = slices.Delete(cells, 2, 3)
		}
		t.row(cells...)
	}
	return t
}

// tintOfToolState is how a state stands out.
func tintOfToolState(state string) tint {
	switch state {
	case toolUsable:
		return good
	case toolDisabled:
		return plain
	}
	return tintOfStatus(policy.Status(state))
}

// tintOfTier is how a tier stands out.
func tintOfTier(tier string) tint {
	switch tier {
	case catalog.Read.String():
		return good
	case catalog.Write.String():
		return odd
	}
	return bad
}

// serverNamed returns the configured server of a name or an alias.
func serverNamed(cfg *config.Config, name string) (*config.Server, error) {
	if s := cfg.Server(name); s != nil {
		return s, nil
	}
	if i := slices.IndexFunc(cfg.Servers, func(s config.Server) bool { return s.Alias == name }); i >= 0 && name != "" {
		return &cfg.Servers[i], nil
	}
	return nil, noServer(cfg, name)
}

// forbids says why a server cannot be used at all, nil if nothing is known to
// be in the way.
func (c *core) forbids(server *config.Server) error {
	if server.Enabled && server.Err != nil {
		return server.Err
	}
	if refusal := c.gate.Explain(server.Name); refusal != nil {
		return errors.New(refusal.Message)
	}
	return nil
}

// introduce starts those of the named servers (of all, if none is named) of
// which nothing is known, and returns how those are of which nothing is known
// after that.
func (c *core) introduce(ctx context.Context, names ...string) ([]upstream.Status, error) {
	unknown := func() []string {
		var list []string
		for _, s := range c.set.Snapshot(ctx).Servers() {
			if !s.Known && (len(names) == 0 || slices.Contains(names, s.Name)) {
				list = append(list, s.Name)
			}
		}
		return list
	}
	strangers := unknown()
	if len(strangers) == 0 {
		return nil, ctx.Err()
	}
	status := c.set.Introduce(ctx, strangers...)
	strangers = unknown()
	return slices.DeleteFunc(status, func(s upstream.Status) bool { return !slices.Contains(strangers, s.Name) }), ctx.Err()
}

// notUsable is the error for servers that could have tools to list and whose
// lists are not known; nil if there are none.
func (c *core) notUsable(failed []upstream.Status) error {
	var list []standing
	cfg := c.cfg.Load()
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; s.Enabled && s.Err != nil {
			list = append(list, standing{server: s, state: stateInvalid})
		}
	}
	for _, s := range failed {
		state := stateUnavailable
		if s.State == upstream.NeedsLogin {
			state = stateNeedsLogin
		}
		list = append(list, standing{server: &config.Server{Name: s.Name}, state: state})
	}
	return unusable(list)
}

// tools are the tools that this user may use, of the named servers or of all.
func (c *core) tools(ctx context.Context, names ...string) []toolSummary {
	return usableTools(c.offered(ctx, names...))
}

// usableTools are those of the tools that may be used.
func usableTools(tools []toolSummary) []toolSummary {
	return slices.DeleteFunc(tools, func(t toolSummary) bool { return t.State != toolUsable })
}

// offered are all tools of the named servers, or of all, as far as they are
// known; servers that cannot be used at all have none.
func (c *core) offered(ctx context.Context, names ...string) []toolSummary {
	snapshot := c.gate.Catalog(ctx)
	public := snapshot.Names(catalog.Tool, catalog.MaxName("", c.cfg.Load().MaxToolNameLength))
	list := []toolSummary{}
	for _, server := range snapshot.Servers() {
		if len(names) > 0 && !slices.Contains(names, server.Name) {
			continue
		}
		for _, item := range server.Tools {
			list = append(list, c.summary(item, public))
		}
	}
	return list
}

// toolState is how a tool of a server in use stands.
func (c *core) toolState(item *catalog.Item) string {
	switch {
	case c.gate.May(auth.Local(), item):
		return toolUsable
	case c.reviewed.Usable() && !c.reviewed.Allows(item):
		return string(c.reviewed.Status(item))
	}
	return toolDisabled
}

// summary is one tool as lists show it.
func (c *core) summary(item *catalog.Item, public *catalog.Names) toolSummary {
	s := toolSummary{
		Server: item.Server, Name: item.Name, PublicName: public.Public(item),
		Tier: c.gate.Tier(item).String(), State: c.toolState(item),
	}
	s.Description, _ = wire.String(wire.Member(item.Raw, "description"))
	if o := item.Override; o != nil && o.Description != "" {
		s.Description = o.Description
	}
	return s
}
