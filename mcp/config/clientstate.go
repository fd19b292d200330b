package config

import (
	"iter"
	"regexp"
	"strings"
)

// clientState returns the name of the program, package or image in the command
// that is known to hold the state of one client, empty when there is none.
func (s *Server) clientState() string {
	command := ProgramName(s.Command)
	if holdsClientState(packageName(command)) {
		return command
	}
	words := append([]string{s.Command}, s.Args...)
	if isShell(command) {
		words = strings.FieldsFunc(strings.Join(s.Args, " "), func(r rune) bool { return strings.ContainsRune(" \t\n\"';&|()", r) })
	}
	if s.Isolation != nil {
		words = append(words, s.Isolation.Image)
	}
	for _, word := range words {
		for name := range packageNames(word) {
			if holdsClientState(name) {
				return name
			}
		}
	}
	return ""
}

var (
	// scheme is what may stand before a package name.
	scheme = regexp.MustCompile(`^(?:npm:|jsr:|github:|(?:git\+)?(?:https?|ssh)://[^/]*/)`)
	// version is what may stand behind one: @1.2, ==1.2, >=1, [extra], :tag.
	version = regexp.MustCompile(`(?:[\[<>=!~;#].*|@[^/]*|:[^/]*)$`)
	// scriptFile is the end of the path of an installed program.
	scriptFile = regexp.MustCompile(`\.(?:[mc]?[jt]s|py)$`)
)

// packageNames are the names by which a word of a command line may mean a
// package of npm or PyPI, a repository or an image, in lower case.
func packageNames(word string) iter.Seq[string] {
	word = strings.ToLower(strings.ReplaceAll(word, `\`, "/"))
	if strings.HasPrefix(word, "-") {
		_, word, _ = strings.Cut(word, "=") // --package=name
	}
	installed := fixedPath.MatchString(word) || strings.HasPrefix(word, ".")
	return func(yield func(string) bool) {
		if installed {
			// Other paths are what a server works on: a folder may be called
			// anything.
			if !scriptFile.MatchString(word) {
				return
			}
			scope := ""
			for part := range strings.SplitSeq(word, "/") {
				if !yield(packageName(scope + part)) {
					return
				}
				scope = ""
				if strings.HasPrefix(part, "@") {
					scope = part + "/"
				}
			}
			return
		}
		word = scheme.ReplaceAllString(word, "")
		if strings.HasPrefix(word, "@") {
			word = "@" + version.ReplaceAllString(word[1:], "")
		} else {
			word = version.ReplaceAllString(word, "")
		}
		parts := strings.Split(strings.TrimSuffix(word, ".git"), "/")
		last := parts[len(parts)-1]
		if len(parts) > 1 {
			owner := parts[len(parts)-2]
			if !yield(owner+"/"+last) || strings.HasPrefix(owner, "@") {
				return
			}
		}
		yield(packageName(last))
	}
}

// packageName makes the spellings of a name on PyPI one.
func packageName(name string) string {
	if strings.HasPrefix(name, "@") {
		return name
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(name)
}

// holdsClientState is the shipped list of what holds the state of one client:
// the page that is open, the folder a shell stands in, a train of thought. Two
// clients in one process would see and disturb each other's.
func holdsClientState(name string) bool {
	switch name {
	// Browsers.
	case "@playwright/mcp", "playwright/mcp", "mcp/playwright",
		"playwright-mcp", "playwright-mcp-server", "playwright-server", "mcp-playwright", "mcp-server-playwright", "mcplaywright",
		"@executeautomation/playwright-mcp-server", "@automatalabs/mcp-server-playwright", "@cloudflare/playwright-mcp",
		"@ejazullah/mcp-playwright", "@tontoko/fast-playwright-mcp",
		"@modelcontextprotocol/server-puppeteer", "mcp/puppeteer", "@hisma/server-puppeteer",
		"puppeteer-mcp-server", "puppeteer-mcp-claude", "mcp-server-puppeteer",
		"chrome-devtools-mcp", "firefox-devtools-mcp", "@padenot/firefox-devtools-mcp", "mcp-chrome-bridge",
		"browser-use", "browser-use-mcp", "browser-use-mcp-server", "mcp-browser-use", "mcp-server-browser-use",
		"@browsermcp/mcp", "browsermcp", "browser-mcp", "mcp-browser", "agent-browser-mcp", "stealth-browser-mcp",
		"@agent-infra/mcp-server-browser", "mcp-server-browser", "@agentdeskai/browser-tools-mcp", "@agentdeskai/browser-tools-server",
		"@browserbasehq/mcp", "@browserbasehq/mcp-server-browserbase", "@browserbasehq/mcp-stagehand", "@browserbasehq/mcp-server-stagehand",
		"mcp-server-browserbase", "hyperbrowser-mcp",
		"@angiejones/mcp-selenium", "mcp-selenium", "selenium-mcp", "selenium-mcp-server", "mcp-server-selenium",
		"camoufox-mcp", "camoufox-mcp-server", "mcp-camoufox":
		return true
	// Shells and terminals.
	case "@wonderwhy-er/desktop-commander", "desktop-commander", "desktopcommandermcp", "mcp/desktop-commander",
		"iterm-mcp", "iterm-mcp-server", "iterm2-mcp", "iterm2-py-mcp", "mcp-server-iterm2",
		"tmux-mcp", "tmux-mcp-server", "mcp-tmux", "mcp-tmux-server", "libtmux-mcp",
		"mcp-shell", "mcp-shell-server", "mcp-server-shell", "shell-mcp", "shell-mcp-server", "super-shell-mcp", "local-shell-mcp",
		"@mako10k/mcp-shell-server", "@mkusaka/mcp-shell-server", "@openai/codex-shell-tool-mcp",
		"mcp-server-commands", "@agent-infra/mcp-server-commands", "cli-mcp-server", "bash-command-mcp",
		"powershell-mcp", "@simonb97/server-win-cli", "server-win-cli", "wcgw", "pty-mcp",
		"terminal-mcp", "terminal-mcp-server", "mcp-terminal", "terminal-controller", "terminal-controller-mcp",
		"terminal-control-mcp", "interactive-terminal-mcp", "mcp-interactive-terminal", "remote-terminal-mcp":
		return true
	// Sequential thinking.
	case "@modelcontextprotocol/server-sequential-thinking", "mcp/sequentialthinking",
		"sequential-thinking", "sequential-thinking-mcp", "mcp-sequential-thinking", "mcp-server-sequential-thinking",
		"mcp-sequentialthinking-tools", "mcp-server-mas-sequential-thinking":
		return true
	}
	return false
}
