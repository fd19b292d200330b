//go:build linux || darwin

package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/store"
)

// site is a data folder in which hubs are processes of their own.
type site struct {
	t    *testing.T
	dir  string
	db   *store.DB
	idle time.Duration

	mu      sync.Mutex
	started []*exec.Cmd
	last    time.Time // when the last was
}

func newSite(t *testing.T, idle time.Duration) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, dir: dir, db: openStore(t, dir, nil), idle: idle}
	t.Cleanup(func() {
		for _, cmd := range s.hubs() {
			_ = cmd.Process.Signal(syscall.SIGCONT) // it may be stopped, or gone
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return s
}

// spawn starts a hub.
func (s *site) spawn(_ context.Context, id string) (<-chan struct{}, error) {
	cmd := exec.Command(os.Args[0], "hub", s.dir, testBuild, id, s.idle.String())
	cmd.Stderr = os.Stderr
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.started, s.last = append(s.started, cmd), time.Now()
	return nil, nil
}

// hubs are all hubs that were started.
func (s *site) hubs() []*exec.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// options are those of an instance's Dialer.
func (s *site) options() DialOptions {
	return DialOptions{Store: func() *store.DB { return s.db }, Build: testBuild, Spawn: s.spawn, Now: time.Now}
}

// dial finds the hub and returns a connection with what it says of itself.
func (s *site) dial(d *Dialer) (net.Conn, Report) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), eventually)
	defer cancel()
	conn, err := d.Dial(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	report, err := Status(ctx, conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn, report
}

// TestElection has many processes look for the hub at once, several times each:
// one is started, and all find it.
func TestElection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openStore(t, dir, nil)
	type instance struct {
		cmd   *exec.Cmd
		input interface{ Close() error }
		lines []string
	}
	instances := make([]*instance, 8)
	var reading sync.WaitGroup
	for i := range instances {
		cmd := exec.Command(os.Args[0], "instance", dir, "500ms")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		this := &instance{cmd: cmd, input: in}
		instances[i] = this
		reading.Go(func() {
			for found, lines := 0, bufio.NewScanner(out); found < 3 && lines.Scan(); {
				this.lines = append(this.lines, lines.Text())
				if strings.HasPrefix(lines.Text(), "found") {
					found++
				}
			}
		})
	}
	reading.Wait()
	started, found := map[string]int{}, map[string]int{}
	pid := 0
	for _, i := range instances {
		for _, line := range i.lines {
			var id string
			if n, _ := fmt.Sscanf(line, "started %s %d", &id, &pid); n == 2 {
				started[id]++
			} else {
				found[strings.TrimPrefix(line, "found ")]++
			}
		}
	}
	if len(started) != 1 || len(found) != 1 {
		t.Errorf("started: %v, found: %v", started, found)
	}
	for id := range started {
		if found[id] != 3*len(instances) {
			t.Errorf("started %s, found %v", id, found)
		}
	}
	for _, i := range instances {
		_ = i.input.Close()
		if err := i.cmd.Wait(); err != nil {
			t.Errorf("an instance: %v", err)
		}
	}
	// Its parent has ended, and whoever inherited it need not have waited for it.
	db := openStore(t, dir, nil)
	soon(t, "the hub has ended", func() bool {
		all, err := db.Instances(t.Context())
		return err == nil && len(all) == 0
	})
}

// TestManyAtOnce has one process look for the hub from several goroutines.
func TestManyAtOnce(t *testing.T) {
	s := newSite(t, time.Minute)
	d := NewDialer(s.options())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			conn, err := d.Dial(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
	}
	all.Wait()
	if n := len(s.hubs()); n != 1 {
		t.Errorf("%d hubs were started", n)
	}
}

// TestDeadHub replaces a hub that was killed at once, without waiting for its
// lease to expire.
func TestDeadHub(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		s := newSite(t, time.Minute)
		d := NewDialer(s.options())
		_, first := s.dial(d)
		server := newScript(t, "one", `"ignore_eof":true`)
		v := newVisitor(t, mustConnect(t, s, d))
		v.open(server.entry())
		pid := pidOf(t, v)
		soon(t, "the process is recorded", func() bool {
			all, err := s.db.Processes(t.Context())
			return err == nil && len(all) == 1 && all[0].PID == pid
		})
		old, _, err := Find(t.Context(), s.db, testBuild)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.hubs()[0].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.hubs()[0].Wait()
		if !known {
			d = NewDialer(s.options())
		}
		began := time.Now()
		_, second := s.dial(d)
		if after := s.last.Sub(began); after > leaseTime/2 {
			t.Errorf("another was started after %v", after)
		}
		if second.ID == first.ID || len(s.hubs()) != 2 {
			t.Errorf("found %s, was %s; %d were started", second.ID, first.ID, len(s.hubs()))
		}
		if _, err := os.Lstat(old.Socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the dead hub's socket is still there: %v", err)
		}
		next := newVisitor(t, mustConnect(t, s, d))
		next.open(server.entry())
		if alive(pid) {
			t.Error("the dead hub's server had not ended when another was there")
		}
		soon(t, "the dead hub is forgotten", func() bool {
			all, err := s.db.Instances(t.Context())
			return err == nil && len(all) == 1
		})
	}
}

