package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tailscale/hujson"
)

// maxFileSize bounds what is read, in bytes.
const maxFileSize = 16 << 20

// LoadOptions is what a configuration is made of besides the file.
type LoadOptions struct {
	// Path, DataDir, Listen, Mode and LogLevel are command line flags and win
	// over everything; empty means not given.
	Path, DataDir, Listen, Mode, LogLevel string

	// Environ is the environment as NAME=VALUE. An empty MCPPROXY_ variable
	// counts as not set.
	Environ []string
	// Home is the home folder, for the default places and for ~.
	Home string
	// Dir is the working folder, against which relative flags and variables
	// are resolved.
	Dir string
}

// Load reads the configuration file, which may be missing, and checks that it
// and the data folder belong to this user and are not writable by everyone.
// The error is an *Error.
func Load(opts LoadOptions) (*Config, error) {
	path, err := opts.path()
	if err != nil {
		return nil, err
	}
	src, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(src, opts)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.DataDir); err == nil {
		if rule := refusal(info, os.Geteuid()); rule != "" {
			return nil, &Error{File: c.DataDir, Rule: "the data folder " + rule}
		}
	}
	return c, nil
}

// Parse makes a Config of the bytes of a file; nil bytes stand for a missing
// file. It touches nothing outside its arguments. The error is an *Error; what
// is wrong with a single server stands in that server's Err.
func Parse(src []byte, opts LoadOptions) (*Config, error) {
	path, err := opts.path()
	if err != nil {
		return nil, err
	}
	c := defaults()
	c.Path, c.Exists, c.source = path, src != nil, sourceOf(src)
	env := newEnviron(opts.Environ, runtime.GOOS)

	d := &decoder{file: path, src: []byte("{}")}
	if src != nil {
		d.src = src
	}
	top, err := d.root()
	if err != nil {
		return nil, err
	}
	root := top.Value.(*hujson.Object)
	fields := c.fields()
	if err := d.object(root, "", fields); err != nil {
		return nil, err
	}
	c.place(filepath.Dir(path), opts.Home)
	if err := applyEnviron(fields, env); err != nil {
		return nil, err
	}
	if err := opts.applyFlags(fields); err != nil {
		return nil, err
	}
	c.place(opts.Dir, opts.Home)
	if !filepath.IsAbs(c.DataDir) {
		return nil, &Error{File: path, Key: "data_dir", Value: c.DataDir, Rule: "the home folder is not known; an absolute path is needed"}
	}
	c.inheritLimits()

	if err := d.servers(c, root, env); err != nil {
		return nil, err
	}
	c.checkProfiles(d)
	c.Warnings = d.warnings
	return c, nil
}

// sourceOf is equal for equal bytes of a file, and empty for a missing one.
func sourceOf(src []byte) string {
	if src == nil {
		return ""
	}
	sum := sha256.Sum256(src)
	return string(sum[:])
}

// path is where the file is: flag, environment, default.
func (o LoadOptions) path() (string, error) {
	path := o.Path
	if path == "" {
		path, _ = newEnviron(o.Environ, runtime.GOOS).get("MCPPROXY_CONFIG")
	}
	if path == "" {
		path = defaultPath(o.Home)
	}
	path = expandHome(path, o.Home)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	if !filepath.IsAbs(path) {
		return "", &Error{File: "command line", Key: "--config", Rule: "the home folder is not known; an absolute path is needed"}
	}
	return filepath.Clean(path), nil
}

// defaultPath is the path of the file when nobody says otherwise.
func defaultPath(home string) string {
	return filepath.Join(home, ".mcpproxy", "mcp_config.json")
}

// place makes the data folder absolute: ~ is the home folder, a relative path
// counts from dir.
func (c *Config) place(dir, home string) {
	c.DataDir = expandHome(c.DataDir, home)
	if !filepath.IsAbs(c.DataDir) && !strings.HasPrefix(c.DataDir, "~") {
		c.DataDir = filepath.Join(dir, c.DataDir)
	}
}

// expandHome replaces a leading ~ or ~/ by the home folder, if that is known.
func expandHome(path, home string) string {
	if home == "" || path == "" || path[0] != '~' {
		return path
	}
	if path == "~" || path[1] == '/' || path[1] == os.PathSeparator {
		return filepath.Join(home, path[1:])
	}
	return path
}

// readFile returns nil bytes for a file that does not exist.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{File: path, Rule: "the configuration file cannot be read", Err: unwrapPath(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder")
	}
	if err != nil {
		return nil, &Error{File: path, Rule: "the configuration file cannot be read", Err: unwrapPath(err)}
	}
	if rule := refusal(info, os.Geteuid()); rule != "" {
		return nil, &Error{File: path, Rule: "the configuration file " + rule}
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(src) > maxFileSize {
		err = fmt.Errorf("is larger than %d bytes", maxFileSize)
	}
	if err != nil {
		return nil, &Error{File: path, Rule: "the configuration file cannot be read", Err: unwrapPath(err)}
	}
	return src, nil
}

// unwrapPath drops the path from a file error, for messages that name it already.
func unwrapPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// applyEnviron sets the fields that have a MCPPROXY_ variable.
func applyEnviron(fields []field, env environ) error {
	for _, f := range fields {
		if f.set == nil {
			continue
		}
		name := "MCPPROXY_" + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_"))
		text, _ := env.get(name)
		if text == "" {
			continue
		}
		if rule := f.set(scalar{text: text}); rule != "" {
			return &Error{File: "environment", Key: name, Value: shown(f.key, text), Rule: rule}
		}
	}
	return nil
}

func (o LoadOptions) applyFlags(fields []field) error {
	flags := []struct{ key, flag, text string }{
		{"data_dir", "--data-dir", o.DataDir},
		{"listen", "--http", o.Listen},
		{"routing_mode", "--mode", o.Mode},
		{"logging.level", "--log-level", o.LogLevel},
	}
	for _, flag := range flags {
		for _, f := range fields {
			if flag.text == "" || f.key != flag.key {
				continue
			}
			if rule := f.set(scalar{text: flag.text}); rule != "" {
				return &Error{File: "command line", Key: flag.flag, Value: shown(f.key, flag.text), Rule: rule}
			}
		}
	}
	return nil
}
