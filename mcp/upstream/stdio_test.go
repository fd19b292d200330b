//go:build unix

package upstream

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/wire"
)

// child is a link to a process and what came over it.
type child struct {
	*stdioLink
	t     *testing.T
	inbox chan wire.Message
	log   *serverLog
}

// spawn starts a command with a link; both end with the test.
func spawn(t *testing.T, command string, args ...string) *child {
	t.Helper()
	c := &child{t: t, inbox: make(chan wire.Message, 1000), log: newServerLog("", "s", nil, time.Now)}
	spawner := newSpawner()
	var err error
	c.stdioLink, err = startStdio(stdioOptions{
		Command: command, Args: args, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Dir: t.TempDir(),
		Log: c.log, Spawner: spawner, Garbage: func(wire.Garbage) {},
	}, func(m wire.Message, _ int64) { c.inbox <- m })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close(context.Background())
		spawner.close()
	})
	return c
}

// shell runs a shell script.
func shell(t *testing.T, script string, args ...string) *child {
	t.Helper()
	return spawn(t, "/bin/sh", append([]string{"-c", script}, args...)...)
}

// awaitDone waits for the end of the link and returns why it ended.
func (c *child) awaitDone() error {
	c.t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		c.t.Fatal("the link lives on")
	}
	return c.Err()
}

// awaitMessage waits for a notification of the child.
func (c *child) awaitMessage() wire.Message {
	c.t.Helper()
	select {
	case m := <-c.inbox:
		return m
	case <-time.After(patience):
		c.t.Fatal("no message")
		return wire.Message{}
	}
}

// closeIn closes the link and checks how long that took.
func (c *child) closeIn(least, most time.Duration) {
	c.t.Helper()
	begun := time.Now()
	if err := c.Close(c.t.Context()); err != nil {
		c.t.Errorf("close: %v", err)
	}
	if took := time.Since(begun); took < least || took > most {
		c.t.Errorf("close took %s, want %s to %s", took, least, most)
	}
	if !c.tree.empty() && !onlyDead(c.tree.group) {
		c.t.Error("a process of the group is left")
	}
}

const hello1 = `{"jsonrpc":"2.0","method":"notifications/hello"}`

// TestChildEnds tells how a child ended and what it wrote last.
func TestChildEnds(t *testing.T) {
	watchGoroutines(t)
	for script, want := range map[string]string{
		"exit 0":                             "the server process ended (status 0) and wrote nothing to stderr",
		"echo config missing: X >&2; exit 3": "the server process ended (exit status 3): config missing: X",
		"kill -9 $$":                         "the server process ended (signal: killed) and wrote nothing to stderr",
	} {
		c := shell(t, script)
		if err := c.awaitDone(); err.Error() != want {
			t.Errorf("%q: %v", script, err)
		}
		c.closeIn(0, time.Second)
	}
}

// TestTailIsBounded keeps the end of what a child wrote to stderr.
func TestTailIsBounded(t *testing.T) {
	c := shell(t, `i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`)
	err := c.awaitDone().Error()
	if len(err) > tailSize+200 || !strings.HasSuffix(err, "line 2999") || strings.Contains(err, "line 1\n") {
		t.Errorf("%d bytes: %.100s...%s", len(err), err, err[len(err)-50:])
	}
}

// TestLastWords delivers what a child wrote before it ended.
func TestLastWords(t *testing.T) {
	c := shell(t, "echo '"+hello1+"'; echo '"+hello1+"'")
	_ = c.awaitDone()
	for range 2 {
		if m := c.awaitMessage(); m.Method != "notifications/hello" {
			t.Errorf("%s", m.Raw)
		}
	}
}

// TestStartFails names what could not be started, and leaves nothing open.
func TestStartFails(t *testing.T) {
	watchGoroutines(t)
	spawner := newSpawner()
	defer spawner.close()
	dir := t.TempDir()
	for _, o := range []stdioOptions{{Command: dir + "/none"}, {Command: dir}, {Command: "/bin/sh", Dir: dir + "/none"}} {
		o.Spawner, o.Log = spawner, newServerLog("", "s", nil, time.Now)
		before := openFiles(t)
		_, err := startStdio(o, nil)
		if err == nil || !strings.Contains(err.Error(), "start "+o.Command) {
			t.Errorf("%+v: %v", o, err)
		}
		if after := openFiles(t); after > before {
			t.Errorf("%d files open, were %d", after, before)
		}
	}
}

