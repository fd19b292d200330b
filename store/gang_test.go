package store

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// awaitStart tells a gang that this process is ready and waits for all others.
func awaitStart() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// gang is a set of processes in one role that begin together.
type gang struct {
	cmds    []*exec.Cmd
	outputs []*lineWatcher
	errors  []*bytes.Buffer
	start   *os.File
}

// gather starts n processes and has them wait in awaitStart.
func gather(t testing.TB, n int, role string, args func(i int) []string) *gang {
	t.Helper()
	wait, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g := &gang{start: start}
	t.Cleanup(func() {
		start.Close()
		for _, cmd := range g.cmds {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		}
	})
	for i := range n {
		cmd, errors := process(t, role, args(i)...)
		output := &lineWatcher{after: 1, reached: make(chan struct{})}
		cmd.Stdin, cmd.Stdout = wait, output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		g.cmds, g.outputs, g.errors = append(g.cmds, cmd), append(g.outputs, output), append(g.errors, errors)
	}
	wait.Close()
	for i := range n {
		select {
		case <-g.outputs[i].reached:
		case <-time.After(time.Minute):
			t.Fatalf("process %d does not get ready", i)
		}
	}
	return g
}

// run has them begin and returns what each wrote when all have ended.
func (g *gang) run(t testing.TB) (outputs []string) {
	t.Helper()
	g.start.Close()
	for i, cmd := range g.cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, g.errors[i])
		}
		_, rest, _ := bytes.Cut(g.outputs[i].text, []byte("ready\n"))
		outputs = append(outputs, string(rest))
	}
	return outputs
}

// lineWatcher keeps what a process writes and tells when there are after lines.
// It is read when the process has ended.
type lineWatcher struct {
	after   int
	reached chan struct{}
	lines   int
	text    []byte
}

func (w *lineWatcher) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	before := w.lines
	w.lines += bytes.Count(p, []byte("\n"))
	if before < w.after && w.lines >= w.after {
		close(w.reached)
	}
	return len(p), nil
}

// last is the number on the last whole line.
func (w *lineWatcher) last() (n int) {
	whole := string(w.text[:bytes.LastIndexByte(w.text, '\n')+1])
	lines := strings.Fields(whole)
	_, _ = fmt.Sscan(lines[len(lines)-1], &n)
	return n
}
