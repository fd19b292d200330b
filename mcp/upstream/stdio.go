package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"mcpproxy/mcp/wire"
)

// The stop ladder: after closing stdin a child has eofGrace to leave, after
// SIGTERM to its process group termGrace, then the group is killed. All
// children are stopped at once, so the sum is the time for all of them.
const (
	eofGrace  = 1500 * time.Millisecond
	termGrace = 1500 * time.Millisecond
	killGrace = time.Second
)

// stdioOptions say how a child is started. Command is resolved, Env complete.
type stdioOptions struct {
	Command  string
	Args     []string
	Env      []string
	Dir      string
	MaxFrame int
	Log      *serverLog
	Spawner  *spawner
	Guard    *guard
	Garbage  func(wire.Garbage)
}

// stdioLink is a child process in a process group of its own, and its pipes.
type stdioLink struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	out    *wire.Outbox
	log    *serverLog
	guard  *guard
	tree   processTree
	exited chan struct{} // the child itself has ended
	read   chan struct{} // its stdout has been read to the end
	said   chan struct{} // and its stderr
	done   chan struct{} // stdout is at its end or broken, or the child has ended

	stopOnce sync.Once
	stopped  chan struct{} // the ladder is through
	pumps    sync.WaitGroup

	mu    sync.Mutex
	ended bool
	err   error
}

// startStdio starts the child. Messages go to recv until Done.
func startStdio(options stdioOptions, recv receiver) (*stdioLink, error) {
	cmd := exec.Command(options.Command, options.Args...)
	cmd.Env, cmd.Dir = options.Env, options.Dir
	if err := prepare(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", options.Command, err)
	}
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, fmt.Errorf("make pipes: %w", err)
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	wire.Widen(ours[1])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	options.Guard.prepare()
	err := options.Spawner.start(cmd)
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		if info, missing := os.Stat(options.Dir); options.Dir != "" && (missing != nil || !info.IsDir()) {
			// The system's own error names the command in this case.
			return nil, fmt.Errorf("start %s: its folder %s does not exist", options.Command, options.Dir)
		}
		return nil, fmt.Errorf("start %s: %w", options.Command, err)
	}
	l := &stdioLink{
		cmd: cmd, stdin: ours[0], stdout: ours[1], stderr: ours[2], log: options.Log, guard: options.Guard,
		tree:    newProcessTree(cmd.Process),
		exited:  make(chan struct{}),
		read:    make(chan struct{}),
		said:    make(chan struct{}),
		done:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	l.out = wire.NewOutbox(wire.Eager(ours[0]))
	l.guard.watch(cmd.Process.Pid)
	l.log.started(cmd.Process.Pid)
	l.pumps.Add(3)
	go l.pumpStderr()
	go l.pumpStdout(options, recv)
	go l.reap()
	return l, nil
}

func (l *stdioLink) pumpStderr() {
	defer l.pumps.Done()
	defer close(l.said)
	l.log.readFrom(l.stderr)
}

func (l *stdioLink) pumpStdout(options stdioOptions, recv receiver) {
	defer l.pumps.Done()
	in := wire.NewReader(l.stdout, options.MaxFrame, func(g wire.Garbage) {
		l.log.line("stdout", g.Line)
		options.Garbage(g)
	})
	for {
		m, err := in.Next()
		if err != nil {
			break
		}
		recv(m, 0)
	}
	close(l.read)
	// A child that is about to end says more by its exit status.
	select {
	case <-l.exited:
	case <-time.After(lateOutput):
		l.end(errors.New("the server closed its stdout"))
	}
}

// lateOutput is how long output may arrive after the child has ended, and how
// long a child may live without stdout; a grandchild may hold the pipe.
const lateOutput = 200 * time.Millisecond

func (l *stdioLink) reap() {
	defer l.pumps.Done()
	status := "status 0"
	if err := l.cmd.Wait(); err != nil {
		status = err.Error()
	}
	l.log.ended(status)
	close(l.exited)
	late := time.After(lateOutput)
	for _, atEnd := range []chan struct{}{l.said, l.read} {
		select {
		case <-atEnd:
		case <-late:
			late = time.After(0) // for both together
		}
	}
	l.end(&exitError{text: status, stderr: l.log.tail()})
}

// errStopped tells that we ended the child.
var errStopped = errors.New("stopped")

// exitError tells that the child has ended.
type exitError struct {
	text   string
	stderr string
}

// Error holds the exit status and the end of what the child wrote to stderr.
func (e *exitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("the server process ended (%s) and wrote nothing to stderr", e.text)
	}
	return fmt.Sprintf("the server process ended (%s): %s", e.text, e.stderr)
}

// end marks the link as dead, the first reason counts.
func (l *stdioLink) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.err = err
	close(l.done)
}

// Send implements link.
func (l *stdioLink) Send(_ context.Context, m outgoing) error {
	err := l.out.Send(m.Frame)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write to the server: %w", err)
	// The pipe breaks a moment before the child's end is noticed. A child that
	// does not end but cannot be told anything any more is of no use.
	select {
	case <-l.done:
	case <-time.After(2 * lateOutput):
		l.end(err)
	}
	return err
}

func (l *stdioLink) stream() {}

// Done implements link.
func (l *stdioLink) Done() <-chan struct{} { return l.done }

// Err implements link.
func (l *stdioLink) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close implements link: it walks down the stop ladder until no process of the
// group is left. ctx can only make it quicker.
func (l *stdioLink) Close(ctx context.Context) error {
	l.stopOnce.Do(func() {
		l.end(errStopped)
		l.climbDown(ctx)
		close(l.stopped)
	})
	<-l.stopped
	return nil
}

// waitAtMost waits for the group, but not longer than d.
func waitAtMost(group *sync.WaitGroup, d time.Duration) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

func (l *stdioLink) climbDown(ctx context.Context) {
	defer func() {
		l.guard.forget(l.cmd.Process.Pid)
		// A process that left the group may hold the other ends.
		l.stdout.Close()
		l.stderr.Close()
		// A pump may be handing an answer to a client that does not read.
		waitAtMost(&l.pumps, killGrace)
		l.tree.release()
	}()
	// MCP, stdio, shutdown: first the client closes the server's input.
	l.stdin.Close()
	if l.tree.gone(ctx, l.exited, eofGrace) {
		return
	}
	// Then it sends SIGTERM to a server that has not left,
	l.tree.terminate()
	if l.tree.gone(ctx, l.exited, termGrace) {
		return
	}
	// and SIGKILL to one that is still there.
	l.tree.kill()
	l.tree.gone(context.WithoutCancel(ctx), l.exited, killGrace)
}
