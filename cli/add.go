package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/textproto"
	"strings"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/config"
)

// addCmd adds a server to the configuration.
type addCmd struct {
	Name      string   `arg:"" help:"what to call the server: letters, digits, - and _"`
	URL       []string `arg:"" optional:"" name:"url" help:"where the server is; for one that is started here, write -- and its command instead"`
	Env       []string `short:"e" sep:"none" help:"give the command this environment variable; may be repeated" placeholder:"KEY=VALUE"`
	Cwd       string   `help:"start the command in DIR" placeholder:"DIR"`
	Header    []string `short:"H" sep:"none" help:"send this header with every request; may be repeated" placeholder:"'KEY: VALUE'"`
	Transport string   `short:"t" help:"how to talk to it: http or sse for a URL, stdio for a command (default for a URL: http, and sse if it does not know that)" placeholder:"TRANSPORT"`

	command []string // what stood after --
	dashes  bool     // whether there was a --
}

// Help implements kong.HelpProvider.
func (*addCmd) Help() string {
	return `Values are stored as given. A reference such as ${env:GITHUB_TOKEN} keeps a secret out of the file; quote it, so that the shell leaves it alone.

    mcpproxy add github -e 'TOKEN=${env:GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github
    mcpproxy add docs https://example.com/mcp -H 'Authorization: Bearer ${env:DOCS_TOKEN}'`
}

// takeRest receives what stood after --.
func (c *addCmd) takeRest(args []string) { c.command, c.dashes = args, true }

// run adds the server.
func (c *addCmd) run(ctx context.Context, a *app) error {
	server, err := c.entry(a)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	raw, err := server.encode()
	if err != nil {
		return err
	}
	err = config.AddServer(ctx, cfg.Path, c.Name, raw)
	if errors.Is(err, config.ErrServerExists) {
		return hinted("mcpproxy remove "+c.Name, "%s has a server %q already", cfg.Path, c.Name)
	}
	if err != nil {
		return err
	}
	return a.changed(ctx, c.Name, "added")
}

// newServer is an entry as it is written into the file.
type newServer struct {
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Protocol   string            `json:"protocol,omitempty"`
}

// encode is the entry as JSON, written the way a person would.
func (s newServer) encode() (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	return b.Bytes(), err
}

// entry is the entry that the arguments describe.
func (c *addCmd) entry(a *app) (newServer, error) {
	var s newServer
	if !config.ValidName(c.Name) {
		return s, misuse("mcpproxy add --help", "%q is no name for a server: use 1 to 64 letters, digits, - or _, without __ and without _ at either end", c.Name)
	}
	fill := c.remote
	if c.dashes {
		fill = func(s *newServer) error { return c.local(a, s) }
	}
	err := fill(&s)
	return s, err
}

// local fills in a server that is started here.
func (c *addCmd) local(a *app, s *newServer) error {
	hint := "mcpproxy add " + c.Name + " -- COMMAND ARG..."
	switch {
	case len(c.URL) > 0:
		return misuse(hint, "there is a command after -- and also %q before it", c.URL[0])
	case len(c.command) == 0 || c.command[0] == "":
		return misuse(hint, "there is no command after --")
	case len(c.Header) > 0:
		return misuse(hint, "-H is for a URL; a command gets its environment with -e")
	case c.Transport != "" && c.Transport != "stdio":
		return misuse(hint, "--transport %s is for a URL; a command is spoken to on stdin and stdout", c.Transport)
	}
	s.Command, s.Args = c.command[0], c.command[1:]
	if c.Cwd != "" {
		s.WorkingDir = c.Cwd
		if !strings.HasPrefix(c.Cwd, "~") && !strings.Contains(c.Cwd, "${") {
			s.WorkingDir = a.path(c.Cwd)
		}
	}
	for _, pair := range c.Env {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return misuse("mcpproxy add --help", "-e %s is not KEY=VALUE", pair)
		}
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[key] = value
	}
	return nil
}

// remote fills in a server that is reached by its address.
func (c *addCmd) remote(s *newServer) error {
	hint := "mcpproxy add " + c.Name + " -- COMMAND ARG..."
	switch {
	case len(c.URL) == 0:
		return misuse(hint, "say what to add: a URL, or -- and a command")
	case len(c.URL) > 1 || !strings.Contains(c.URL[0], "://"):
		if !strings.HasPrefix(c.URL[0], "-") {
			hint = "mcpproxy add " + c.Name + " -- " + strings.Join(c.URL, " ")
		}
		return misuse(hint, "%q is not a URL; a command stands after --", strings.Join(c.URL, " "))
	case len(c.Env) > 0 || c.Cwd != "":
		return misuse("", "-e and --cwd are for a command, %s is a URL", c.URL[0])
	}
	s.URL = c.URL[0]
	switch c.Transport {
	case "", "http", "sse":
		s.Protocol = c.Transport
	case "streamable-http":
		s.Protocol = "http"
	default:
		return misuse("", "--transport %q is neither http nor sse", c.Transport)
	}
	for _, line := range c.Header {
		key, value, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if !ok || key == "" || strings.ContainsAny(key, " \t\"") {
			return misuse("mcpproxy add --help", "-H %q is not 'KEY: VALUE'", line)
		}
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[textproto.CanonicalMIMEHeaderKey(key)] = strings.TrimSpace(value)
	}
	return nil
}

// changed tells that the entry of a server was written, records it, and prints it
// for a program that asked for JSON. What is wrong with the entry is said too.
func (a *app) changed(ctx context.Context, name, what string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	cfg.SkipRecursion(a.own())
	server := cfg.Server(name)
	if server == nil {
		return nil
	}
	a.audit(ctx, cfg, activity.Record{Server: name}, what)
	a.note("%s %s in %s", what, name, cfg.Path)
	if server.Err != nil {
		a.note("it cannot be used as it is: %v", server.Err)
	}
	if a.JSON {
		return a.printServer(ctx, cfg, name)
	}
	return nil
}
