package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpproxy/mcp/config"
)

// agentInstructionsCmd prints a text for the file that agents read first.
type agentInstructionsCmd struct {
	Mode        string `help:"for agents whose client is served in this mode: retrieve_tools or direct (default: routing_mode of the configuration)" placeholder:"MODE"`
	WithServers bool   `help:"also name the servers that can be used, each with what it says that it is"`
}

// Help implements kong.HelpProvider.
func (*agentInstructionsCmd) Help() string {
	return `The text is Markdown on stdout, for CLAUDE.md, AGENTS.md or the like. Nothing is started for it: of a server that was never connected to, only the name is known. What servers say of themselves is their own text; read it before you hand it on.

    mcpproxy agent-instructions >> AGENTS.md
    mcpproxy agent-instructions --mode direct --with-servers`
}

// agentInstructions is the answer of agent-instructions --json.
type agentInstructions struct {
	Mode    string        `json:"mode"`
	Text    string        `json:"text"`             // Markdown
	Servers []agentServer `json:"servers,omitzero"` // where they were asked for
}

// agentServer is a server that agents can use.
type agentServer struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"` // what it says of itself
}

// run prints the text.
func (c *agentInstructionsCmd) run(ctx context.Context, a *app) error {
	chosen := runCmd{Mode: c.Mode}
	if err := chosen.checkMode(); err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	answer := agentInstructions{Mode: chosen.mode(a, cfg.RoutingMode)}
	if c.WithServers {
		answer.Servers = a.agentServers(ctx, cfg)
	}
	answer.Text = agentText(answer.Mode, cfg) + agentServersText(answer.Servers)
	if a.JSON {
		return a.writeJSON(answer)
	}
	return a.print(answer.Text)
}

// agentServers are the servers in use, in the order of the configuration.
func (a *app) agentServers(ctx context.Context, cfg *config.Config) []agentServer {
	core := a.compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	list := []agentServer{}
	for _, s := range core.gate.Catalog(ctx).Servers() {
		list = append(list, agentServer{s.Name, oneLine(s.About)})
	}
	return list
}

// aboutMost bounds what is repeated of a server, in bytes.
const aboutMost = 160

// oneLine is the first line of what a server says of itself, without what would
// be more than text where Markdown is read.
func oneLine(about string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(about), "\n")
	line := clean(strings.Join(strings.Fields(first), " "))
	line = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`<>[]\"", r) {
			return '\''
		}
		return r
	}, line)
	if len(line) <= aboutMost {
		return line
	}
	end := aboutMost
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return strings.TrimSpace(line[:end]) + "…"
}

// agentText is what an agent is told of a mode.
func agentText(mode string, cfg *config.Config) string {
	var b strings.Builder
	b.WriteString("## Tools behind mcpproxy\n\n")
	if mode == modeRetrieve {
		b.WriteString(`You reach the tools of several MCP servers through mcpproxy. They are not in your list of tools: search for them, then call what you found.

1. Search first, with ` + "`retrieve_tools`" + `. Name the product or domain, a verb and an object: ` + "`{\"query\": \"github create issue\"}`" + `. One need per search; for two needs, search twice.
2. Call a tool through the one that its ` + "`call_with`" + ` names, which is ` + "`call_tool_read`, `call_tool_write` or `call_tool_destructive`" + `: ` + "`{\"name\": \"server:tool\", \"args\": {…}}`" + `, with the name as it was found.
3. An entry with ` + "`sig`" + ` in place of a schema is a short form: its ` + "`call_with`" + ` is ` + "`read` or `write` for `call_tool_read` or `call_tool_write`" + `, and left out for ` + "`call_tool_destructive`" + `. Where that is not enough to call it, read the full schema: ` + "`describe_tool {\"tool_ids\": [\"server:tool\"]}`" + `.
4. A result that was cut says so, and which call of ` + "`read_cache`" + ` reads on. Read on before you draw conclusions from a part.
5. Never guess the name of a tool. If nothing fits, search once more in other words, then say that there is no such tool.
`)
	} else {
		b.WriteString(`You reach the tools of several MCP servers through mcpproxy. They are in your list of tools as ` + "`server__tool`" + `: the part before ` + "`__`" + ` is the server.

1. Call a tool by its name as it is listed; never guess one. The list can change while you work.
2. Choose by the description, which begins with the server in brackets: two servers can have tools that look alike.
`)
		steps := 2
		if cfg.DirectToolResponseMode == "deferred" {
			steps++
			fmt.Fprintf(&b, "%d. The input schemas in the list are empty. Read that of a tool before you call it for the first time: `describe_tool {\"tool_ids\": [\"server__tool\"]}`.\n", steps)
		}
		if cfg.DirectTruncate {
			steps++
			fmt.Fprintf(&b, "%d. A result that was cut says so, and which call of `read_cache` reads on.\n", steps)
		}
	}
	b.WriteString("\nIf mcpproxy refuses a call, it says why and what a person can do about it: tell the user, and look for no way around it.\n")
	return b.String()
}

// agentServersText names servers.
func agentServersText(servers []agentServer) string {
	if len(servers) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nServers, and what they say of themselves:\n\n")
	for _, s := range servers {
		b.WriteString("- `" + s.Name + "`")
		if s.About != "" {
			b.WriteString(": \"" + s.About + "\"")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
