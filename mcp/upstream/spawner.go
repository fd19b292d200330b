package upstream

import (
	"os/exec"
	"runtime"
)

// spawner starts children from one operating system thread that lives as long
// as the spawner. Linux sends the parent-death signal when the thread that
// forked ends, not the process, so children must not come from a thread that
// the Go runtime may retire.
type spawner struct {
	orders chan order
	done   chan struct{}
}

type order struct {
	cmd    *exec.Cmd
	result chan error
}

func newSpawner() *spawner {
	s := &spawner{orders: make(chan order), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for o := range s.orders {
		o.result <- o.cmd.Start()
	}
}

// start is cmd.Start on the spawner's thread.
func (s *spawner) start(cmd *exec.Cmd) error {
	o := order{cmd, make(chan error, 1)}
	s.orders <- o
	return <-o.result
}

// close ends the thread; no child may be left.
func (s *spawner) close() {
	close(s.orders)
	<-s.done
}
