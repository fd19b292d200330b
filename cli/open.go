package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// storeFile is the name of the store in the data folder.
const storeFile = "mcpproxy.db"

// logFolder is the name of the folder of logs in the data folder.
const logFolder = "logs"

// config loads the configuration that the options and the environment name.
func (a *app) config() (*config.Config, error) {
	return config.Load(a.loadOptions())
}

// loadOptions is what the configuration is read with.
func (a *app) loadOptions() config.LoadOptions {
	return config.LoadOptions{
		Path:     a.Config,
		DataDir:  a.DataDir,
		LogLevel: a.LogLevel,
		Environ:  a.Environ,
		Home:     a.Home,
		Dir:      a.Dir,
	}
}

// env is where references in the configuration find their values.
func (a *app) env() config.Env { return config.Env{Environ: a.Environ, Home: a.Home, Dir: a.Dir} }

// own is how entries that lead back to this program are recognised. It listens
// nowhere, so a server on the address of "listen" is somebody else's.
func (a *app) own() config.Own {
	return config.Own{Executable: a.Executable, Home: a.Home}
}

// store opens the store for reading what is known of the servers. There is
// nothing to read where there is no file, and asking must not make one. A file
// that cannot be used is said once; the answer is then what the configuration
// alone gives.
func (a *app) store(ctx context.Context, cfg *config.Config) (*store.DB, error) {
	path := filepath.Join(cfg.DataDir, storeFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := store.Open(ctx, path, store.Options{Now: a.Now})
	var unusable *store.UnusableError
	switch {
	case errors.As(err, &unusable):
		a.say("", unusable.Error())
		a.say("hint: ", unusable.Hint)
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.opened = append(a.opened, db)
	return db, nil
}

// path makes a path of the command line absolute: ~ is the home folder, a
// relative path counts from the working folder.
func (a *app) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok && a.Home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(a.Home, rest)
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.Dir, p)
}

// noServer is the error for a name that no server has.
func noServer(cfg *config.Config, name string) error {
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	if meant := nearest(name, names); meant != "" {
		return hinted("mcpproxy list", "no server %q in %s, did you mean %q?", name, cfg.Path, meant)
	}
	if len(names) == 0 {
		return hinted("mcpproxy add "+quoteIfValid(name)+" -- COMMAND ARG...", "no server %q: %s has none", name, cfg.Path)
	}
	return hinted("mcpproxy list", "no server %q in %s", name, cfg.Path)
}

// quoteIfValid returns a name for a command to paste, or a placeholder.
func quoteIfValid(name string) string {
	if config.ValidName(name) {
		return name
	}
	return "NAME"
}