// openFiles counts the open files of this process; 0 where that is not known.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestClosedStdout has a child that closes its stdout and lives on: it is of no
// use any more, and is stopped like any other.
func TestClosedStdout(t *testing.T) {
	watchGoroutines(t)
	c := shell(t, `echo '`+hello1+`'; exec >&-; exec sleep 60`)
	c.awaitMessage()
	if err := c.awaitDone(); err.Error() != "the server closed its stdout" {
		t.Error(err)
	}
	c.closeIn(eofGrace, eofGrace+time.Second)
}

// TestClosedStdin has a child that closes its stdin and lives on: what cannot
// be told anything is of no use either.
func TestClosedStdin(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	c := shell(t, `exec <&-; echo '`+hello1+`'; exec sleep 60`)
	c.awaitMessage()
	if err := c.Send(t.Context(), outgoing{Frame: []byte(`{}`)}); err == nil || !strings.Contains(err.Error(), "write to the server: ") {
		t.Errorf("send: %v", err)
	}
	if err := c.awaitDone(); err == nil || !strings.Contains(err.Error(), "write to the server: ") {
		t.Errorf("the link ended with: %v", err)
	}
}

// TestUnreadStdin fills the pipe of a child that does not read. Nobody is held
// up, and when it reads at last it gets all of it.
func TestUnreadStdin(t *testing.T) {
	c := shell(t, `echo '`+hello1+`'; read -r go; sleep 0.3; exec wc -c | sed 's/.*/{"jsonrpc":"2.0","method":"&"}/'`)
	c.awaitMessage()
	frame := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	begun := time.Now()
	for range 8 {
		if err := c.Send(t.Context(), outgoing{Frame: frame}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("sending took %s", took)
	}
	// Close flushes nothing, so the rest has to be out before.
	if err := c.Send(t.Context(), outgoing{Frame: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	c.out.Drain(patience)
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	// The first line went to read.
	want := fmt.Sprint(7*(len(frame)+1) + 3)
	if m := c.awaitMessage(); strings.TrimSpace(m.Method) != want {
		t.Errorf("the child got %s bytes, want %s", m.Method, want)
	}
}

// TestStalledChild has a child that reads nothing, ever: at 64 MiB it is given
// up, and the link ends.
func TestStalledChild(t *testing.T) {
	watchGoroutines(t)
	c := shell(t, `exec sleep 60`)
	frame := []byte(`{"x":"` + strings.Repeat("x", 16<<20) + `"}`)
	var err error
	for i := 0; err == nil && i < 10; i++ {
		err = c.Send(t.Context(), outgoing{Frame: frame})
	}
	if err == nil || !strings.Contains(err.Error(), wire.ErrStalled.Error()) {
		t.Errorf("send: %v", err)
	}
	if err := c.awaitDone(); err == nil || !strings.Contains(err.Error(), wire.ErrStalled.Error()) {
		t.Errorf("the link ended with: %v", err)
	}
	c.closeIn(eofGrace, eofGrace+time.Second)
}

// TestGrandchildHoldsThePipes has a child that ends and leaves a process behind
// with its pipes: the link ends all the same, and Close ends that process.
func TestGrandchildHoldsThePipes(t *testing.T) {
	watchGoroutines(t)
	c := shell(t, `trap '' TERM; sleep 60 & echo '`+hello1+`'`)
	c.awaitMessage()
	begun := time.Now()
	_ = c.awaitDone()
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("the end was noticed after %s", took)
	}
	c.closeIn(eofGrace+termGrace, eofGrace+termGrace+time.Second)
}

// TestEscapedGrandchild has one that left the group with the pipes. It cannot
// be found, but does not hold up Close either.
func TestEscapedGrandchild(t *testing.T) {
	watchGoroutines(t)
	c := shell(t, `setsid sleep 5 & echo '`+hello1+`'; exec sleep 60`)
	c.awaitMessage()
	c.closeIn(eofGrace, eofGrace+termGrace)
}

// TestLadder has children that need one, two and three rungs.
func TestLadder(t *testing.T) {
	watchGoroutines(t)
	const slack = 800 * time.Millisecond
	for name, test := range map[string]struct {
		script string
		least  time.Duration
	}{
		"end of stdin":      {`echo '` + hello1 + `'; read -r x`, 0},
		"SIGTERM":           {`echo '` + hello1 + `'; exec sleep 60`, eofGrace},
		"SIGKILL":           {`trap '' TERM; echo '` + hello1 + `'; while :; do sleep 60; done`, eofGrace + termGrace},
		"wrapper":           {`echo '` + hello1 + `'; sleep 60; true`, eofGrace},
		"waiting wrapper":   {`sleep 60 & sleep 60 & echo '` + hello1 + `'; wait`, eofGrace},
		"stubborn children": {`trap '' TERM; sleep 60 & sleep 60 & echo '` + hello1 + `'; wait`, eofGrace + termGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shell(t, test.script)
			c.awaitMessage()
			c.closeIn(test.least, test.least+slack)
		})
	}
}

// TestHurriedClose ends the context of Close, which takes no rung away.
func TestHurriedClose(t *testing.T) {
	c := shell(t, `trap 'exit 0' TERM; echo '`+hello1+`'; while :; do sleep 0.05; done`)
	c.awaitMessage()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	_ = c.Close(ctx)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("close took %s", took)
	}
	if !c.tree.empty() && !onlyDead(c.tree.group) {
		t.Error("a process of the group is left")
	}
}

