package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestShared(t *testing.T) {
	const (
		yes      = ""
		relative = "relative path"
		state    = "holds the state of one client"
		folder   = "the folder it starts in"
	)
	for _, test := range []struct {
		entry  string
		reason string // part of it; empty: shared
	}{
		{`"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]`, yes},
		{`"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/u/code/tmux-mcp", "~/notes"]`, yes},
		{`"command": "uvx", "args": ["mcp-server-git", "--repository", "/srv/repo.git"]`, yes},
		{`"command": "uvx", "args": ["mcp-server-fetch==1.0"], "env": {"A": "x/y", "PATH": "/bin:/usr/bin"}`, yes},
		{`"command": "/opt/x/bin/server", "args": ["--config=/etc/x.json", "--url", "https://example.com/a/../b.json"]`, yes},
		{`"command": "~/bin/server", "working_dir": "~/x"`, yes},
		{`"command": "C:\\tools\\server.exe", "args": ["C:\\Program Files\\x\\main.js"]`, yes},
		{`"command": "node", "args": ["/Users/u/My Servers/x/dist/index.js"]`, yes},
		{`"command": "node", "args": ["${HOME}/x/index.js", "--name=a.b", "--version", "v1.2.3", "a...b"]`, yes},
		{`"command": "docker", "args": ["run", "-i", "--rm", "-v", "/srv/a:/b", "mcp/fetch:latest"]`, yes},
		{`"command": "uv", "args": ["run", "--with", "fastmcp", "fastmcp", "run", "/srv/server.py"]`, yes},
		{`"command": "uv", "args": ["--directory=/srv/x", "run", "server"]`, yes},
		{`"command": "uv", "args": ["tool", "run", "mcp-server-time"]`, yes},
		{`"command": "npm", "args": ["start"], "working_dir": "/srv/x"`, yes},
		{`"command": "sh", "args": ["-c", "exec /srv/x/run --quiet"]`, yes},
		{`"command": "npx", "args": ["@playwright/mcp-docs", "playwright-mcp-reporter", "@other/playwright-mcp"]`, yes},

		{`"command": "./server"`, "command has a " + relative},
		{`"command": "bin/server"`, "command has a " + relative},
		{`"command": "x", "working_dir": "sub"`, "working_dir has a " + relative},
		{`"command": "x", "working_dir": "./sub"`, relative},
		{`"command": "x", "args": ["a", "./x.js"]`, "args[1] has a " + relative},
		{`"command": "x", "args": ["./x.js"], "working_dir": "/srv"`, relative},
		{`"command": "x", "args": ["../x"]`, relative},
		{`"command": "x", "args": ["."]`, relative},
		{`"command": "x", "args": [".."]`, relative},
		{`"command": "x", "args": ["..\\x"]`, relative},
		{`"command": "x", "args": ["--root=./data"]`, relative},
		{`"command": "x", "args": ["--root=../data"]`, relative},
		{`"command": "x", "args": ["--roots=/a,./b"]`, relative},
		{`"command": "x", "args": ["${ROOT:-./data}"]`, relative},
		{`"command": "docker", "args": ["run", "-v", "./data:/data", "mcp/fetch"]`, relative},
		{`"command": "node", "args": ["dist/index.js"]`, relative},
		{`"command": "python3", "args": ["-u", "server.py"]`, relative},
		{`"command": "x", "args": ["--config", "config.yaml"]`, relative},
		{`"command": "x", "args": ["--env-file=.env"]`, relative},
		{`"command": "sh", "args": ["-c", "exec node ./server.js"]`, relative},
		{`"command": "x", "env": {"B": "./memory.json", "A": "../b"}`, "env.A has a " + relative},
		{`"command": "x", "isolation": {"enabled": true, "extra_args": ["--volume=./a:/b"]}`, "isolation.extra_args[0]"},

		{`"command": "npm", "args": ["run", "mcp"]`, folder},
		{`"command": "uv", "args": ["run", "server"]`, folder},
		{`"command": "make", "args": ["-s", "mcp"]`, folder},
		{`"command": "docker", "args": ["compose", "run", "mcp"]`, folder},

		{`"command": "npx", "args": ["-y", "@playwright/mcp@latest", "--headless"]`, "@playwright/mcp " + state},
		{`"command": "npx", "args": ["--package=@playwright/mcp@0.0.3", "mcp-server-playwright"]`, state},
		{`"command": "/usr/bin/npx.cmd", "args": ["chrome-devtools-mcp"]`, state},
		{`"command": "cmd", "args": ["/c", "npx", "-y", "@browsermcp/mcp"]`, state},
		{`"command": "sh", "args": ["-c", "PORT=1 npx -y '@playwright/mcp'"]`, state},
		{`"command": "bunx", "args": ["@Browserbasehq/mcp-stagehand"]`, state},
		{`"command": "deno", "args": ["run", "-A", "npm:@modelcontextprotocol/server-puppeteer@2025.5.12"]`, state},
		{`"command": "uvx", "args": ["--from", "browser-use[cli]", "browser-use", "--mcp"]`, state},
		{`"command": "uvx", "args": ["mcp_shell_server==1.0"]`, state},
		{`"command": "uvx", "args": ["--from", "git+https://github.com/someone/tmux-mcp.git@main", "serve"]`, state},
		{`"command": "python", "args": ["-m", "mcp_server_browser_use"]`, state},
		{`"command": "node", "args": ["/usr/lib/node_modules/@wonderwhy-er/desktop-commander/dist/index.js"]`, state},
		{`"command": "node", "args": ["C:\\x\\node_modules\\iterm-mcp\\build\\index.js"]`, state},
		{`"command": "/opt/bin/desktop-commander"`, state},
		{`"command": "docker", "args": ["run", "-i", "mcp/sequentialthinking"]`, state},
		{`"command": "docker", "args": ["run", "-i", "mcr.microsoft.com/playwright/mcp:v0.0.3"]`, state},
		{`"command": "docker", "args": ["run", "ghcr.io:443/someone/playwright-mcp@sha256:0123"]`, state},
		{`"command": "mcp", "isolation": {"enabled": true, "image": "mcp/puppeteer:1"}`, state},
		{`"command": "npx", "args": ["@modelcontextprotocol/server-sequential-thinking"]`, state},

		{`"command": "x", "inherit_env": "all"`, "inherit_env is all"},
		{`"command": "x", "inherit_env": "all", "shared": true`, "inherit_env is all"},
		{`"command": "x", "shared": false`, "shared is false"},
		{`"command": "npx", "args": ["@playwright/mcp", "./x"], "shared": true`, yes},
		{`"url": "https://example.com/mcp"`, "has a session for each client"},
		{`"url": "https://example.com/mcp", "shared": true`, "has a session for each client"},
	} {
		c := parse(t, `{"mcpServers": {"a": {`+test.entry+`}}}`, "HOME=/home/u")
		s := &c.Servers[0]
		if s.Err != nil {
			t.Fatal(test.entry, s.Err)
		}
		shared, reason := c.Shared(s)
		if shared != (test.reason == "") || shared != (reason == "") || !strings.Contains(reason, test.reason) {
			t.Errorf("%s: %v, %q", test.entry, shared, reason)
		}
		for _, off := range []string{"share_upstreams", "enable_socket"} {
			c := parse(t, `{"`+off+`": false, "mcpServers": {"a": {`+test.entry+`, "shared": true}}}`, "HOME=/home/u")
			if shared, reason := c.Shared(&c.Servers[0]); shared || reason != off+" is off" {
				t.Errorf("%s without %s: %v, %q", test.entry, off, shared, reason)
			}
		}
	}
}

