package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
)

// The exit codes of the program.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitLogin       = 4
	exitUnavailable = 5
	exitInterrupted = 130
)

// failure is an error that knows the exit code it leads to and, where a person
// can act, what to type next.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// hinted is a failure with exit code 1 and something a person can type.
func hinted(hint, format string, args ...any) error {
	return &failure{code: exitFailed, err: fmt.Errorf(format, args...), hint: hint}
}

// misuse is a failure of the command line itself. The hint may be empty.
func misuse(hint, format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// silent ends the program with a code and says nothing: what there is to say
// stands in the output already.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

// report prints what went wrong and returns the exit code. An interrupted
// command says nothing: whoever interrupted it knows.
func (a *app) report(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	var quiet silent
	if code == exitInterrupted || errors.As(err, &quiet) {
		return code
	}
	a.say("error: ", err.Error())
	if hint := hintOf(err); hint != "" {
		a.say("hint: ", hint)
	}
	return code
}

// exitCode finds the exit code of an error from its type; what an error says is
// never looked at.
func exitCode(ctx context.Context, err error) int {
	var (
		quiet      silent
		failed     *failure
		wrong      *config.Error
		reference  *config.ReferenceError
		recursion  *config.RecursionError
		executable *config.CommandError
		answer     *wire.Error
	)
	switch {
	case errors.As(err, &quiet):
		return int(quiet)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &failed):
		return failed.code
	case errors.As(err, &wrong), errors.As(err, &reference), errors.As(err, &recursion):
		return exitConfig
	case errors.As(err, &executable), errors.As(err, &answer) && answer.Raw == nil && answer.Code == wire.CodeUnavailable:
		return exitUnavailable
	}
	return exitFailed
}

// hintOf returns the first hint among the failures that err is made of.
func hintOf(err error) string {
	var f *failure
	for errors.As(err, &f) {
		if f.hint != "" {
			return f.hint
		}
		err = f.err
	}
	return ""
}

// say writes a message to stderr, every line of it under the program's name so
// that no text from elsewhere can pass for a line of ours.
func (a *app) say(kind, text string) {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("mcpproxy: " + kind + clean(line) + "\n")
	}
	_, _ = a.Stderr.Write([]byte(b.String()))
}

// warn says what a person should know and what stops nothing; -q and the log
// level error silence it.
func (a *app) warn(text string) {
	if !a.Quiet && a.LogLevel != "error" {
		a.say("warning: ", text)
	}
}