// TestCloseTogether closes from several goroutines at once and again.
func TestCloseTogether(t *testing.T) {
	watchGoroutines(t)
	c := shell(t, `exec sleep 60`)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { _ = c.Close(t.Context()) })
	}
	all.Wait()
	c.closeIn(0, 100*time.Millisecond)
	if err := c.Send(t.Context(), outgoing{Frame: []byte("{}")}); err == nil {
		t.Error("a frame was sent to a closed link")
	}
}

// TestChildrenSurviveThreads has threads of this process come and go while
// children live, those of the goroutines which asked for them first of all: the
// signal that tells a child of its parent's death is bound to the thread that
// started it.
func TestChildrenSurviveThreads(t *testing.T) {
	started := make(chan *child, 4)
	var asking sync.WaitGroup
	for range cap(started) { // one may get the main thread, which never ends
		asking.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			started <- shell(t, `echo '`+hello1+`'; read -r x; echo '`+hello1+`'`)
		})
	}
	asking.Wait()
	for range 20 {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				runtime.LockOSThread()
				time.Sleep(time.Millisecond)
			})
		}
		all.Wait()
		runtime.GC()
	}
	for range cap(started) {
		c := <-started
		c.awaitMessage()
		select {
		case <-c.Done():
			t.Fatalf("the child ended: %v", c.Err())
		default:
		}
		if err := c.Send(t.Context(), outgoing{Frame: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		c.awaitMessage()
	}
}

// TestGuardProcess stops what is left when its input ends, and only that.
func TestGuardProcess(t *testing.T) {
	left, kept := shell(t, `trap '' TERM; sleep 60 & wait`), shell(t, `exec sleep 60`)
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() { RunGuard(t.Context(), r, io.Discard); close(done) }()
	for _, line := range []string{"+%d\n", "garbage %d\n", "+0\n", "-1\n", "\n"} {
		if strings.Contains(line, "%d") {
			line = fmt.Sprintf(line, left.cmd.Process.Pid)
		}
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(w, "+%d\n-%d\n", kept.cmd.Process.Pid, kept.cmd.Process.Pid)
	w.Close()
	begun := time.Now()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the guard does not end")
	}
	if took := time.Since(begun); took < 2*orphanGrace || took > 2*orphanGrace+time.Second {
		t.Errorf("it took %s", took)
	}
	if err := left.awaitDone(); !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	select {
	case <-kept.Done():
		t.Errorf("the other ended too: %v", kept.Err())
	default:
	}
}

// TestGuardIsThereForGood does not let a server be used before its guard has
// become deaf to signals, however long that takes to start.
func TestGuardIsThereForGood(t *testing.T) {
	t.Parallel()
	s := open(t, newScript(t, "s", "").entry(""))
	s.guard = newGuard(func() []string { return []string{os.Args[0], "guard", "late"} }, os.Environ(), func(err error) { t.Error(err) })
	s.call("s", "fast", "")
	if err := s.guard.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		time.Sleep(10 * time.Millisecond)
		s.guard.forget(1) // one that has ended cannot be told
	}
}
