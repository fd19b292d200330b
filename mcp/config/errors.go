package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrServerExists is returned by AddServer for a name that is taken.
var ErrServerExists = errors.New("a server of this name exists")

// ErrServerNotFound is returned by RemoveServer and SetEnabled.
var ErrServerNotFound = errors.New("no server of this name")

// Error is one mistake in the configuration and where it stands.
type Error struct {
	File   string // path of the file; "environment" or "command line" for values from there
	Line   int    // from 1; 0 when the mistake has no place
	Column int    // in characters, from 1
	Key    string // "tools_limit", "mcpServers.github.args[1]", "MCPPROXY_TOOLS_LIMIT"
	Value  string // as written, shortened; masked for keys that hold secrets
	Rule   string // what the value must be, or what is wrong
	Err    error  // the cause, or nil
}

// Error is "FILE:LINE:COLUMN: KEY: VALUE: RULE" without the parts that are empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	for _, part := range []string{e.Key, e.Value, e.Rule} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReferenceError is a reference that resolves to nothing.
type ReferenceError struct {
	Server   string
	Field    string // "env.TOKEN", "args[0]"
	Variable string // the reference as written: "${env:NAME}"
	Why      string // "is not set"
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("server %q: %s: %s %s", e.Server, e.Field, e.Variable, e.Why)
}

// CommandError is a command that cannot be started. Trying again does not help
// until the configuration or the machine has changed.
type CommandError struct {
	Command string // as configured, references and ~ resolved
	Path    string // the searched PATH of the child; empty when Command is a path
	Tried   string // the absolute path that was tried; empty when PATH was searched
	Why     string // "no such file", "not executable"; empty when PATH was searched
}

func (e *CommandError) Error() string {
	if e.Tried != "" {
		return fmt.Sprintf("executable %s: %s", e.Tried, e.Why)
	}
	hint := ""
	if strings.ContainsAny(e.Command, " \t") {
		hint = "; arguments belong into args"
	}
	return fmt.Sprintf("executable %q not found on PATH (searched %s)%s", e.Command, e.Path, hint)
}

// RecursionError is an entry that leads back to this program.
type RecursionError struct {
	Server string
	Why    string
}

func (e *RecursionError) Error() string {
	return fmt.Sprintf("server %q: %s, which would recurse; the entry is skipped", e.Server, e.Why)
}
