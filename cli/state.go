package cli

import (
	"context"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// The states of a server as people and programs read them. Some follow from the
// configuration, the others are what the store remembers.
const (
	stateDisabled    = "disabled"
	stateQuarantined = "quarantined"
	stateIdle        = "idle"
	stateStarting    = "starting"
	stateReady       = "ready"
	stateNeedsLogin  = "needs_login"
	stateUnavailable = "unavailable"
	stateInvalid     = "invalid"
)

// states lists all states in the order in which status counts them.
func states() []string {
	return []string{stateReady, stateStarting, stateIdle, stateNeedsLogin, stateUnavailable, stateInvalid, stateQuarantined, stateDisabled}
}

// standing is a configured server with what is known of it.
type standing struct {
	server *config.Server
	state  string
	err    string       // why, for needs_login, unavailable and invalid
	known  store.Server // the zero value where nothing is known
	runs   running
}

// standings puts together configuration and store, in the order of the
// configuration. No server is started or asked.
func (a *app) standings(ctx context.Context, cfg *config.Config) ([]standing, error) {
	list, _, err := a.overview(ctx, cfg)
	return list, err
}

// overview is standings and the instances that are present.
func (a *app) overview(ctx context.Context, cfg *config.Config) ([]standing, []store.Instance, error) {
	db, err := a.store(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	rows, err := db.Servers(ctx)
	if err != nil {
		return nil, nil, err
	}
	present, err := a.presences(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	runs, err := runningServers(ctx, db, present)
	if err != nil {
		return nil, nil, err
	}
	cfg.SkipRecursion(a.own())
	list := make([]standing, len(cfg.Servers))
	for i := range cfg.Servers {
		server := &cfg.Servers[i]
		fingerprint := server.Fingerprint()
		list[i] = standingOf(server, latest(rows, server.Name, fingerprint))
		list[i].runs = runs[[2]string{server.Name, fingerprint}]
		if list[i].state == stateReady && server.URL == "" && len(list[i].runs.pids) == 0 {
			list[i].state = stateIdle // whoever ran it was killed
		}
	}
	return list, present, nil
}

// standingOf decides the state of a server. What a person has decided comes
// before what is wrong, and that before what was last seen.
func standingOf(server *config.Server, known store.Server) standing {
	s := standing{server: server, known: known, state: stateIdle}
	switch {
	case !server.Enabled:
		s.state = stateDisabled
	case server.Err != nil:
		s.state, s.err = stateInvalid, server.Err.Error()
	case server.Quarantined:
		s.state = stateQuarantined
	case known.State == stateStarting, known.State == stateReady:
		s.state = known.State
	case known.State == stateNeedsLogin, known.State == stateUnavailable, known.State == stateInvalid:
		s.state, s.err = known.State, known.LastError
	}
	return s
}

// latest returns the row of a server that was written last. A server has one
// row for each set of capabilities that clients announced to it.
func latest(rows []store.Server, name, fingerprint string) store.Server {
	var found store.Server
	for _, row := range rows {
		if row.Name == name && row.Fingerprint == fingerprint && !seen(row).Before(seen(found)) {
			found = row
		}
	}
	return found
}

// seen is when a server was last heard of.
func seen(row store.Server) time.Time {
	at := row.AttemptedAt
	for _, t := range []time.Time{row.ConnectedAt, row.ListedAt} {
		if t.After(at) {
			at = t
		}
	}
	return at
}

// tintOf is how a state stands out.
func tintOf(state string) tint {
	switch state {
	case stateReady:
		return good
	case stateNeedsLogin, stateQuarantined, stateStarting:
		return odd
	case stateUnavailable, stateInvalid:
		return bad
	}
	return plain
}
