package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// command is one command with its options and arguments filled in.
type command interface {
	run(ctx context.Context, a *app) error
}

// globals are the options that every command takes.
type globals struct {
	Config   string `help:"read the configuration from FILE (default: MCPPROXY_CONFIG, else ~/.mcpproxy/mcp_config.json)" placeholder:"FILE"`
	DataDir  string `help:"keep the store, logs and sockets in DIR (default: MCPPROXY_DATA_DIR, else data_dir of the configuration)" placeholder:"DIR"`
	LogLevel string `help:"say on stderr what is at least this important: debug, info, warn or error (default: logging.level of the configuration)" placeholder:"LEVEL"`
	JSON     bool   `name:"json" help:"print one JSON object"`
	Quiet    bool   `short:"q" help:"print names only, and nothing on stderr but errors"`
}

// check refuses values and pairs of global options that make no sense.
func (g globals) check() error {
	if g.JSON && g.Quiet {
		return misuse("", "--json and -q exclude each other")
	}
	levels := []string{"", "debug", "info", "warn", "error"}
	if !slices.Contains(levels, g.LogLevel) {
		return misuse("", "--log-level %q is none of debug, info, warn, error", g.LogLevel)
	}
	return nil
}

// entry is one command of the grammar. The grammar of an invocation is built
// from the entries it needs: the whole takes Kong longer to build than the
// program has to start.
type entry struct {
	name   string
	help   string
	hidden bool
	build  func() any
}

// entries lists the commands in the order in which help shows them.
func entries() []entry {
	return []entry{
		{name: "run", help: "serve one MCP client on stdin and stdout (the default command)", build: func() any { return new(runCmd) }},
		{name: "add", help: "add a server to the configuration", build: func() any { return new(addCmd) }},
		{name: "list", help: "list the servers and how they are", build: func() any { return new(listCmd) }},
		{name: "get", help: "show one server", build: func() any { return new(getCmd) }},
		{name: "remove", help: "take a server out of the configuration", build: func() any { return new(removeCmd) }},
		{name: "enable", help: "let a server be used again", build: func() any { return new(enableCmd) }},
		{name: "disable", help: "keep a server in the configuration without using it", build: func() any { return new(disableCmd) }},
		{name: "restart", help: "have every running mcpproxy start a server again", build: func() any { return new(restartCmd) }},
		{name: "logs", help: "print what a server wrote to its stderr", build: func() any { return new(logsCmd) }},
		{name: "tools", help: "list, show and call the tools of the servers", build: func() any { return new(toolsCmd) }},
		{name: "quarantine", help: "review what is new or changed and held until a person approves it", build: func() any { return new(quarantineCmd) }},
		{name: "token", help: "make, list and end the tokens that limit what a client may use", build: func() any { return new(tokenCmd) }},
		{name: "activity", help: "list, follow, sum up and export what clients did", build: func() any { return new(activityCmd) }},
		{name: "agent-instructions", help: "print a text for CLAUDE.md or AGENTS.md that tells agents how to reach the tools", build: func() any { return new(agentInstructionsCmd) }},
		{name: "hub", help: "show or stop the process that runs the shared servers", build: func() any { return new(hubCmd) }},
		{name: "status", help: "show version, mode, servers by state, store and configuration", build: func() any { return new(statusCmd) }},
		{name: "demo", help: "show what this does, with nothing configured", build: func() any { return new(demoCmd) }},
		{name: "version", help: "print the version and what it was built with", build: func() any { return new(versionCmd) }},
		{name: hubRunName, help: "run the servers that several clients share", hidden: true, build: func() any { return new(hubRunCmd) }},
		{name: guardName, help: "stop servers that a killed mcpproxy left behind", hidden: true, build: func() any { return new(guardCmd) }},
		{name: "demo-server", help: "serve notes from a folder as an MCP server on stdin and stdout", hidden: true, build: func() any { return new(demoServerCmd) }},
	}
}

// description opens the help of the program.
const description = `One MCP server in front of many: MCP clients start mcpproxy, and it reaches the servers of one configuration file for them.`

// globalGroup is the heading of the options that every command has.
const globalGroup = "Global flags:"

// outline is the root of the grammar and the detailed part of its help.
type outline struct {
	globals `group:"Global flags:"`
}

// Help implements kong.HelpProvider.
func (*outline) Help() string {
	return `Without a command, mcpproxy serves the client that started it.

    mcpproxy add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    mcpproxy --mode direct

Exit codes: 0 done, 1 failed, 2 usage, 3 configuration invalid, 4 login needed, 5 a server is unavailable, 130 interrupted.`
}

