package cli

import (
	"context"

	"mcpproxy/mcp/config"
)

// reload takes over changes of the configuration file until ctx ends.
func (a *app) reload(ctx context.Context, c *core) {
	first := c.cfg.Load()
	err := config.Watch(ctx, first.Path, first, config.WatchOptions{
		Load:    func(context.Context) (*config.Config, error) { return a.config() },
		Changed: func(next *config.Config) { a.apply(ctx, c, next) },
		Failed:  func(err error) { a.warn(err.Error()) },
	})
	if err != nil && ctx.Err() == nil {
		a.warn("watch " + first.Path + ": " + err.Error() + "; changes take effect at the next start")
	}
}

// apply makes a changed configuration the present one.
func (a *app) apply(ctx context.Context, c *core, next *config.Config) {
	a.admit(next)
	for _, key := range config.Diff(c.cfg.Load(), next).Restart {
		a.warn(key + " has changed, which takes effect at the next start")
	}
	c.cfg.Store(next)
	c.recorder.SetLimits(limitsOf(next))
	c.gate.SetRules(rules(next))
	c.set.Apply(ctx, usable(next))
	c.router.Changed() // for rules alone the servers do not say so
	a.announceConnections(ctx, c)
}
