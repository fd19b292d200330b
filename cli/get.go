package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpproxy/mcp/config"
)

// getCmd shows one server.
type getCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*getCmd) Help() string {
	return `Secrets are masked; references such as ${env:TOKEN} are shown.

    mcpproxy get github
    mcpproxy get github --json`
}

// serverDetails is the answer of get --json: the summary, then the entry.
type serverDetails struct {
	serverSummary
	Command       string            `json:"command,omitempty"`
	Args          []string          `json:"args,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	WorkingDir    string            `json:"working_dir,omitempty"`
	URL           string            `json:"url,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Enabled       bool              `json:"enabled"`
	Quarantined   bool              `json:"quarantined"`
	Shared        string            `json:"shared,omitempty"`
	Tags          []string          `json:"tags,omitempty"`
	EnabledTools  []string          `json:"enabled_tools,omitempty"`
	DisabledTools []string          `json:"disabled_tools,omitempty"`
	MCPVersion    string            `json:"protocol_version,omitempty"`
	ServerInfo    json.RawMessage   `json:"server_info,omitempty"`
	Instructions  string            `json:"instructions,omitempty"`
	Failures      int               `json:"failures,omitempty"`
	Config        string            `json:"config"`
}

// run prints the entry of a server and what is known of it.
func (c *getCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	return a.printServer(ctx, cfg, c.Name)
}

// printServer prints the server of a name.
func (a *app) printServer(ctx context.Context, cfg *config.Config, name string) error {
	list, err := a.standings(ctx, cfg)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s standing) bool { return s.server.Name == name })
	if i < 0 {
		return noServer(cfg, name)
	}
	d := list[i].details(cfg.Path)
	switch {
	case a.JSON:
		return a.writeJSON(d)
	case a.Quiet:
		return a.print(clean(name) + "\n")
	}
	return a.printFields(d.fields(list[i]))
}

// details is the standing with everything get shows.
func (s standing) details(path string) serverDetails {
	srv := s.server.Masked()
	return serverDetails{
		serverSummary: s.summary(),
		Command:       srv.Command,
		Args:          srv.Args,
		Env:           srv.Env,
		WorkingDir:    srv.WorkingDir,
		URL:           srv.URL,
		Headers:       srv.Headers,
		Enabled:       srv.Enabled,
		Quarantined:   srv.Quarantined,
		Shared:        srv.Shared,
		Tags:          srv.Tags,
		EnabledTools:  srv.EnabledTools,
		DisabledTools: srv.DisabledTools,
		MCPVersion:    s.known.Protocol,
		ServerInfo:    s.known.ServerInfo,
		Instructions:  s.known.Instructions,
		Failures:      s.known.Failures,
		Config:        path,
	}
}

// fields is what a person reads of a server.
func (d serverDetails) fields(s standing) []field {
	list := []field{
		{"name", txt(d.Name)},
		{"state", cell{text: d.State, tint: tintOf(d.State)}},
		{"error", txt(d.Error)},
		{"protocol", txt(d.Protocol)},
		{"target", txt(d.Target)},
		{"working_dir", txt(d.WorkingDir)},
	}
	for _, key := range slices.Sorted(maps.Keys(d.Env)) {
		list = append(list, field{"env", txt(key + "=" + d.Env[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(d.Headers)) {
		list = append(list, field{"header", txt(key + ": " + d.Headers[key])})
	}
	list = append(list,
		field{"tags", txt(strings.Join(d.Tags, ", "))},
		field{"enabled_tools", txt(strings.Join(d.EnabledTools, ", "))},
		field{"disabled_tools", txt(strings.Join(d.DisabledTools, ", "))},
		field{"protocol_version", txt(d.MCPVersion)},
	)
	if d.Tools != nil {
		list = append(list, field{"tools", num(*d.Tools)}, field{"resources", num(*d.Resources)},
			field{"resource_templates", num(*d.Templates)}, field{"prompts", num(*d.Prompts)})
	}
	if len(d.PIDs) > 0 {
		list = append(list, field{"pid", cell{text: s.runs.pidText(), aside: size(d.Memory)}}, field{"users", num(d.Users)})
	}
	return append(list,
		field{"instructions", txt(d.Instructions)},
		field{"seen_at", when(seen(s.known))},
		field{"config", txt(d.Config)},
	)
}
