package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Env is everything a command may know of the process it runs in. Commands
// take streams, environment, clock and folders from here and from nowhere else,
// so that a test can put a whole invocation together as a value.
type Env struct {
	// Args are the arguments without the program's name.
	Args []string
	// Stdin, Stdout and Stderr are the three streams. Stdout carries data,
	// Stderr what is said about it.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ is the environment as "KEY=value"; of two equal keys the last counts.
	Environ []string
	// Home is the home folder, empty where it is unknown.
	Home string
	// Dir is the working folder, against which relative paths are read.
	Dir string
	// Now is the clock.
	Now func() time.Time
	// IsTerminal tells for each stream whether a person sits behind it.
	IsTerminal func(Stream) bool
	// Columns is the width of the terminal behind Stdout, 0 where it is unknown.
	Columns func() int
	// Executable is the path of this program, for starting it again.
	Executable string
}

// Stream names one of the three standard streams.
type Stream int

// The three standard streams.
const (
	Stdin Stream = iota
	Stdout
	Stderr
)

// ProcessEnv returns the Env of the running process.
func ProcessEnv() Env {
	files := [...]*os.File{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	executable, _ := os.Executable()
	return Env{
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
		Home:    home,
		Dir:     dir,
		Now:     time.Now,
		IsTerminal: func(s Stream) bool {
			return term.IsTerminal(int(files[s].Fd()))
		},
		Columns: func() int {
			columns, _, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0
			}
			return columns
		},
		Executable: executable,
	}
}

// getenv returns the value of an environment variable, empty where it is unset.
func (e Env) getenv(key string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}
