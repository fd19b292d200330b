package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// guard is a helper process that outlives this one when it is killed, and then
// stops the process groups that were left. A nil guard does nothing.
type guard struct {
	command func() []string
	environ []string
	report  func(error)

	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ready  func() // returns when signals no longer end it
	broken bool
}

// newGuard returns the guard that command starts, nil for no command. It gets no
// more of the environment than a server: what is only this program's, an agent
// token for instance, is not for a process that outlives it.
func newGuard(command func() []string, environ []string, report func(error)) *guard {
	if command == nil {
		return nil
	}
	ours := func(variable string) bool { return strings.HasPrefix(variable, "MCPPROXY_") }
	return &guard{command: command, environ: slices.DeleteFunc(slices.Clone(environ), ours), report: report}
}

// prepare starts the guard if it does not run, so that a child can be named to
// it the moment it is there.
func (g *guard) prepare() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil || g.broken {
		return
	}
	if err := g.start(); err != nil {
		g.broken = true
		g.report(fmt.Errorf("start the guard process: %w", err))
	}
}

// settled returns when the guard is there for good: until then, while it is only
// starting, a signal would end it.
func (g *guard) settled() {
	if g == nil {
		return
	}
	g.mu.Lock()
	ready := g.ready
	g.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// watch has the group of that id stopped if this process dies.
func (g *guard) watch(group int) { g.tell("+%d\n", group) }

// forget is called when the group is gone.
func (g *guard) forget(group int) { g.tell("-%d\n", group) }

func (g *guard) tell(format string, group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil || g.broken {
		return
	}
	if _, err := fmt.Fprintf(g.stdin, format, group); err != nil {
		g.broken = true
		g.report(fmt.Errorf("tell the guard process: %w", err))
	}
}

func (g *guard) start() error {
	command := g.command()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.SysProcAttr = g.environ, guardAttributes()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	says, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	cmd.Stdout = out
	err = cmd.Start()
	out.Close()
	if err != nil {
		return errors.Join(err, says.Close())
	}
	g.cmd, g.stdin = cmd, stdin
	g.ready = sync.OnceFunc(func() {
		// One that says nothing is as good as none, and is not waited for.
		_ = says.SetReadDeadline(time.Now().Add(killGrace))
		_, _ = says.Read(make([]byte, 1))
		says.Close()
	})
	return nil
}

// close lets the guard go; no group may be left.
func (g *guard) close() {
	if g == nil || g.cmd == nil {
		return
	}
	g.ready()
	g.stdin.Close()
	// It has nothing left to do: should it be unable to leave, nothing is lost.
	late := time.AfterFunc(killGrace, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	_ = g.cmd.Wait() // the exit status says nothing
}

// RunGuard is the guard process: it writes a line when it is there, reads
// "+group" and "-group" lines, and when its input ends, because the process that
// wrote them has died, it stops the groups that are left by the same ladder as
// their owner would have. Whoever runs it has seen to it that signals do not end
// it.
func RunGuard(ctx context.Context, input io.Reader, output io.Writer) {
	_, _ = io.WriteString(output, "ready\n") // its owner may be gone, which the input tells
	groups := map[int]bool{}
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		id, err := strconv.Atoi(strings.TrimLeft(lines.Text(), "+-"))
		if err != nil || id <= 1 {
			continue
		}
		if strings.HasPrefix(lines.Text(), "+") {
			groups[id] = true
		} else {
			delete(groups, id)
		}
	}
	var stops sync.WaitGroup
	for id := range groups {
		stops.Go(func() { stopOrphans(ctx, &os.Process{Pid: id}) })
	}
	stops.Wait()
}
