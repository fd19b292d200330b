package cli

import (
	"context"
	"slices"
	"strings"
)

// The routing modes.
const (
	modeRetrieve = "retrieve_tools"
	modeDirect   = "direct"
	modeCode     = "code_execution"
	modeProxy    = "proxy"
)

// commandMode is how activity names what was done on the command line.
const commandMode = "cli"

// runCmd serves one client on stdin and stdout.
type runCmd struct {
	Mode      string `help:"show the client its tools this way: retrieve_tools or direct; code_execution and proxy are not available in this build (default: routing_mode of the configuration)" placeholder:"MODE"`
	Profile   string `help:"offer only the servers of this profile of the configuration" placeholder:"NAME"`
	TokenFile string `help:"act for the agent whose token FILE holds (default: the token in MCPPROXY_TOKEN, if it is set)" placeholder:"FILE"`
}

// Help implements kong.HelpProvider.
func (*runCmd) Help() string {
	return `An MCP client starts this command. The protocol is on stdin and stdout; the end of stdin ends the program and every server it started.

The mode decides which tools the client sees. retrieve_tools: a search, and three tools to call what it finds, so that the client's list is short and always the same. direct: every tool of every server as server__tool. Of the modes of the configuration code_execution and proxy are not available in this build: asked for with --mode they are refused, as routing_mode they are served as retrieve_tools, and a line on stderr says so.

With --profile the client has the servers of that profile alone. With an agent token it is that agent: it has the servers and permissions of the token, which is checked anew at every request. Against other programs of the same user both are a guard rail, no boundary.

    mcpproxy --mode retrieve_tools
    mcpproxy --mode direct --profile work
    claude mcp add mcpproxy -- mcpproxy --mode direct`
}

// bare reports whether nothing says that a client is to be served.
func (c *runCmd) bare() bool { return c.Mode == "" && c.Profile == "" && c.TokenFile == "" }

// run serves one client until stdin ends or ctx does.
func (c *runCmd) run(ctx context.Context, a *app) error {
	if err := c.checkMode(); err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	who, err := c.holder(a, cfg)
	if err != nil {
		return err
	}
	mode := c.mode(a, cfg.RoutingMode)
	if a.IsTerminal(Stdin) {
		a.note("waiting for an MCP client on stdin; Ctrl-D ends it")
	}
	return a.serveClient(ctx, cfg, mode, who)
}

// checkMode refuses a mode that was asked for and cannot be served.
func (c *runCmd) checkMode() error {
	const hint = "mcpproxy --mode " + modeRetrieve
	modes := []string{modeRetrieve, modeDirect, modeCode, modeProxy}
	switch {
	case c.Mode == "", available(c.Mode):
		return nil
	case slices.Contains(modes, c.Mode):
		return misuse(hint, "mode %s is not available in this build, only %s and %s are", c.Mode, modeRetrieve, modeDirect)
	}
	if meant := nearest(c.Mode, modes); meant != "" {
		return misuse(hint, "unknown mode %q, did you mean %q?", c.Mode, meant)
	}
	return misuse(hint, "unknown mode %q; the modes are %s", c.Mode, strings.Join(modes, ", "))
}

// mode returns the mode to serve, given the configured one, and says on stderr
// where it is not that one.
func (c *runCmd) mode(a *app, configured string) string {
	if c.Mode != "" {
		return c.Mode
	}
	mode := modeServed(configured)
	if mode != configured {
		a.note("routing_mode %s is not available in this build, serving %s", configured, mode)
		a.note("hint: mcpproxy --mode %s", mode)
	}
	return mode
}

// modeServed is the mode that is served for a configured one.
func modeServed(configured string) string {
	if available(configured) {
		return configured
	}
	return modeRetrieve
}

// available reports whether a mode can be served.
func available(mode string) bool { return mode == modeRetrieve || mode == modeDirect }
