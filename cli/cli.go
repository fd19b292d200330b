// Package cli is the command line: the grammar, the wiring of the other
// packages, what is printed and with which exit code the program ends.
//
// It refuses to know how anything is done: a command reads its arguments, asks
// the package in charge and prints the answer. Nothing is opened before a
// command asks for it, since the default command is started by MCP clients
// that count the milliseconds. An invocation owns what it opens and closes it
// before [Main] returns.
//
// The rules of the terminal: stdout is data and stderr is talk. A terminal gets
// an aligned table with a header, cut to its width, with relative times; a pipe
// gets tab-separated full values without a header and RFC 3339. --json prints
// one object with a named list, -q names only. Colour is for terminals only and
// never says anything alone. What came from a server is made harmless before it
// is printed. Exit codes come from error types, see exitCode.
package cli

import (
	"context"
	"fmt"
	"io"
)

// Main runs one invocation and returns its exit code: 0 done, 1 failed, 2
// usage, 3 configuration invalid, 4 login needed, 5 a server is unavailable,
// 130 interrupted. It ends soon after ctx does.
func Main(ctx context.Context, env Env) int {
	a := &app{Env: env}
	err := a.invoke(ctx)
	if closing := a.close(); err == nil {
		err = closing
	}
	if err == nil {
		return exitDone
	}
	return a.report(ctx, err)
}

// invoke reads the command line and runs the command it names.
func (a *app) invoke(ctx context.Context) error {
	inv, err := a.parse()
	if err != nil || inv.command == nil {
		return err
	}
	a.globals = inv.globals
	if err := a.globals.check(); err != nil {
		return err
	}
	return inv.command.run(ctx, a)
}

// app is one invocation: its surroundings, the options every command has, and
// what the command has opened so far.
type app struct {
	Env
	globals
	opened []io.Closer

	program *program // see self
}

// close closes what the command opened, last first, and returns the first error.
func (a *app) close() error {
	var first error
	for i := len(a.opened) - 1; i >= 0; i-- {
		if err := a.opened[i].Close(); err != nil && first == nil {
			first = err
		}
	}
	a.opened = nil
	return first
}

// note says something on stderr to a person; -q silences it.
func (a *app) note(format string, args ...any) {
	if !a.Quiet {
		a.say("", fmt.Sprintf(format, args...))
	}
}