// A shared process is the same whichever client of the user starts it (K13).
func TestResolveShared(t *testing.T) {
	home := t.TempDir()
	command := script(t, filepath.Join(home, "bin", "s"))
	c := parse(t, `{"mcpServers": {"plain": {"command": "s"}, "relative": {"command": "./bin/s", "args": ["./x"], "working_dir": "bin/.."}}}`)
	// What two terminals and a desktop of one user have in common, and what not.
	common := []string{"HOME=" + home, "PATH=" + filepath.Dir(command), "LANG=C.UTF-8", "LC_TIME=C", "XDG_RUNTIME_DIR=/run/user/1", "XDG_CONFIG_HOME=/c", "XDG_DATA_DIRS=/d"}
	one := []string{"XDG_SESSION_ID=3", "XDG_VTNR=2", "XDG_SEAT=seat0", "XDG_SESSION_TYPE=x11", "XDG_ACTIVATION_TOKEN=a", "XDG_GREETER_DATA_DIR=/g", "WINDOWID=7",
		"LC_TERMINAL=iTerm2", "LC_TERMINAL_VERSION=3.5", "TERM=xterm", "TERM_SESSION_ID=w0t0", "SSH_TTY=/dev/pts/1", "DISPLAY=:0", "PWD=/a", "SHLVL=2", "COLUMNS=80"}
	for _, name := range []string{"plain", "relative"} {
		s := c.Server(name)
		a, err := s.ResolveShared(Env{Environ: append(slices.Clone(common), one...), Home: home, Dir: "/somewhere"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.ResolveShared(Env{Environ: common, Home: home, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if a.Dir != home || b.Dir != home || a.Command != command || b.Command != command {
			t.Errorf("%s: %s in %s, %s in %s", name, a.Command, a.Dir, b.Command, b.Dir)
		}
		if !slices.Equal(a.Env, b.Env) {
			t.Errorf("%s: environments differ:\n%q\n%q", name, a.Env, b.Env)
		}
		for _, variable := range common {
			if !slices.Contains(b.Env, variable) {
				t.Errorf("%s: no %s", name, variable)
			}
		}
	}
	if _, err := c.Server("plain").ResolveShared(Env{Environ: common, Dir: "/"}); err == nil {
		t.Error("shared without a home folder")
	}
}

// TestSharedChildHasNoTerminal lets clients share that differ only in their
// terminal, and leaves a TERM that the entry sets.
func TestSharedChildHasNoTerminal(t *testing.T) {
	for entry, want := range map[string]string{`{}`: "", `{"TERM":"dumb"}`: "TERM=dumb"} {
		c, err := Parse([]byte(`{"mcpServers":[{"name":"a","command":"/bin/sh","env":`+entry+`}]}`), LoadOptions{Path: "/x", Home: "/", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Servers[0].ResolveShared(Env{Environ: []string{"TERM=xterm", "PATH=/bin"}, Home: "/", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range r.Env {
			if strings.HasPrefix(v, "TERM=") {
				got = v
			}
		}
		if got != want {
			t.Errorf("env %s: %q, want %q", entry, got, want)
		}
	}
}
