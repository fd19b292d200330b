package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// script writes a file that can be run and returns its path.
func script(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// References are expanded everywhere, or the server names what is missing (K01).
func TestReferencesInEveryField(t *testing.T) {
	const entries = `{"mcpServers": {
		"stdio": {"command": "${BIN}/run", "args": ["a", "--x=${SET}"], "env": {"A": "${SET}", "C": "${UNSET:-d}", "D": "${EMPTY:-e}", "E": "${EMPTY}"}, "working_dir": "${BIN}"},
		"http":  {"url": "${BASE:-https://example.com}/mcp", "headers": {"Authorization": "Bearer ${env:SET}"},
		          "oauth": {"client_secret": "${SET}", "extra_params": {"p": "${SET}"}}, "isolation": {"image": "${SET}"}},
		"unset-env":     {"command": "x", "env": {"B": "${UNSET}"}},
		"unset-arg":     {"command": "x", "args": ["", "${env:UNSET}"]},
		"unset-command": {"command": "${UNSET}"},
		"unset-dir":     {"command": "x", "working_dir": "/a/${UNSET}"},
		"unset-url":     {"url": "https://${UNSET}/"},
		"unset-header":  {"url": "https://x/", "headers": {"K": "${UNSET}"}},
		"unset-oauth":   {"url": "https://x/", "oauth": {"scopes": ["${UNSET}"]}},
		"off":           {"command": "x", "env": {"B": "${UNSET}"}, "enabled": false}
	}}`
	bin := t.TempDir()
	script(t, filepath.Join(bin, "run"))
	environ := []string{"SET=value1", "EMPTY=", "BIN=" + bin}
	c := parse(t, entries, environ...)
	env := Env{Environ: environ, Home: "/home/u", Dir: "/"}

	r, err := c.Server("stdio").Resolve(env)
	if err != nil {
		t.Fatal(err)
	}
	if r.Command != bin+"/run" || r.Args[1] != "--x=value1" || r.Dir != bin {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"A=value1", "C=d", "D=e", "E="} {
		if !slices.Contains(r.Env, want) {
			t.Errorf("no %s in %q", want, r.Env)
		}
	}
	r, err = c.Server("http").Resolve(env)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL != "https://example.com/mcp" || r.Headers["Authorization"] != "Bearer value1" || r.OAuth.ClientSecret != "value1" ||
		r.OAuth.ExtraParams["p"] != "value1" || r.Isolation.Image != "value1" || r.Env != nil {
		t.Errorf("%+v", r)
	}
	if c.Server("http").Headers["Authorization"] != "Bearer ${env:SET}" || c.Server("http").OAuth.ClientSecret != "${SET}" {
		t.Error("resolving changed the entry")
	}

	for name, field := range map[string]string{
		"unset-env": "env.B", "unset-arg": "args[1]", "unset-command": "command", "unset-dir": "working_dir",
		"unset-url": "url", "unset-header": "headers.K", "unset-oauth": "oauth.scopes[0]",
	} {
		_, err := c.Server(name).Resolve(env)
		for _, err := range []error{c.Server(name).Err, err} {
			var unresolved *ReferenceError
			if !errors.As(err, &unresolved) || unresolved.Server != name || unresolved.Field != field || !strings.Contains(unresolved.Variable, "UNSET") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if c.Server("off").Err != nil {
		t.Error("a disabled server needs no variable")
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "from file\r\n")
	write(t, filepath.Join(dir, "none"), "\n")
	r := &resolver{
		file:    filepath.Join(dir, "c.json"),
		environ: newEnviron([]string{"A=1", "EMPTY=", "X=${A}", "SECRET=sss"}, "linux"),
		env: Env{Home: dir, Keyring: func(name string) (string, error) {
			switch name {
			case "k":
				return "from keyring", nil
			case "locked":
				return "", errors.New("the keyring is locked")
			}
			return "", keyring.ErrNotFound
		}},
	}
	for in, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"${A}${A}":                  "11",
		"<${env:A}>":                "<1>",
		"${env:NO:-x y}":            "x y",
		"${NO:-}":                   "",
		"${NO:-a:-b}":               "a:-b",
		"${EMPTY}":                  "",
		"${X}":                      "${A}", // values are not looked into
		"${keyring:k}":              "from keyring",
		"${file:token}":             "from file",
		"${file:~/token}":           "from file",
		"${file:" + dir + "/token}": "from file",
		"$$":                        "$",
		"$${A}":                     "${A}",
		"$$$A":                      "$$A",
		"$A $ $1 $(A) ${ ${}":       "$A $ $1 $(A) ${ ${}",
		"${not a name} ${1A}":       "${not a name} ${1A}",
		"${input:x} ${keyring:}":    "${input:x} ${keyring:}",
		"${${A}}":                   "${1}",
		"end$":                      "end$",
	} {
		got, err := r.expand("s", "f", in)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"${NO}":             `server "s": f: ${NO} is not set`,
		"a${env:NO}":        `${env:NO} is not set`,
		"${keyring:other}":  `${keyring:other} is not in the keyring`,
		"${keyring:locked}": `${keyring:locked} cannot be read from the keyring: the keyring is locked`,
		"${file:missing}":   "${file:missing} cannot be read: " + dir + "/missing: no such file",
		"${file:none}":      "${file:none} is empty",
		"${file:.}":         "not a regular file",
	} {
		_, err := r.expand("s", "f", in)
		var unresolved *ReferenceError
		if !errors.As(err, &unresolved) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// The child has the parent's PATH and HOME, and what env says wins (K03).
func TestChildEnvironment(t *testing.T) {
	bin := t.TempDir()
	script(t, filepath.Join(bin, "run"))
	environ := []string{
		"PATH=" + bin, "HOME=/home/u", "LANG=C", "LC_ALL=C", "XDG_RUNTIME_DIR=/run/u", "https_proxy=http://p", "NODE_EXTRA_CA_CERTS=/c",
		"X=inherited", "GITHUB_TOKEN=t", "MCPPROXY_API_KEY=k", "MCPPROXY_PARENT=outer",
	}
	c := parse(t, `{"mcpServers": {
		"base": {"command": "run", "env": {"Z": "1", "LANG": "de"}},
		"all":  {"command": "run", "env": {"X": "1", "MCPPROXY_CONFIG": "/other"}, "inherit_env": "all"}}}`, environ...)
	mark := "MCPPROXY_PARENT=outer," + fileMark(c.Path)
	base := []string{
		"HOME=/home/u", "LANG=de", "LC_ALL=C", mark, "NODE_EXTRA_CA_CERTS=/c", "PATH=" + bin,
		"XDG_RUNTIME_DIR=/run/u", "Z=1", "https_proxy=http://p",
	}
	all := []string{
		"GITHUB_TOKEN=t", "HOME=/home/u", "LANG=C", "LC_ALL=C", "MCPPROXY_CONFIG=/other", mark, "NODE_EXTRA_CA_CERTS=/c", "PATH=" + bin,
		"X=1", "XDG_RUNTIME_DIR=/run/u", "https_proxy=http://p",
	}
	for name, want := range map[string][]string{"base": base, "all": all} {
		r, err := c.Server(name).Resolve(Env{Environ: environ, Home: "/home/u", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.Env, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, r.Env, want)
		}
	}

	windows := newEnviron([]string{`Path=C:\w`, "SystemRoot=C:", "=C:=C:", "Secret=s", "mcpproxy_x=1"}, "windows").inherited(false)
	windows.set("PATH", "p")
	if got, want := windows.list(), []string{"Path=p", "SystemRoot=C:"}; !reflect.DeepEqual(got, want) {
		t.Errorf("windows: got %q, want %q", got, want)
	}
}

// ~ expands in command and working_dir, relative paths count from the folder of
// the child, and what is missing is named with the absolute path (K13).
func TestPaths(t *testing.T) {
	home, start := t.TempDir(), t.TempDir()
	script(t, filepath.Join(home, "bin", "s"))
	script(t, filepath.Join(start, "here"))
	write(t, filepath.Join(start, "plain"), "")
	c := parse(t, `{"mcpServers": {
		"tilde":    {"command": "~/bin/s", "args": ["./x.js", "~/y"]},
		"dir":      {"command": "./s", "working_dir": "~/bin"},
		"relative": {"command": "./here"},
		"no-path":  {"command": "~/bin/missing"},
		"no-name":  {"command": "here"},
		"words":    {"command": "npx -y thing"},
		"child":    {"command": "here", "env": {"PATH": "relative::`+start+`"}},
		"no-run":   {"command": "./plain"},
		"no-dir":   {"command": "x", "working_dir": "~/nowhere"},
		"isolated": {"command": "not-here", "isolation": {"enabled": true}}}}`)
	env := Env{Environ: []string{"PATH=/nowhere:/none"}, Home: home, Dir: start}
	for name, want := range map[string][2]string{
		"tilde":    {home + "/bin/s", start},
		"dir":      {home + "/bin/s", home + "/bin"},
		"relative": {start + "/here", start},
		"child":    {start + "/here", start},
		"isolated": {"not-here", start},
	} {
		r, err := c.Server(name).Resolve(env)
		if err != nil || r.Command != want[0] || r.Dir != want[1] {
			t.Errorf("%s: got %q in %q, %v", name, r.Command, r.Dir, err)
		}
	}
	r, err := c.Server("tilde").Resolve(env)
	if err != nil || !reflect.DeepEqual(r.Args, []string{"./x.js", "~/y"}) {
		t.Errorf("arguments are changed: %q, %v", r.Args, err)
	}
	for name, want := range map[string]string{
		"no-path": "executable " + home + "/bin/missing: no such file",
		"no-name": `executable "here" not found on PATH (searched /nowhere:/none)`,
		"words":   "arguments belong into args",
		"no-run":  "executable " + start + "/plain: not executable",
	} {
		_, err := c.Server(name).Resolve(env)
		var missing *CommandError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Server("no-dir").Resolve(env); err == nil || !strings.Contains(err.Error(), "working_dir: "+home+"/nowhere: no such file") {
		t.Errorf("no-dir: %v", err)
	}
}

// npx is a batch file on Windows (K04).
func TestWindowsCommand(t *testing.T) {
	files := []string{`C:\Program Files\nodejs\npx`, `C:\Program Files\nodejs\npx.cmd`, `D:\tools\srv.exe`, `D:\work\run.bat`}
	probe := func(path string) string {
		if slices.ContainsFunc(files, func(f string) bool { return strings.EqualFold(f, path) }) {
			return ""
		}
		return "no such file"
	}
	l := lookup{dir: `D:\work`, path: `relative;;"C:\Program Files\nodejs\";D:\tools`, pathext: ".COM;.EXE;.BAT;.CMD;"}
	for command, want := range map[string]string{
		"npx":                         `C:\Program Files\nodejs\npx.cmd`,
		"npx.cmd":                     `C:\Program Files\nodejs\npx.cmd`,
		"srv":                         `D:\tools\srv.exe`,
		"SRV.EXE":                     `D:\tools\SRV.EXE`,
		`.\run`:                       `D:\work\run.bat`,
		`./run.bat`:                   `D:\work\run.bat`,
		`C:/Program Files/nodejs/npx`: `C:\Program Files\nodejs\npx.cmd`,
		"run":                         "", // not from the current folder
		"missing":                     "",
		"":                            "",
	} {
		l.command = command
		got, err := l.windows(probe)
		if got != want || (want == "") == (err == nil) {
			t.Errorf("%q: got %q, %v, want %q", command, got, err, want)
		}
	}
	for _, pathext := range []string{"", ";"} {
		l.command, l.pathext = "npx", pathext
		if _, err := l.windows(probe); pathext == "" && err != nil {
			t.Errorf("without PATHEXT: %v", err)
		}
	}
	l = lookup{command: `x\y`, dir: `D:\`, pathext: ".EXE"}
	if _, err := l.windows(probe); err == nil || err.Error() != `executable D:\x\y: no such file` {
		t.Errorf("%v", err)
	}
}

func TestBatchCommandLine(t *testing.T) {
	got, err := BatchCommandLine(`C:\Windows\System32\cmd.exe`, `C:\n\npx.cmd`, []string{"-y", "a b&c", `say "hi"`, `%PATH%`, `dir\`, `a\"`, ""})
	want := `"C:\Windows\System32\cmd.exe" /e:ON /v:OFF /d /c ""C:\n\npx.cmd" "-y" "a b&c" "say ""hi""" "%%cd:~,%PATH%%cd:~,%" "dir\\" "a\\""" """`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if _, err := BatchCommandLine("cmd.exe", "x.cmd", []string{"a\nb"}); err == nil {
		t.Error("a line break is not refused")
	}
}

func TestSecrets(t *testing.T) {
	environ := []string{"PATH=/bin", "HOME=/home/user1", "TOK=from-env", "SHORT=abc"}
	c := parse(t, `{"mcpServers": {
		"s": {"command": "/bin/sh", "args": ["--token", "arg-secret", "--key=arg-key-secret", "-e", "KEY=env-arg-secret", "-H", "Authorization: Bearer hdr-arg-secret",
		      "--verbose", "not-a-secret", "ghp_0123456789abcdef", "https://x/?a=1&token=arg%2Furl", "${TOK}", "${SHORT}", "${HOME}", "${NO:-default-text}"],
		      "env": {"API_KEY": "env-secret", "DATABASE_URL": "postgres://u:db-secret@h/d", "LOG_LEVEL": "verbose-log", "MONKEY": "banana-value", "FILE": "${keyring:k}"}},
		"h": {"url": "https://u:${TOK}@h/mcp?apiKey=url-secret&page=overview", "headers": {"Authorization": "Bearer hdr-secret", "X-Api-Key": "hdr-key", "Accept": "text/plain"},
		      "oauth": {"client_id": "client-name", "client_secret": "oauth-secret"}},
		"i": {"command": "/bin/sh", "isolation": {"extra_args": ["-e", "MY_SECRET=isolated", "--name", "plain-name"]}}}}`, environ...)
	env := Env{Environ: environ, Dir: "/", Keyring: func(string) (string, error) { return "from-keyring", nil }}
	for name, want := range map[string][]string{
		"s": {"ghp_0123456789abcdef", "arg-key-secret", "env-arg-secret", "hdr-arg-secret", "from-keyring", "arg-secret", "env-secret", "arg%2Furl", "db-secret", "from-env", "arg/url"},
		"i": {"isolated"},
		"h": {"oauth-secret", "hdr-secret", "url-secret", "from-env", "hdr-key"},
	} {
		r, err := c.Server(name).Resolve(env)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(want, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
		if !reflect.DeepEqual(r.Secrets, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, r.Secrets, want)
		}
	}

	s := c.Server("s").Masked()
	shown := []string{"--token", "****", "--key=****", "-e", "KEY=****", "-H", "Authorization: Bearer ****",
		"--verbose", "not-a-secret", "****", "https://x/?a=1&token=****", "${TOK}", "${SHORT}", "${HOME}", "${NO:-default-text}"}
	if !reflect.DeepEqual(s.Args, shown) {
		t.Errorf("args:\ngot  %q\nwant %q", s.Args, shown)
	}
	if want := map[string]string{"API_KEY": "****", "DATABASE_URL": "postgres://u:****@h/d", "LOG_LEVEL": "verbose-log", "MONKEY": "banana-value", "FILE": "${keyring:k}"}; !reflect.DeepEqual(s.Env, want) {
		t.Errorf("env: %q", s.Env)
	}
	h := c.Server("h").Masked()
	if h.URL != "https://u:${TOK}@h/mcp?apiKey=****&page=overview" || h.Headers["Authorization"] != "Bearer ****" || h.Headers["Accept"] != "text/plain" || h.OAuth.ClientSecret != "****" {
		t.Errorf("%+v %+v", h, h.OAuth)
	}
	if c.Server("h").OAuth.ClientSecret != "oauth-secret" {
		t.Error("masking changed the entry")
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "s3cret": "****", "${TOKEN}": "${TOKEN}", "Bearer ${env:T}": "****${env:T}", "a${A}b$$c${B}": "****${A}****${B}",
		"${T:-hunter2}": "${T:-****}", "$$": "****", "${T:-}": "${T:-}",
	} {
		if got := Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}