// invocation is a parsed command line. command is nil when help was asked for
// and has been printed.
type invocation struct {
	globals globals
	command command
}

// parse reads the command line. The first word is checked before Kong sees it:
// beside a default command Kong takes a mistyped name for an argument.
func (a *app) parse() (invocation, error) {
	word, at := firstWord(a.Args)
	args := slices.Clone(a.Args)
	if at >= 0 {
		args = slices.Delete(args, at, at+1)
	}
	switch {
	case word == "" && slices.ContainsFunc(args, isHelp):
		return a.parseWith(entries(), []string{"--help"})
	case word == "" && slices.Contains(args, "--version"):
		return invocation{command: new(versionCmd)}, nil
	case word == "":
		return a.parseDefault(args)
	case word == "help":
		if word, at = firstWord(args); at < 0 {
			return a.parseWith(entries(), []string{"--help"})
		}
		args = append(slices.Delete(args, at, at+1), "--help")
	}
	for _, e := range entries() {
		if e.name == word {
			return a.parseCommand(e, args)
		}
	}
	return invocation{}, unknownWord(word)
}

// parseDefault is parse for a command line without a command: the options of
// run, or nothing to go by, in which case a person gets the short help.
func (a *app) parseDefault(args []string) (invocation, error) {
	run := entries()[0]
	inv, err := a.parseCommand(run, args)
	if err != nil || inv.command == nil {
		return inv, err
	}
	if inv.command.(*runCmd).bare() && a.IsTerminal(Stdin) {
		_, _ = io.WriteString(a.Stderr, shortHelp)
		return invocation{}, silent(exitUsage)
	}
	return inv, nil
}

// shortHelp is for a person who typed the program's name and nothing else.
const shortHelp = `mcpproxy is one MCP server in front of many; an MCP client starts it

  mcpproxy add NAME -- COMMAND ARG...   add a server that runs here
  mcpproxy add NAME URL                 add a server that runs elsewhere
  mcpproxy list                         list the servers and how they are
  mcpproxy tools list                   list their tools
  mcpproxy --mode direct                serve one client on stdin and stdout
  mcpproxy --help                       show all commands and options
`

// parseCommand parses the arguments of one command, given without its name.
// What follows "--" is no business of Kong's: only a command that takes a
// command line of its own may have it.
func (a *app) parseCommand(e entry, args []string) (invocation, error) {
	var rest []string
	cut := slices.Index(args, "--")
	if cut >= 0 {
		args, rest = args[:cut], args[cut+1:]
	}
	inv, err := a.parseWith([]entry{e}, append([]string{e.name}, args...))
	if err != nil || inv.command == nil || cut < 0 {
		return inv, err
	}
	taker, ok := inv.command.(interface{ takeRest(args []string) })
	if !ok {
		return inv, misuse("mcpproxy "+e.name+" --help", "%s takes nothing after --", e.name)
	}
	taker.takeRest(rest)
	return inv, nil
}

// parseWith lets Kong parse args with a grammar of the given commands.
func (a *app) parseWith(commands []entry, args []string) (invocation, error) {
	var root outline
	helped := false
	options := []kong.Option{
		kong.Name("mcpproxy"),
		kong.Description(description),
		kong.Writers(a.Stdout, a.Stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true}),
	}
	for _, e := range commands {
		var tags []string
		if e.hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(e.name, e.help, "", e.build(), tags...))
	}
	parser, err := kong.New(&root, options...)
	if err != nil {
		return invocation{}, err
	}
	parser.Model.HelpFlag.Help = "show this help"
	parser.Model.HelpFlag.Group = &kong.Group{Key: globalGroup, Title: globalGroup}
	parsed, err := parser.Parse(args)
	switch {
	case helped:
		return invocation{}, nil
	case err != nil:
		return invocation{}, misuse(helpHint(commands), "%s", usageText(err))
	}
	selected := parsed.Selected()
	chosen, ok := selected.Target.Addr().Interface().(command)
	if !ok {
		return invocation{}, misuse(helpHint(commands), "%s needs a subcommand", selected.FullPath())
	}
	return invocation{globals: root.globals, command: chosen}, nil
}

// helpHint is the command that explains what was got wrong.
func helpHint(commands []entry) string {
	if len(commands) != 1 {
		return "mcpproxy --help"
	}
	return "mcpproxy " + commands[0].name + " --help"
}

// usageText is Kong's message on a command line it does not understand.
func usageText(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		err = parse.Unwrap()
	}
	return strings.TrimSpace(err.Error())
}
