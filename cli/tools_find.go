package cli

import (
	"context"
	"errors"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
)

// address is a tool as it is written on the command line.
type address struct {
	server *config.Server
	tool   string // the server's own name or the one that clients see
}

// addressOf reads SERVER:TOOL and SERVER__TOOL. SERVER may be an alias.
func addressOf(cfg *config.Config, text string) (address, error) {
	name, tool, ok := strings.Cut(text, ":")
	if !ok {
		name, tool, ok = catalog.SplitPublic(text)
	}
	if !ok || name == "" || tool == "" {
		return address{}, misuse("mcpproxy tools list", "%q is no tool: write SERVER:TOOL", text)
	}
	server, err := serverNamed(cfg, name)
	return address{server, tool}, err
}

// tool returns the tool at an address among those that are known, nil if there
// is none: by the server's name for it, or by the whole public name or the
// part of it behind the prefix.
func (c *core) tool(ctx context.Context, at address) *catalog.Item {
	snapshot := c.gate.Catalog(ctx)
	server := snapshot.Server(at.server.Name)
	if server == nil {
		return nil
	}
	for _, item := range server.Tools {
		if item.Name == at.tool {
			return item
		}
	}
	names := snapshot.Names(catalog.Tool, catalog.MaxName("", c.cfg.Load().MaxToolNameLength))
	for _, public := range []string{server.Prefix + catalog.Separator + at.tool, at.tool} {
		if item := names.Lookup(public); item != nil && item.Server == server.Name {
			return item
		}
	}
	return nil
}

// find returns the tool at an address. A server of which nothing is known is
// started for it; with fresh one that is known is asked too, if its stored list
// does not have the tool.
func (c *core) find(ctx context.Context, at address, fresh bool) (*catalog.Item, error) {
	name := at.server.Name
	if err := c.forbids(at.server); err != nil {
		return nil, err
	}
	failed, err := c.introduce(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return nil, unreachable(failed[0])
	}
	item := c.tool(ctx, at)
	if item == nil && fresh {
		c.set.Introduce(ctx, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item = c.tool(ctx, at)
	}
	if item == nil {
		return nil, c.noTool(ctx, at)
	}
	if refusal := c.gate.Refusal(auth.Local(), item); refusal != nil {
		return nil, errors.New(refusal.Message)
	}
	return item, nil
}

// noTool is the error for a tool that a server does not have, with the one
// that was probably meant.
func (c *core) noTool(ctx context.Context, at address) error {
	var names []string
	for _, t := range c.tools(ctx, at.server.Name) {
		names = append(names, t.Name)
	}
	hint := "mcpproxy tools list " + at.server.Name
	if meant := nearest(at.tool, names); meant != "" {
		return hinted(hint, "server %s has no tool %q, did you mean %q?", at.server.Name, at.tool, meant)
	}
	return hinted(hint, "server %s has no tool %q", at.server.Name, at.tool)
}
