package config

import (
	"maps"
	"slices"
	"strings"
)

// ownPrefix starts the variables that belong to this program. A child never
// inherits them.
const ownPrefix = "MCPPROXY_"

// environ is an environment whose names are compared as the system does.
type environ struct {
	vars map[string]string // by folded name
	name map[string]string // folded name to the name as given
	fold bool              // Windows: case does not matter
}

func newEnviron(list []string, goos string) environ {
	e := environ{make(map[string]string, len(list)), make(map[string]string, len(list)), goos == "windows"}
	for _, kv := range list {
		// Windows has hidden variables such as "=C:=C:\dir".
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			e.set(name, value)
		}
	}
	return e
}

func (e environ) key(name string) string {
	if e.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (e environ) get(name string) (string, bool) {
	v, ok := e.vars[e.key(name)]
	return v, ok
}

func (e environ) set(name, value string) {
	key := e.key(name)
	e.vars[key] = value
	if _, ok := e.name[key]; !ok {
		e.name[key] = name
	}
}

// list is the environment as NAME=VALUE, sorted.
func (e environ) list() []string {
	list := make([]string, 0, len(e.vars))
	for _, key := range slices.Sorted(maps.Keys(e.vars)) {
		list = append(list, e.name[key]+"="+e.vars[key])
	}
	return list
}

// inherited is what a child gets of e: everything but our own variables when
// all is true, else the base environment.
func (e environ) inherited(all bool) environ {
	out := environ{make(map[string]string, len(e.vars)), make(map[string]string, len(e.vars)), e.fold}
	for key, value := range e.vars {
		if strings.HasPrefix(strings.ToUpper(key), ownPrefix) {
			continue
		}
		if all || e.isBase(key) {
			out.set(e.name[key], value)
		}
	}
	return out
}

// isBase reports whether a variable belongs to the base environment: what
// programs need to find other programs, their home, their language and the way
// to the network. A variable that differs from one login, or one window, to the
// next has no place in it: clients share a server only when they agree.
func (e environ) isBase(name string) bool {
	name = e.key(name)
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ",
		"LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO":
		return true
	}
	switch strings.ToUpper(name) {
	case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
		return true
	}
	return isLocale(name) || isXDGFolder(name) || e.fold && isWindowsBase(name)
}

// isLocale is about the categories of a locale. Other names that begin alike,
// such as LC_TERMINAL_VERSION, are there because ssh lets them pass.
func isLocale(name string) bool {
	switch name {
	case "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
		"LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE":
		return true
	}
	return false
}

// isXDGFolder is about the folders of the XDG specifications. The other names
// that begin alike are about a login: XDG_SESSION_ID, XDG_VTNR, XDG_SEAT.
func isXDGFolder(name string) bool {
	name, ok := strings.CutPrefix(name, "XDG_")
	if !ok || strings.HasPrefix(name, "GREETER_") {
		return false
	}
	return strings.HasSuffix(name, "_HOME") || strings.HasSuffix(name, "_DIR") || strings.HasSuffix(name, "_DIRS")
}

// isWindowsBase is about the variables without which programs on Windows do not
// start or do not find their folders.
func isWindowsBase(name string) bool {
	switch name {
	case "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS",
		"USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "COMPUTERNAME",
		"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE", "PUBLIC",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
		"COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432",
		"PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS":
		return true
	}
	return false
}
