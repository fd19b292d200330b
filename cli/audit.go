package cli

import (
	"context"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// audit records what a person has changed: about names the server or the agent
// token, done says what was done. Where no store was made yet nobody has used
// anything, and nothing is recorded.
func (a *app) audit(ctx context.Context, cfg *config.Config, about activity.Record, done string) {
	db, err := a.store(ctx, cfg)
	if err != nil || db == nil {
		return // what was to be done is done; an unusable store is told by a.store
	}
	recorder := activity.Open(ctx, activity.Options{
		Store: func() *store.DB { return db }, Mode: commandMode, Limits: limitsOf(cfg), SecretName: config.SecretName,
		OnError: func(err error) { a.warn("record activity: " + err.Error()) }, Now: a.Now,
	})
	about.Kind, about.Status, about.Caller, about.Notes = activity.Config, activity.Success, string(auth.Admin), []string{done}
	recorder.Add(about)
	recorder.Close()
}