// TestTwoDeadHubs waits for the servers of a hub that was killed although the
// one that came after it was killed too.
func TestTwoDeadHubs(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	d := NewDialer(s.options())
	server := newScript(t, "one", `"ignore_eof":true,"ignore_term":true`)
	v := newVisitor(t, mustConnect(t, s, d))
	v.open(server.entry())
	pid := pidOf(t, v)
	soon(t, "the process is recorded", func() bool {
		all, err := s.db.Processes(t.Context())
		return err == nil && len(all) == 1 && all[0].PID == pid
	})
	for i := range 2 {
		if err := s.hubs()[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.hubs()[i].Wait()
		s.dial(d)
	}
	next := newVisitor(t, mustConnect(t, s, d))
	next.open(server.entry())
	if alive(pid) {
		t.Error("the first hub's server had not ended")
	}
	if n := len(s.hubs()); n != 3 {
		t.Errorf("%d hubs were started", n)
	}
}

func mustConnect(t *testing.T, s *site, d *Dialer) net.Conn {
	t.Helper()
	conn, _ := s.dial(d)
	return conn
}

// TestStoppedHub replaces a hub that accepts and never answers when its lease
// has expired; when it goes on, it leaves.
func TestStoppedHub(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	_, first := s.dial(NewDialer(s.options()))
	running, found, err := Find(t.Context(), s.db, testBuild)
	if err != nil || !found {
		t.Fatalf("registered is %+v, %v", running, err)
	}
	process := s.hubs()[0].Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The system takes a moment until none of its threads runs.
	soon(t, "it answers nothing any more", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), wakingPatience)
		defer cancel()
		conn, err := Connect(ctx, running.Socket)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	began := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), eventually)
			defer cancel()
			conn, err := NewDialer(s.options()).Dial(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			report, err := Status(ctx, conn)
			if err != nil || report.ID == first.ID {
				t.Errorf("found %s, %v", report.ID, err)
			}
		})
	}
	all.Wait()
	if after := s.last.Sub(began); after < leaseTime/2 || after > leaseTime+2*time.Second {
		t.Errorf("another was started after %v", after)
	}
	if n := len(s.hubs()); n != 2 {
		t.Errorf("%d hubs were started", n)
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.hubs()[0].Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the first hub: %v", err)
		}
	case <-time.After(eventually):
		t.Error("the first hub does not end")
	}
	hub, found, err := Find(t.Context(), s.db, testBuild)
	if err != nil || !found || hub.ID == first.ID {
		t.Errorf("registered is %+v, %v", hub, err)
	}
}

