package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"mcpproxy/store"
)

// restartCmd has running instances start a server again.
type restartCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*restartCmd) Help() string {
	return `Every mcpproxy that runs the server, for whichever client, stops it and starts it again within about two seconds. Nothing is started where it does not run.

    mcpproxy restart github
    mcpproxy restart github && mcpproxy logs -f github`
}

// restartRequest is the answer of restart --json.
type restartRequest struct {
	Name        string `json:"name"`
	RequestedAt string `json:"requested_at"`
}

// run leaves the wish in the store, where running instances look for it.
func (c *restartCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	server := cfg.Server(c.Name)
	if server == nil {
		return noServer(cfg, c.Name)
	}
	db, err := store.Open(ctx, filepath.Join(cfg.DataDir, storeFile), store.Options{Now: a.Now})
	if err != nil {
		return fmt.Errorf("ask for a restart: %w", err)
	}
	a.opened = append(a.opened, db)
	at := a.Now()
	if err := db.RequestRestart(ctx, c.Name, at); err != nil {
		return err
	}
	a.note("whoever runs %s restarts it within two seconds; nothing is started where it does not run", c.Name)
	if a.JSON {
		return a.writeJSON(restartRequest{Name: c.Name, RequestedAt: cell{at: at}.whole()})
	}
	return nil
}
