package cli

import (
	"context"
	"errors"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/config"
)

// removeCmd takes a server out of the configuration.
type removeCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*removeCmd) Help() string {
	return `The rest of the file, comments included, stays as it is. To keep the entry, disable the server.

    mcpproxy remove github
    mcpproxy disable github`
}

// removed is the answer of remove --json.
type removed struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
	Config  string `json:"config"`
}

// run removes the entry.
func (c *removeCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if err := missing(cfg, c.Name, config.RemoveServer(ctx, cfg.Path, c.Name)); err != nil {
		return err
	}
	a.audit(ctx, cfg, activity.Record{Server: c.Name}, "removed from the configuration")
	a.note("removed %s from %s", c.Name, cfg.Path)
	if a.JSON {
		return a.writeJSON(removed{Name: c.Name, Removed: true, Config: cfg.Path})
	}
	return nil
}

// enableCmd lets a server be used.
type enableCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*enableCmd) Help() string {
	return `It is started when a client first needs it.

    mcpproxy enable github
    mcpproxy enable github --json`
}

// run enables the server.
func (c *enableCmd) run(ctx context.Context, a *app) error {
	return a.setEnabled(ctx, c.Name, true)
}

// disableCmd keeps a server from being used.
type disableCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*disableCmd) Help() string {
	return `Its entry and what is known of it stay; its tools are no longer listed.

    mcpproxy disable github
    mcpproxy enable github`
}

// run disables the server.
func (c *disableCmd) run(ctx context.Context, a *app) error {
	return a.setEnabled(ctx, c.Name, false)
}

// setEnabled writes whether a server may be used. Doing it twice is no error.
func (a *app) setEnabled(ctx context.Context, name string, enabled bool) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if err := missing(cfg, name, config.SetEnabled(ctx, cfg.Path, name, enabled)); err != nil {
		return err
	}
	if enabled {
		return a.changed(ctx, name, "enabled")
	}
	return a.changed(ctx, name, "disabled")
}

// missing replaces the error for a name that no server has by one that helps.
func missing(cfg *config.Config, name string, err error) error {
	if errors.Is(err, config.ErrServerNotFound) {
		return noServer(cfg, name)
	}
	return err
}
