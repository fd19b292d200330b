package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lookup is a command and where to look for it. Its methods are pure but for
// the probe they are given, so that each system's rule can be tested anywhere.
type lookup struct {
	command string
	dir     string // folder from which a relative path counts
	path    string // the child's PATH
	pathext string // the child's PATHEXT, Windows only
}

// unix finds a command with a slash as a path and any other on PATH. probe
// returns why a file cannot be run, or an empty string. Entries of PATH that
// are relative or empty are not searched: what they mean depends on where
// somebody stands.
func (l lookup) unix(probe func(path string) (why string)) (string, error) {
	if strings.Contains(l.command, "/") {
		path := l.command
		if !strings.HasPrefix(path, "/") && l.dir != "" {
			path = strings.TrimSuffix(l.dir, "/") + "/" + path
		}
		path = filepath.Clean(path)
		if why := probe(path); why != "" {
			return "", &CommandError{Command: l.command, Tried: path, Why: why}
		}
		return path, nil
	}
	for _, folder := range strings.Split(l.path, ":") {
		if !strings.HasPrefix(folder, "/") || l.command == "" {
			continue
		}
		path := strings.TrimSuffix(folder, "/") + "/" + l.command
		if probe(path) == "" {
			return path, nil
		}
	}
	return "", &CommandError{Command: l.command, Path: l.path}
}

// windows finds a command as cmd.exe does, but for the current folder, which is
// not searched: a name without an extension of PATHEXT gets each of them in
// turn, so that npx becomes npx.cmd.
func (l lookup) windows(probe func(path string) (why string)) (string, error) {
	extensions := l.extensions()
	if strings.ContainsAny(l.command, `\/:`) {
		path := strings.ReplaceAll(l.command, "/", `\`)
		if !strings.HasPrefix(path, `\`) && !strings.Contains(path, ":") {
			path = strings.TrimSuffix(l.dir, `\`) + `\` + strings.TrimPrefix(path, `.\`)
		}
		for _, ext := range extensions {
			if probe(path+ext) == "" {
				return path + ext, nil
			}
		}
		return "", &CommandError{Command: l.command, Tried: path, Why: probe(path + extensions[0])}
	}
	for _, folder := range strings.Split(l.path, ";") {
		folder = strings.Trim(folder, `"`)
		if !strings.Contains(folder, `:\`) && !strings.HasPrefix(folder, `\\`) || l.command == "" {
			continue
		}
		for _, ext := range extensions {
			path := strings.TrimSuffix(folder, `\`) + `\` + l.command + ext
			if probe(path) == "" {
				return path, nil
			}
		}
	}
	return "", &CommandError{Command: l.command, Path: l.path}
}

// extensions are what to put behind the command: nothing when it has one of
// PATHEXT already.
func (l lookup) extensions() []string {
	pathext := l.pathext
	if pathext == "" {
		pathext = ".com;.exe;.bat;.cmd"
	}
	var all []string
	for _, ext := range strings.Split(strings.ToLower(pathext), ";") {
		if ext == "" {
			continue
		}
		if strings.HasSuffix(strings.ToLower(l.command), ext) {
			return []string{""}
		}
		all = append(all, ext)
	}
	if all == nil {
		return []string{""}
	}
	return all
}

// runnable says why a file cannot be run.
func runnable(path string) string {
	if why := isFile(path); why != "" {
		return why
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 == 0 {
		return "not executable"
	}
	return ""
}

// isFile says why a path is no file.
func isFile(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case err != nil:
		return unwrapPath(err).Error()
	case info.IsDir():
		return "is a folder"
	}
	return ""
}

// BatchCommandLine is the command line that starts a Windows batch file (.cmd,
// .bat) through cmd.exe so that each argument arrives as one unbroken string.
// cmd.exe, which interprets the line a second time, has no way to pass a line
// break: such an argument is an error.
//
// The rules are those of the command interpreter: everything is quoted, quotes
// are doubled, and a % is followed by an expansion that yields nothing, so that
// no variable is named.
func BatchCommandLine(cmdExe, script string, args []string) (string, error) {
	var b strings.Builder
	b.WriteString(`"` + cmdExe + `" /e:ON /v:OFF /d /c "`)
	for i, arg := range append([]string{script}, args...) {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", errors.New("an argument of a batch file must not contain a line break")
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('"')
		backslashes := 0
		for _, c := range []byte(arg) {
			switch c {
			case '\\':
				backslashes++
			case '"':
				b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
				backslashes = 0
			case '%':
				b.WriteString("%%cd:~,")
				backslashes = 0
			default:
				backslashes = 0
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
	}
	b.WriteByte('"')
	return b.String(), nil
}
