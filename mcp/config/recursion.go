package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// parentVariable tells a child under which configuration files it runs: their
// marks, the outermost first, joined by commas. It lets an instance that was
// reached through a wrapper see that it is its own upstream. Another proxy, with
// another configuration, may well stand in between.
const parentVariable = "MCPPROXY_PARENT"

// fileMark stands for one configuration file.
func fileMark(path string) string {
	sum := sha256.Sum256([]byte(samePath(path)))
	return hex.EncodeToString(sum[:8])
}

// samePath makes two ways to one file equal, where the file exists.
func samePath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// nestingMarker is the value of parentVariable for the children of a server.
func nestingMarker(env environ, file string) string {
	if file == "" {
		return ""
	}
	mark := fileMark(file)
	if outer, _ := env.get(parentVariable); outer != "" {
		return outer + "," + mark
	}
	return mark
}

// NestedUnder reports whether a program with this environment was started,
// directly or through others, as a server of this same configuration file.
// Serving it would start the program again and again.
func (c *Config) NestedUnder(environ []string) bool {
	outer, _ := newEnviron(environ, runtime.GOOS).get(parentVariable)
	mark := fileMark(c.Path)
	for m := range strings.SplitSeq(outer, ",") {
		if m == mark {
			return true
		}
	}
	return false
}

// Own is what SkipRecursion recognises this program by.
type Own struct {
	// Executable is the absolute path of this program.
	Executable string
	// Listen is the host:port this program listens on; empty when it does not.
	Listen string
	// Home is the home folder, where another instance finds its default file.
	Home string
}

// SkipRecursion gives a *RecursionError and a warning to every enabled entry
// that starts this program with this configuration file, or whose URL is this
// program's own listener. An entry that starts it with another file is legal.
func (c *Config) SkipRecursion(own Own) {
	for i := range c.Servers {
		s := &c.Servers[i]
		why := ""
		switch {
		case s.Err != nil || !s.Enabled:
		case s.startsItself(c.Path, own):
			why = "it starts mcpproxy with this same configuration"
		case own.Listen != "" && sameListener(s.URL, own.Listen):
			why = fmt.Sprintf("its url is this program's own listener %s", own.Listen)
		}
		if why != "" {
			s.Err = &RecursionError{s.Name, why}
			c.Warnings = append(c.Warnings, s.Err.Error())
		}
	}
}

func (s *Server) startsItself(file string, own Own) bool {
	if s.Command == "" {
		return false
	}
	command := expandHome(s.Command, own.Home)
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(command)), ".exe")
	same := filepath.IsAbs(command) && own.Executable != "" && samePath(command) == samePath(own.Executable)
	if base != "mcpproxy" && !same || !servesClient(s.Args) {
		return false
	}
	inner := s.Env["MCPPROXY_CONFIG"]
	for i, arg := range s.Args {
		if value, ok := strings.CutPrefix(arg, "--config="); ok {
			inner = value
		} else if arg == "--config" && i+1 < len(s.Args) {
			inner = s.Args[i+1]
		}
	}
	if inner == "" {
		inner = defaultPath(own.Home)
	}
	inner = expandHome(inner, own.Home)
	// A relative path counts from a folder that is not known here; taking it
	// for another file leaves the decision to NestedUnder.
	return samePath(inner) == samePath(file)
}

// servesClient reports whether this program, started with these arguments,
// serves a client and so reads its servers: without a command, or with one of
// those that do. Other commands, such as demo-server, lead nowhere.
func servesClient(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return true
		case slices.Contains(valueOptions(), arg):
			i++
		case !strings.HasPrefix(arg, "-"):
			return arg == "run" || arg == "serve"
		}
	}
	return true
}

// valueOptions are the options of this program that may stand before a command
// and whose value is an argument of its own.
func valueOptions() []string {
	return []string{"--config", "--data-dir", "--log-level", "--mode", "--profile", "--token-file"}
}

// sameListener reports whether a URL leads to a listener on this machine.
func sameListener(address, listen string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host, ownPort, err := net.SplitHostPort(listen)
	if err != nil || port != ownPort {
		return false
	}
	return strings.EqualFold(u.Hostname(), host) || isLocal(u.Hostname()) && isLocal(host)
}

// isLocal reports whether a listener on host is reached through the loopback
// interface; the unspecified address listens there as well.
func isLocal(host string) bool {
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
