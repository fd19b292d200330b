package cli

import (
	"context"
	"strings"
	"time"

	"mcpproxy/mcp/config"
)

// listCmd lists the configured servers.
type listCmd struct {
	Check bool `help:"connect to every server first, for 30 s at most, and print each as it is known"`
}

// Help implements kong.HelpProvider.
func (*listCmd) Help() string {
	return `A state is one of disabled, quarantined, idle, starting, ready, needs_login, unavailable, invalid. It is what was last seen: no server is started or asked. With --check the exit code is 3, 4 or 5 if a server is invalid, needs a login or is unavailable.

    mcpproxy list
    mcpproxy list --check
    mcpproxy list --json | jq -r '.servers[] | select(.state == "unavailable").name'`
}

// serverList is the answer of list --json.
type serverList struct {
	Servers []serverSummary `json:"servers"`
}

// serverSummary is one server in lists. Counts and the time are left out for
// servers that were never seen.
type serverSummary struct {
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Error     string     `json:"error,omitempty"`
	Protocol  string     `json:"protocol,omitempty"`
	Target    string     `json:"target,omitempty"`
	Tools     *int       `json:"tools,omitempty"`
	Resources *int       `json:"resources,omitempty"`
	Templates *int       `json:"resource_templates,omitempty"`
	Prompts   *int       `json:"prompts,omitempty"`
	SeenAt    *time.Time `json:"seen_at,omitempty"`
	Users     int        `json:"users,omitempty"`        // clients of its processes
	PIDs      []int      `json:"pids,omitempty"`         // more than one where it is not shared
	Memory    int64      `json:"memory_bytes,omitempty"` // resident, of these processes
}

// run prints the servers in the order of the configuration.
func (c *listCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	list, err := a.standings(ctx, cfg)
	switch {
	case err != nil:
		return err
	case c.Check && len(list) > 0:
		return a.check(ctx, cfg, list)
	case a.JSON:
		return a.writeJSON(listOf(list))
	case a.Quiet:
		var names strings.Builder
		for _, s := range list {
			names.WriteString(clean(s.server.Name) + "\n")
		}
		return a.print(names.String())
	case len(list) == 0:
		a.note("no servers in %s", cfg.Path)
		a.note("hint: mcpproxy add NAME -- COMMAND ARG...")
		return nil
	}
	t := a.newTable("NAME", "STATE", "TOOLS", "USERS", "PID", "MEMORY", "SEEN", "TARGET", "ERROR")
	for _, s := range list {
		t.row(s.cells()...)
	}
	return t.print()
}

// listOf is the list as JSON has it.
func listOf(list []standing) serverList {
	answer := serverList{Servers: []serverSummary{}}
	for _, s := range list {
		answer.Servers = append(answer.Servers, s.summary())
	}
	return answer
}

// cells is the standing as a row of the table.
func (s standing) cells() []cell {
	tools := txt("")
	if !s.known.ListedAt.IsZero() {
		tools = num(s.known.Counts.Tools)
	}
	users, memory := txt(""), txt("")
	if len(s.runs.pids) > 0 {
		users = num(s.runs.users)
	}
	if s.runs.memory > 0 {
		memory = txt(size(s.runs.memory))
	}
	return []cell{txt(s.server.Name), {text: s.state, tint: tintOf(s.state)}, tools, users, txt(s.runs.pidText()), memory,
		when(seen(s.known)), txt(target(s.server)), txt(s.err)}
}

// summary is the standing as JSON has it.
func (s standing) summary() serverSummary {
	sum := serverSummary{
		Name: s.server.Name, State: s.state, Error: s.err,
		Protocol: s.server.Protocol, Target: target(s.server),
		Users: s.runs.users, PIDs: s.runs.pids, Memory: s.runs.memory,
	}
	if at := seen(s.known); !at.IsZero() {
		sum.SeenAt = new(at.UTC().Truncate(time.Second))
	}
	if !s.known.ListedAt.IsZero() {
		c := s.known.Counts
		sum.Tools, sum.Resources, sum.Templates, sum.Prompts = &c.Tools, &c.Resources, &c.Templates, &c.Prompts
	}
	return sum
}

// target is what is started or called, with its secrets masked.
func target(s *config.Server) string {
	shown := s.Masked()
	if shown.URL != "" {
		return shown.URL
	}
	if shown.Command == "" {
		return ""
	}
	words := append([]string{shown.Command}, shown.Args...)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
