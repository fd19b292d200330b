package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/mcp/config"
)

// statusCmd tells how things are.
type statusCmd struct{}

// Help implements kong.HelpProvider.
func (*statusCmd) Help() string {
	return `It needs nothing to run, and starts nothing. Its exit code is 3, 4 or 5 if a server is invalid, needs a login or is unavailable.

    mcpproxy status
    mcpproxy status --json`
}

// statusAnswer is the answer of status --json.
type statusAnswer struct {
	Version     string        `json:"version"`
	Mode        string        `json:"mode"`
	RoutingMode string        `json:"routing_mode"`
	Config      configStatus  `json:"config"`
	DataDir     string        `json:"data_dir"`
	Store       storeStatus   `json:"store"`
	Hubs        []hubStatus   `json:"hubs"`
	Clients     []hubClient   `json:"clients"` // all instances, also those that use no hub
	Servers     serversStatus `json:"servers"`
}

type configStatus struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Warnings []string `json:"warnings"`
}

type storeStatus struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Bytes  int64  `json:"bytes"` // with what is written beside it
}

type serversStatus struct {
	Total  int            `json:"total"`
	States map[string]int `json:"states"` // every state, also those nobody is in
}

// run prints the status and fails where a server cannot be used.
func (*statusCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	list, present, err := a.overview(ctx, cfg)
	if err != nil {
		return err
	}
	answer := statusAnswer{
		Version: buildOf().Version, Mode: modeServed(cfg.RoutingMode), RoutingMode: cfg.RoutingMode,
		Config:  configStatus{Path: cfg.Path, Exists: cfg.Exists, Warnings: append([]string{}, cfg.Warnings...)},
		DataDir: cfg.DataDir,
		Store:   storeOf(cfg),
		Hubs:    a.hubsOf(present),
		Clients: clientsOf(present),
		Servers: serversStatus{Total: len(list), States: map[string]int{}},
	}
	for _, state := range states() {
		answer.Servers.States[state] = 0
	}
	for _, s := range list {
		answer.Servers.States[s.state]++
	}
	switch {
	case a.JSON:
		err = a.writeJSON(answer)
	case !a.Quiet:
		err = a.printFields(answer.fields())
	}
	if err != nil {
		return err
	}
	return unusable(list)
}

// storeOf looks at the files of the store without opening them.
func storeOf(cfg *config.Config) storeStatus {
	s := storeStatus{Path: filepath.Join(cfg.DataDir, storeFile)}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.Path + suffix)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		s.Bytes += info.Size()
		s.Exists = s.Exists || suffix == ""
	}
	return s
}

// fields is what a person reads of the status.
func (s statusAnswer) fields() []field {
	file := cell{text: s.Config.Path}
	if !s.Config.Exists {
		file.aside = "none yet, defaults apply"
	}
	kept := cell{text: s.Store.Path, aside: "none yet"}
	if s.Store.Exists {
		kept.aside = size(s.Store.Bytes)
	}
	var servers []string
	for _, state := range states() {
		if n := s.Servers.States[state]; n > 0 {
			servers = append(servers, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(servers) == 0 {
		servers = []string{"none"}
	}
	list := []field{{"version", txt(s.Version)}, {"mode", txt(s.Mode)}}
	if s.RoutingMode != s.Mode {
		list = append(list, field{"routing_mode", cell{text: s.RoutingMode, aside: "not available in this build"}})
	}
	list = append(list, field{"config", file}, field{"store", kept})
	for _, h := range s.Hubs {
		text := fmt.Sprintf("pid %d", h.PID)
		if !h.Current {
			text += ", of another build"
		}
		var clients []string
		for _, c := range h.Clients {
			clients = append(clients, c.Name)
		}
		list = append(list, field{"hub", cell{text: text, aside: strings.Join(clients, ", ")}}, field{"hub_since", when(h.Since)})
	}
	for _, c := range s.Clients {
		list = append(list, field{"client", cell{text: c.Name, aside: fmt.Sprintf("pid %d", c.PID)}})
	}
	list = append(list, field{"servers", txt(strings.Join(servers, ", "))})
	for _, warning := range s.Config.Warnings {
		list = append(list, field{"warning", txt(warning)})
	}
	return list
}

// size is a number of bytes for a person.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// unusable is the error for servers that cannot be used though they should be;
// nil where there are none. The code is that of what has to be mended first.
func unusable(list []standing) error {
	codes := map[string]int{stateInvalid: exitConfig, stateNeedsLogin: exitLogin, stateUnavailable: exitUnavailable}
	var names []string
	code := 0
	for _, s := range list {
		if c := codes[s.state]; c != 0 {
			names = append(names, fmt.Sprintf("%s (%s)", s.server.Name, s.state))
			if code == 0 || c < code {
				code = c
			}
		}
	}
	if code == 0 {
		return nil
	}
	return &failure{code: code, err: fmt.Errorf("not usable: %s", strings.Join(names, ", ")), hint: "mcpproxy list"}
}
