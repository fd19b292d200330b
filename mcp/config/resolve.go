package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Env is the surroundings in which a server is resolved.
type Env struct {
	// Environ is the environment of this program as NAME=VALUE.
	Environ []string
	// Home is the home folder.
	Home string
	// Dir is the absolute folder in which a child without working_dir starts;
	// a relative working_dir counts from it.
	Dir string
	// Keyring returns a secret by its name; nil asks the system's keyring
	// (service "mcpproxy"), which may ask the person to unlock it.
	Keyring func(name string) (string, error)
}

// Resolved is what a connection is started with. It holds secrets: it is never
// stored, logged or shown.
type Resolved struct {
	// Command is an absolute path, except with Isolation.Enabled, where it is
	// looked up inside the container. Empty for a server with a URL.
	Command string
	Args    []string
	// Env is the complete environment of the child as NAME=VALUE, sorted.
	Env []string
	// Dir is the folder the child starts in, absolute or empty.
	Dir       string
	URL       string
	Headers   map[string]string
	OAuth     *OAuth
	Isolation *Isolation
	// Secrets are the values to mask wherever they turn up, the longest
	// first: what came from references, and the values of env, headers, args
	// and url whose key looks secret. Values under six bytes are left out,
	// because masking them would garble ordinary text.
	Secrets []string
}

// Resolve finds the values of all references, makes the environment of the
// child and looks up the command. The error is the server's Err, a
// *ReferenceError, a *CommandError, or says which field is wrong. It does not
// name the server unless it is the server's Err or a *ReferenceError.
func (s *Server) Resolve(env Env) (Resolved, error) {
	var unresolved *ReferenceError
	if s.Err != nil && !errors.As(s.Err, &unresolved) {
		return Resolved{}, s.Err
	}
	r := &resolver{env: env, environ: newEnviron(env.Environ, runtime.GOOS), file: s.file}
	plain, err := s.expand(func(field, value string) (string, error) {
		return r.expand(s.Name, field, value)
	})
	if err != nil {
		return Resolved{}, err
	}
	out := Resolved{
		Args: plain.Args, URL: plain.URL, Headers: plain.Headers,
		OAuth: plain.OAuth, Isolation: plain.Isolation,
		Secrets: secrets(append(r.secrets, plain.secretParts()...)),
	}
	if s.Command == "" {
		if rule := urlRule(plain.URL); rule != "" {
			return Resolved{}, fmt.Errorf("url %s", rule)
		}
		return out, nil
	}
	child := r.environ.inherited(s.InheritEnv == "all")
	for name, value := range plain.Env {
		child.set(name, value)
	}
	if marker := nestingMarker(r.environ, s.file); marker != "" {
		child.set(parentVariable, marker)
	}
	out.Env = child.list()

	if out.Dir, err = workingDir(plain.WorkingDir, env); err != nil {
		return Resolved{}, fmt.Errorf("working_dir: %w", err)
	}
	out.Command = plain.Command
	if s.Isolation == nil || !s.Isolation.Enabled {
		if out.Command, err = findCommand(expandHome(plain.Command, env.Home), out.Dir, child); err != nil {
			return Resolved{}, err
		}
	}
	return out, nil
}

// workingDir is the folder a child starts in, which must exist.
func workingDir(dir string, env Env) (string, error) {
	if dir == "" {
		return env.Dir, nil
	}
	dir = expandHome(dir, env.Home)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(env.Dir, dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, unwrapPath(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: not a folder", dir)
	}
	return dir, nil
}

// findCommand looks a command up on the PATH of the child.
func findCommand(command, dir string, child environ) (string, error) {
	l := lookup{command: command, dir: dir}
	l.path, _ = child.get("PATH")
	if runtime.GOOS == "windows" {
		l.pathext, _ = child.get("PATHEXT")
		return l.windows(isFile)
	}
	return l.unix(runnable)
}

// secrets sorts values for masking and drops what is too short for it.
func secrets(values []string) []string {
	seen := make(map[string]bool)
	for _, v := range values {
		if len(v) >= 6 {
			seen[v] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		if a < b {
			return -1
		}
		return 1
	})
}
