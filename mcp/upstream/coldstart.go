package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/mcp/config"
)

// warmFor is how long a package counts as installed after it was seen to start.
// A tag such as @latest may mean another version later.
const warmFor = 24 * time.Hour

// coldStarts lets package runners that would install the same package at once
// do so one after the other. npx and its like install over each other: some of
// the servers fail with errors that name neither cause nor cure, and the package
// may stay damaged.
//
// The turn holds between processes by a lock file, which the system gives back
// when its holder dies. A folder that cannot be written to keeps no server from
// starting: the turn then holds within this process only.
type coldStarts struct {
	dir string

	mu    sync.Mutex
	turns map[string]chan struct{} // by install; full while somebody starts it
	warm  map[string]time.Time     // by install: when this process saw it start
}

// newColdStarts returns the turns of all processes that use the folder dir for
// their lock and marker files, which need not exist; without a dir, those of
// this process.
func newColdStarts(dir string) *coldStarts {
	return &coldStarts{dir: dir, turns: make(map[string]chan struct{}), warm: make(map[string]time.Time)}
}

// enter waits until nobody else starts the same package cold. The caller then
// starts the server and calls leave once: with true when it has answered
// initialize, so that the next ones need not wait, or with false. For a command
// that is no package runner, or whose package was seen to start within a day,
// there is nothing to wait for. The error is ctx's cause; there is no leave then.
func (c *coldStarts) enter(ctx context.Context, command string, args []string) (leave func(ok bool), err error) {
	install := installOf(command, args)
	if install == "" || c.isWarm(install) {
		return func(bool) {}, nil
	}
	turn := c.turn(install)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another start of the same package: %w", context.Cause(ctx))
	}
	unlock, err := c.lock(ctx, install)
	if err != nil {
		<-turn
		return nil, fmt.Errorf("wait for another start of the same package: %w", err)
	}
	var once sync.Once
	leave = func(ok bool) {
		once.Do(func() {
			if ok {
				c.remember(install)
			}
			unlock()
			<-turn
		})
	}
	if c.isWarm(install) { // who had the turn before has installed it
		leave(false)
		return func(bool) {}, nil
	}
	return leave, nil
}

// turn is what holds a value while this process starts an install.
func (c *coldStarts) turn(install string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[install] == nil {
		c.turns[install] = make(chan struct{}, 1)
	}
	return c.turns[install]
}

// lock takes the turn between processes. Only the end of ctx is an error.
func (c *coldStarts) lock(ctx context.Context, install string) (unlock func(), err error) {
	none := func() {}
	if c.dir == "" || os.MkdirAll(c.dir, 0o700) != nil {
		return none, nil
	}
	release, err := config.Lock(ctx, c.file(install, ".lock"))
	switch {
	case err == nil:
		return func() { _ = release() }, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return none, nil
	}
}

// isWarm reports whether an install was seen to start within a day, here or in
// another process.
func (c *coldStarts) isWarm(install string) bool {
	c.mu.Lock()
	seen := c.warm[install]
	c.mu.Unlock()
	if time.Since(seen) < warmFor {
		return true
	}
	if c.dir == "" {
		return false
	}
	info, err := os.Stat(c.file(install, ".started"))
	return err == nil && time.Since(info.ModTime()).Abs() < warmFor
}

// remember notes that an install has just started.
func (c *coldStarts) remember(install string) {
	now := time.Now()
	c.mu.Lock()
	c.warm[install] = now
	c.mu.Unlock()
	if c.dir != "" {
		// Without the marker the others take their turns, which is slow but right.
		_ = os.WriteFile(c.file(install, ".started"), []byte(now.UTC().Format(time.RFC3339)+"\n"), 0o600)
	}
}

// file is a file about an install. Its name is a hash: a package may be named by
// a URL with a password in it.
func (c *coldStarts) file(install, ext string) string {
	sum := sha256.Sum256([]byte(install))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:8])+ext)
}

// runner is a package runner and what its options mean.
type runner struct {
	cache string   // runners with one cache install over each other
	verbs []string // what stands before the package: npm exec
	names []string // options that name the package in place of the first argument
	adds  []string // options that name one more
	takes []string // other options whose value is the next argument
}

