package cli

import (
	"context"

	"mcpproxy/mcp/upstream"
)

// guardName is the hidden command that serve starts beside itself.
const guardName = "guard"

// guardCmd outlives the process that started it just long enough to stop what
// that process could not stop any more.
type guardCmd struct{}

// Help implements kong.HelpProvider.
func (*guardCmd) Help() string {
	return `Started by mcpproxy itself. It reads the process groups to watch on stdin; when stdin ends it stops those that are left.

    mcpproxy guard < /dev/null`
}

// run watches until stdin ends; a signal does not shorten what it is there for.
func (*guardCmd) run(ctx context.Context, a *app) error {
	upstream.RunGuard(context.WithoutCancel(ctx), a.Stdin, a.Stdout)
	return nil
}
