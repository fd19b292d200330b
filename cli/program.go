package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// runningFile is the file that a process on Linux runs, also after another has
// taken its place or it was removed.
const runningFile = "/proc/self/exe"

// errReplaced is why this program cannot be started again: the file is another.
var errReplaced = errors.New("mcpproxy was replaced by another build; restart this client to share servers again")

// program is the program that this process runs, as it was when it was first
// asked about.
type program struct {
	// build is what a hub and its instances have to have in common.
	build   string
	path    string      // where it was started from
	file    fs.FileInfo // nil where it is not known
	running string      // a path that always leads to it; "" where the system has none
}

// self is the program that this process runs. What serves a client asks first
// before it does anything beside that, also since the file may be another's later.
func (a *app) self() program {
	if a.program == nil {
		p := program{path: a.Executable}
		if runtime.GOOS == "linux" {
			if info, err := os.Stat(runningFile); err == nil {
				p.running, p.file = runningFile, info
			}
		}
		if p.running == "" {
			p.file, _ = os.Stat(p.path) // nil: it cannot be told apart from others of its commit
		}
		p.build = dialect(buildOf(), p.file)
		a.program = &p
	}
	return *a.program
}

// dialect names a build. Where the commit does not tell them apart, the file
// does.
func dialect(b build, file fs.FileInfo) string {
	name := b.Version + " " + b.Commit
	if file != nil && (b.Modified || b.Commit == "") {
		name += fmt.Sprintf(" %d %d", file.Size(), file.ModTime().UnixNano())
	}
	return name
}

// again is the path by which this very build is started again, or errReplaced.
func (p program) again() (string, error) {
	switch {
	case p.running != "":
		return p.running, nil
	case p.file == nil || !p.unchanged():
		return "", errReplaced
	}
	return p.path, nil
}

// guard is the command line of the guard process: it has to be there also where
// the file is not, and is shown by its name where it is.
func (p program) guard() []string {
	if p.running != "" && !p.unchanged() {
		return []string{p.running, guardName}
	}
	return []string{p.path, guardName}
}

// unchanged reports whether the file at the path is the one it was.
func (p program) unchanged() bool {
	now, err := os.Stat(p.path)
	return err == nil && p.file != nil && os.SameFile(now, p.file) && now.Size() == p.file.Size() && now.ModTime().Equal(p.file.ModTime())
}
