package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Shared reports whether one process of the server serves all clients of this
// user, and if not, why not: words for a person that tell nothing of the values
// in the entry.
//
// Nothing is shared while share_upstreams or enable_socket is off. A server with
// a URL is never shared: it has a session for each client, which costs no
// process. "shared": "auto" shares a command unless it is known to hold the
// state of one client, or has a relative path or the like, which would lead
// elsewhere from the folder a shared process starts in. "shared": true shares
// those as well: the person knows the server. It does not share a server with
// inherit_env: all, for that is a matter of secrets and not of state: one
// client's whole environment would serve the calls of all the others.
func (c *Config) Shared(s *Server) (shared bool, reason string) {
	switch {
	case !c.ShareUpstreams:
		return false, "share_upstreams is off"
	case !c.EnableSocket:
		return false, "enable_socket is off"
	case s.Command == "":
		return false, "a server with a url has a session for each client"
	case s.InheritEnv == "all":
		return false, "inherit_env is all, and each client has an environment of its own"
	case s.Shared == "false":
		return false, "shared is false"
	case s.Shared == "true":
		return true, ""
	}
	if field := s.relativePath(); field != "" {
		return false, field + " has a relative path, which counts from the client's folder"
	}
	if s.actsOnFolder() {
		return false, "the command is about the folder it starts in, and working_dir is not set"
	}
	if name := s.clientState(); name != "" {
		return false, name + " holds the state of one client"
	}
	return true, ""
}

// ResolveShared is Resolve for a server whose process serves all clients: it
// starts in the home folder, from which relative paths count, so that it does
// not matter which client needs it first.
func (s *Server) ResolveShared(env Env) (Resolved, error) {
	if !filepath.IsAbs(env.Home) {
		return Resolved{}, errors.New("the home folder is not known, so that the server cannot be shared")
	}
	env.Dir = env.Home
	out, err := s.Resolve(env)
	if _, own := s.Env["TERM"]; !own {
		// It has no terminal, and clients that differ in theirs alone can share it.
		out.Env = slices.DeleteFunc(out.Env, func(v string) bool { return strings.HasPrefix(v, "TERM=") })
	}
	return out, err
}

var (
	// explicitPath is ./x, ../x, . or .. as a whole value or where a value
	// begins within one: --flag=./x, ./a:/b, ${DIR:-./x}.
	explicitPath = regexp.MustCompile(`(?:^|[=,:;"'(]|:-)\.{1,2}(?:[/\\,:;"')}]|$)`)
	// implicitPath is a file without a folder that is certain: dist/index.js.
	implicitPath = regexp.MustCompile(`(?i)(?:^|[=,;"'(]|:-)(?:\.env|\.?[a-z0-9_][^=,:;"'(]*\.(?:` +
		`[mc]?[jt]s|[jt]sx|pyz?|rb|sh|bash|zsh|ps1|bat|cmd|exe|php|pl|lua|jar|wasm|` +
		`json[5cl]?|ya?ml|toml|ini|conf|cfg|env|xml|csv|tsv|db|sqlite3?|duckdb|pem|crt))(?:[,:;"')}]|$)`)
	// fixedPath is a value that means the same from every folder, or that
	// cannot be judged before it is resolved.
	fixedPath = regexp.MustCompile(`^(?:[/\\~]|[A-Za-z]:[/\\]|\$\{)`)
)

// relativePath returns the first field with a path that counts from the folder
// the process starts in, empty when there is none.
func (s *Server) relativePath() string {
	if s.WorkingDir != "" && !fixedPath.MatchString(s.WorkingDir) {
		return "working_dir"
	}
	if strings.ContainsAny(s.Command, `/\`) && !fixedPath.MatchString(s.Command) {
		return "command"
	}
	inShell := isShell(ProgramName(s.Command))
	for i, arg := range s.Args {
		words := []string{arg}
		if inShell {
			words = strings.Fields(arg)
		}
		for _, word := range words {
			if explicitPath.MatchString(word) || implicitPath.MatchString(word) {
				return fmt.Sprintf("args[%d]", i)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if explicitPath.MatchString(s.Env[name]) {
			return "env." + name
		}
	}
	if s.Isolation != nil {
		for i, arg := range s.Isolation.ExtraArgs {
			if explicitPath.MatchString(arg) {
				return fmt.Sprintf("isolation.extra_args[%d]", i)
			}
		}
	}
	return ""
}

// actsOnFolder reports whether the command runs what the project in its folder
// says, as npm start does. One that names a place of its own does not.
func (s *Server) actsOnFolder() bool {
	if s.WorkingDir != "" {
		return false
	}
	verb := ""
	for _, arg := range s.Args {
		_, value, _ := strings.Cut(arg, "=")
		if fixedPath.MatchString(arg) || fixedPath.MatchString(value) {
			return false
		}
		if verb == "" && !strings.HasPrefix(arg, "-") {
			verb = arg
		}
	}
	switch ProgramName(s.Command) {
	case "make", "just", "rake", "docker-compose", "podman-compose":
		return true
	case "npm", "pnpm", "yarn", "bun":
		return verb == "run" || verb == "run-script" || verb == "start"
	case "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "cargo":
		return verb == "run"
	case "docker", "podman":
		return verb == "compose"
	case "deno":
		return verb == "task"
	case "bundle":
		return verb == "exec"
	}
	return false
}

// ProgramName is the name of a command without folder and extension, in lower
// case: npx for /usr/bin/npx and for C:\nodejs\npx.cmd.
func ProgramName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// isShell reports whether a program takes a whole command line as one argument.
func isShell(program string) bool {
	switch program {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "powershell", "pwsh":
		return true
	}
	return false
}