// TestEndingHub waits for a hub that is stopping its servers before another is
// started.
func TestEndingHub(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	d := NewDialer(s.options())
	conn, first := s.dial(d)
	server := newScript(t, "stubborn", `"eof_delay_ms":1500`)
	v := newVisitor(t, mustConnect(t, s, d))
	v.open(server.entry())
	pid := pidOf(t, v)
	stopped := make(chan error, 1)
	go func() { stopped <- Stop(t.Context(), conn) }()
	server.await("eof", "")
	if !alive(pid) {
		t.Fatal("the server was too quick for this test")
	}
	_, second := s.dial(d)
	if alive(pid) {
		t.Error("the new hub was there before the old one's server had ended")
	}
	if second.ID == first.ID {
		t.Error("the ending hub was found")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestStartingHub waits for a hub that another process is starting, and takes
// its place when it does not come up.
func TestStartingHub(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	// In the name of a hub that will never be.
	if held, _, err := s.db.Acquire(t.Context(), leaseName(testBuild), "never", leaseTime); err != nil || !held {
		t.Fatal(held, err)
	}
	began := time.Now()
	s.dial(NewDialer(s.options()))
	if after := s.last.Sub(began); after < leaseTime/2 || after > leaseTime+2*time.Second {
		t.Errorf("another was started after %v", after)
	}
}

// TestWokenHub keeps a hub whose lease has expired while the machine slept.
func TestWokenHub(t *testing.T) {
	s := newSite(t, time.Minute)
	_, first := s.dial(NewDialer(s.options()))
	later := func() time.Time { return time.Now().Add(time.Hour) }
	db := openStore(t, s.dir, later)
	if lease, err := db.Lease(t.Context(), leaseName(testBuild)); err != nil || lease.Holder != "" {
		t.Fatalf("the lease is %+v, %v", lease, err)
	}
	options := s.options()
	options.Store, options.Now = func() *store.DB { return db }, later
	if _, second := s.dial(NewDialer(options)); second.ID != first.ID || len(s.hubs()) != 1 {
		t.Errorf("found %s, was %s; %d were started", second.ID, first.ID, len(s.hubs()))
	}
}

// TestBuilds gives each build a hub of its own.
func TestBuilds(t *testing.T) {
	s := newSite(t, time.Minute)
	_, first := s.dial(NewDialer(s.options()))
	options := s.options()
	options.Build = "other"
	options.Spawn = func(_ context.Context, id string) (<-chan struct{}, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		cmd := exec.Command(os.Args[0], "hub", s.dir, "other", id, "1m")
		s.started = append(s.started, cmd)
		return nil, cmd.Start()
	}
	if _, second := s.dial(NewDialer(options)); second.Build != "other" || second.ID == first.ID {
		t.Errorf("found %+v", second)
	}
	if _, again := s.dial(NewDialer(s.options())); again.ID != first.ID {
		t.Errorf("the first build found %s, was %s", again.ID, first.ID)
	}
}

// TestNone tells where there can be no hub, and why.
func TestNone(t *testing.T) {
	s := newSite(t, time.Minute)
	options := s.options()
	options.Store = func() *store.DB { return nil }
	if _, err := NewDialer(options).Dial(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("without a store: %v", err)
	}

	options = s.options()
	broken, begun := errors.New("no such program"), make(chan bool, 100)
	options.Spawn = func(context.Context, string) (<-chan struct{}, error) {
		begun <- true
		time.Sleep(50 * time.Millisecond) // for the others to join
		return nil, broken
	}
	d := NewDialer(options)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := d.Dial(t.Context()); !errors.Is(err, ErrNone) || !errors.Is(err, broken) {
				t.Errorf("without a program: %v", err)
			}
		})
	}
	all.Wait()
	if n := len(begun); n > 3 {
		t.Errorf("ten who asked at once tried %d times", n)
	}
	if lease, err := s.db.Lease(t.Context(), leaseName(testBuild)); err != nil || lease.Holder != "" {
		t.Errorf("the lease is %+v, %v", lease, err)
	}

	// A hub that ends as soon as it is there.
	options.Spawn = func(ctx context.Context, id string) (<-chan struct{}, error) {
		socket, err := socketPath(s.dir, id)
		if err != nil {
			return nil, err
		}
		return nil, s.db.PutInstance(ctx, store.Instance{ID: id, Kind: Kind, Build: testBuild, Socket: socket})
	}
	if _, err := NewDialer(options).Dial(t.Context()); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "as soon as it was started") {
		t.Errorf("with a program that ends at once: %v", err)
	}

	options.Spawn = func(context.Context, string) (<-chan struct{}, error) { return nil, nil } // never comes up
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("enough waited"))
	defer cancel()
	if _, err := NewDialer(options).Dial(ctx); errors.Is(err, ErrNone) || err == nil || !strings.Contains(err.Error(), "enough waited") {
		t.Errorf("with too little time: %v", err)
	}
}

// TestKilledBeforeItIsFound replaces a hub at once that ends before it could be
// found: its lease is not waited for.
func TestKilledBeforeItIsFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	options, tries := s.options(), 0
	options.Spawn = func(ctx context.Context, id string) (<-chan struct{}, error) {
		if tries++; tries < maxStarted {
			ended := make(chan struct{})
			time.AfterFunc(20*time.Millisecond, func() { close(ended) })
			return ended, nil
		}
		return s.spawn(ctx, id)
	}
	begun := time.Now()
	if _, hub := s.dial(NewDialer(options)); hub.ID == "" {
		t.Error("found no hub")
	}
	if took := time.Since(begun); took >= leaseTime {
		t.Errorf("it took %s", took)
	}
}

// TestVanishedStore ends with one hub after the store was removed under it.
func TestVanishedStore(t *testing.T) {
	t.Parallel()
	s := newSite(t, time.Minute)
	_, first := s.dial(NewDialer(s.options()))
	if err := os.Remove(filepath.Join(s.dir, "mcpproxy.db")); err != nil {
		t.Fatal(err)
	}
	_, second := s.dial(NewDialer(s.options()))
	if second.ID != first.ID {
		// The first has sessions to end, or finds that it has lost its place.
		ended := make(chan error, 1)
		go func() { ended <- s.hubs()[0].Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the first hub: %v", err)
			}
		case <-time.After(eventually):
			t.Error("the first hub does not end")
		}
	}
	if _, third := s.dial(NewDialer(s.options())); third.ID != second.ID {
		t.Errorf("found %s, was %s", third.ID, second.ID)
	}
}