// runnerOf is the package runner of that name, and whether there is one.
func runnerOf(program string) (r runner, ok bool) {
	switch program {
	case "npx", "npm":
		r = runner{cache: "npm", names: []string{"-p", "--package"}, takes: []string{
			"-c", "--call", "--registry", "--cache", "--prefix", "--userconfig", "--loglevel", "-w", "--workspace", "--node-options", "--script-shell"}}
		if program == "npm" {
			r.verbs = []string{"exec", "x"}
		}
	case "pnpx", "pnpm":
		r = runner{cache: "pnpm", names: []string{"--package"}, takes: []string{"--registry", "--reporter", "-C", "--dir", "--allow-build"}}
		if program == "pnpm" {
			r.verbs = []string{"dlx"}
		}
	case "yarn":
		r = runner{cache: "yarn", verbs: []string{"dlx"}, names: []string{"-p", "--package"}}
	case "bunx", "bun":
		r = runner{cache: "bun", names: []string{"-p", "--package"}}
		if program == "bun" {
			r.verbs = []string{"x"}
		}
	case "uvx", "uv":
		r = runner{cache: "uv", names: []string{"--from"}, adds: []string{"-w", "--with"}, takes: []string{
			"-p", "--python", "-i", "--index-url", "--default-index", "--index", "--extra-index-url", "-f", "--find-links",
			"-c", "--constraint", "--constraints", "-b", "--build-constraints", "--overrides", "--with-requirements", "--with-editable",
			"-P", "--upgrade-package", "--refresh-package", "--reinstall-package", "--index-strategy", "--keyring-provider",
			"--prerelease", "--resolution", "--exclude-newer", "--link-mode", "--python-platform", "-C", "--config-setting",
			"--cache-dir", "--directory", "--project", "--config-file", "--env-file", "--color", "--allow-insecure-host"}}
		if program == "uv" {
			r.verbs = []string{"tool run"}
		}
	case "pipx":
		r = runner{cache: "pipx", verbs: []string{"run"}, names: []string{"--spec"}, adds: []string{"--with"}, takes: []string{
			"--python", "--pip-args", "-i", "--index-url", "--backend"}}
	}
	return r, r.cache != ""
}

// installOf names what a command would have a package runner install: equal for
// what lands in one place. It is empty for a command that installs nothing.
func installOf(command string, args []string) string {
	program := config.ProgramName(command)
	if program == "cmd" { // cmd /c npx …, as configurations for Windows have it
		i := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "/c") })
		if i < 0 || i+1 >= len(args) {
			return ""
		}
		program, args = config.ProgramName(args[i+1]), args[i+2:]
	}
	r, ok := runnerOf(program)
	if !ok {
		return ""
	}
	if args, ok = r.afterVerb(args); !ok {
		return ""
	}
	packages := r.packages(args)
	if len(packages) == 0 {
		return ""
	}
	slices.Sort(packages)
	return r.cache + " " + strings.Join(packages, " ")
}

// afterVerb is what stands behind the words that make the program a runner, and
// whether they are there.
func (r runner) afterVerb(args []string) ([]string, bool) {
	if r.verbs == nil {
		return args, true
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	for _, verb := range r.verbs {
		words := strings.Fields(verb)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return args[len(words):], true
		}
	}
	return nil, false
}

// packages are the packages that the arguments of a runner name.
func (r runner) packages(args []string) []string {
	var named, added []string
	for i := 0; i < len(args); i++ {
		option, value, given := strings.Cut(args[i], "=")
		isName, isAdd := slices.Contains(r.names, option), slices.Contains(r.adds, option)
		if !given && (isName || isAdd || slices.Contains(r.takes, option)) {
			if i++; i < len(args) {
				value = args[i]
			}
		}
		switch {
		case option == "--" && i+1 < len(args), !strings.HasPrefix(option, "-"):
			if option == "--" {
				i++
			}
			if named == nil {
				named = []string{args[i]}
			}
			return append(named, added...)
		case isName && value != "":
			named = append(named, value)
		case isAdd && value != "":
			added = append(added, value)
		}
	}
	if named == nil {
		return nil
	}
	return append(named, added...)
}
