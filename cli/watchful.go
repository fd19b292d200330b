package cli

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/store"
)

// reviewTick is how often a client's process looks whether another has approved
// or blocked something.
const reviewTick = 2 * time.Second

// approvals are the quarantine of what the servers of a core offer.
func (c *core) approvals(a *app) *policy.Approvals {
	return policy.NewApprovals(policy.ApprovalOptions{
		Store:   c.openStore,
		DataDir: c.cfg.Load().DataDir,
		Enabled: func() bool { return c.cfg.Load().QuarantineEnabled },
		AutoApprove: func(server string) bool {
			s := c.cfg.Load().Server(server)
			return s != nil && s.AutoApproveToolChanges
		},
		Now: a.Now,
	})
}

// judged records what was found new of what the servers offer, and says what is
// held.
func (c *core) judged(a *app, events []policy.Event, err error) {
	for _, e := range events {
		c.recorder.Add(quarantineRecord(e))
		if e.Status == policy.Pending || e.Status == policy.Changed {
			a.warn(e.String())
		}
	}
	if err != nil {
		a.warn("judge what the servers offer: " + err.Error() + "; what is new is held")
	}
}

// quarantineRecord is the record of a change of what may be used.
func quarantineRecord(e policy.Event) activity.Record {
	status := activity.Success
	if e.Status == policy.Pending || e.Status == policy.Changed || e.Status == policy.Blocked {
		status = activity.Blocked
	}
	r := activity.Record{Kind: activity.Quarantine, Status: status, Server: e.Server, Notes: []string{e.String()}}
	if e.Kind == catalog.Tool {
		r.Tool = e.Name
	}
	return r
}

// sanitise does to the result of a tool what the configuration wants.
func (c *core) sanitise(tool catalog.Ref, result json.RawMessage) json.RawMessage {
	wanted := c.cfg.Load().OutputSanitisation
	s := policy.Sanitisation{
		StripControl: wanted.StripControl, MarkUntrusted: wanted.MarkUntrusted, SensitiveData: policy.SecretAction(wanted.SensitiveData),
	}
	if s == (policy.Sanitisation{SensitiveData: policy.KeepSecrets}) {
		return result
	}
	return s.Result(tool, result, c.recorder.Masker())
}

// limitsOf is how much activity is kept.
func limitsOf(cfg *config.Config) activity.Limits {
	return activity.Limits{
		Payload:   cfg.ActivityMaxPayload,
		Records:   int64(cfg.ActivityMaxRecords),
		Size:      int64(cfg.ActivityMaxSizeMB) << 20,
		Retention: time.Duration(cfg.ActivityRetentionDays) * 24 * time.Hour,
	}
}

// connections are how the servers of a configuration are reached, as far as a
// person is told.
func connections(cfg *config.Config) []store.Connection {
	var list []store.Connection
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; s.Err == nil {
			list = append(list, store.Connection{Server: s.Name, Fingerprint: s.Fingerprint(), Target: target(s)})
		}
	}
	return list
}

// review takes over what other processes approve and block, and announces once
// what has changed of the way to a server, from when the client was greeted until
// ctx ends.
func (a *app) review(ctx context.Context, c *core, greeted <-chan struct{}) {
	select {
	case <-greeted:
	case <-ctx.Done():
		return
	}
	a.announceConnections(ctx, c)
	tick := time.NewTicker(reviewTick)
	defer tick.Stop()
	last := int64(-1)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.router.Recheck(ctx)
		version, err := c.openStore().DataVersion(ctx)
		if err != nil || version == last {
			continue
		}
		last = version
		// What cannot be read is read at the next tick at which there is something.
		if changed, _ := c.reviewed.Refresh(ctx); changed {
			c.router.Changed()
		}
	}
}

// announceConnections tells of servers that are reached in another way than
// before.
func (a *app) announceConnections(ctx context.Context, c *core) {
	cfg := c.cfg.Load()
	// What cannot be compared now is compared at the next start.
	changes, _ := c.reviewed.Connections(ctx, cfg.Path, connections(cfg))
	for _, change := range changes {
		a.warn(change.String())
		c.recorder.Add(activity.Record{Kind: activity.Config, Status: activity.Success, Server: change.Server, Notes: []string{change.String()}})
	}
}
