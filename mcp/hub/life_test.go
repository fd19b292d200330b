//go:build linux || darwin

package hub

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

func pidOf(t *testing.T, v *visitor) int {
	t.Helper()
	pid, err := strconv.Atoi(v.tool("pid", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// nothingLeft checks that a hub has left nothing in the store, on the disk and
// in this process.
func (o *office) nothingLeft(socket string) {
	o.t.Helper()
	if lease, err := o.db.Lease(o.t.Context(), leaseName(testBuild)); err != nil || lease.Holder != "" {
		o.t.Errorf("the lease is %+v, %v", lease, err)
	}
	if all, err := o.db.Instances(o.t.Context()); err != nil || len(all) > 0 {
		o.t.Errorf("registered are %+v, %v", all, err)
	}
	if _, err := os.Lstat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		o.t.Errorf("the folder of the socket is still there: %v", err)
	}
	soon(o.t, "its goroutines have ended", func() bool {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		return !strings.Contains(stacks.String(), "hub.(*hub)") && !strings.Contains(stacks.String(), "wire.(*Conn)") &&
			!strings.Contains(stacks.String(), "upstream.(*")
	})
}

// TestIdleServer stops a server that nobody uses, and the hub after the last
// session.
func TestIdleServer(t *testing.T) {
	o := newOffice(t, t.TempDir(), 700*time.Millisecond, nil)
	socket := o.socket()
	a, b := newScript(t, "a", ""), newScript(t, "b", "")
	va, vb := o.session(a.entry()), o.session(b.entry())
	pa, pb := pidOf(t, va), pidOf(t, vb)
	va.leave()
	va = o.session(a.entry())
	if pid := pidOf(t, va); pid != pa {
		t.Errorf("within the idle time the process changed from %d to %d", pa, pid)
	}
	left := time.Now()
	va.leave()
	soon(t, "the unused server has ended", func() bool { return !alive(pa) })
	if after := time.Since(left); after < 700*time.Millisecond {
		t.Errorf("it was stopped after %v", after)
	}
	if pid := pidOf(t, vb); pid != pb || !o.running() {
		t.Errorf("the used server is %d, was %d", pid, pb)
	}
	vb.leave()
	o.ended()
	if alive(pb) {
		t.Error("the last server has survived the hub")
	}
	o.nothingLeft(socket)
}

// TestAtOnce keeps nothing where the idle time is zero; a hub that nobody has
// visited yet waits all the same.
func TestAtOnce(t *testing.T) {
	o := newOffice(t, t.TempDir(), 0, nil)
	s := newScript(t, "brief", "")
	v := o.session(s.entry())
	pid := pidOf(t, v)
	left := time.Now()
	v.leave()
	o.ended()
	if alive(pid) {
		t.Error("the server has survived the hub")
	}
	if after := time.Since(left); after > firstVisit {
		t.Errorf("the hub ended after %v", after)
	}
}

// TestNeverVisited ends a hub that nobody comes to.
func TestNeverVisited(t *testing.T) {
	t.Parallel() // with tests whose hubs are other processes
	began := time.Now()
	o := newOffice(t, t.TempDir(), 0, nil)
	socket := o.socket()
	o.report() // to look is no visit
	o.ended()
	if after := time.Since(began); after < firstVisit {
		t.Errorf("it ended after %v", after)
	}
	o.nothingLeft(socket)
}

// TestStay keeps a hub that has other things to do, but not its servers.
func TestStay(t *testing.T) {
	o := newOffice(t, t.TempDir(), 0, func(options *Options) { options.Stay = true })
	s := newScript(t, "brief", "")
	v := o.session(s.entry())
	pid := pidOf(t, v)
	v.leave()
	soon(t, "the server has ended", func() bool { return !alive(pid) })
	soon(t, "the hub knows", func() bool { return len(o.report().Servers) == 0 })
	if !o.running() {
		t.Error("the hub has ended too")
	}
}

// TestReplaced stops a server at once whose entry has changed, unless another
// session uses it.
func TestReplaced(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "changed", "")
	a, b := o.session(s.entry("V=1")), o.session(s.entry("V=1"))
	pid := pidOf(t, a)
	a.notify(upstream.MethodLeave, `{"replaced":true}`)
	a.leave()
	soon(t, "the hub knows", func() bool { return o.report().Servers[0].Users == 1 })
	if got := pidOf(t, b); got != pid {
		t.Errorf("the other session's process changed from %d to %d", pid, got)
	}
	next := o.session(s.entry("V=2"))
	began := time.Now()
	b.notify(upstream.MethodLeave, `{"replaced":true}`)
	b.leave()
	soon(t, "the old process has ended", func() bool { return !alive(pid) })
	if after := time.Since(began); after > 5*time.Second {
		t.Errorf("it ended after %v", after)
	}
	if pidOf(t, next) == pid {
		t.Error("the new entry uses the old process")
	}
}

// TestReplacedOneByOne starts what an entry was replaced by when the old process
// has ended, also where its last session has only said that it will leave.
func TestReplacedOneByOne(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	for _, lingers := range []bool{false, true} {
		s := newScript(t, "stubborn", `"eof_delay_ms":1500`)
		v := o.session(s.entry("V=1"))
		pid := pidOf(t, v)
		v.notify(upstream.MethodLeave, `{"replaced":true}`)
		v.call("ping", `{}`) // it has been read
		next := o.visit()
		var id string
		if lingers {
			id = next.send(upstream.MethodOpen, next.opening(s.entry("V=2")))
			next.call("ping", `{}`)
		}
		v.leave()
		s.await("eof", "")
		if !alive(pid) {
			t.Fatal("the process was too quick for this test")
		}
		if !lingers {
			id = next.send(upstream.MethodOpen, next.opening(s.entry("V=2")))
		}
		if _, failure := next.receive(id); failure != "" {
			t.Fatal(failure)
		}
		if alive(pid) {
			t.Errorf("lingers %t: the old process had not ended", lingers)
		}
		next.leave()
	}
}

// TestComingBack never has two processes of an entry: a session that comes while
// the old process is being stopped waits for its end.
func TestComingBack(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "stubborn", `"eof_delay_ms":1500`)
	v := o.session(s.entry())
	pid := pidOf(t, v)
	v.notify(upstream.MethodLeave, `{"replaced":true}`)
	v.leave()
	s.await("eof", "")
	if !alive(pid) {
		t.Fatal("the process was too quick for this test")
	}
	next := o.session(s.entry())
	if alive(pid) {
		t.Error("there were two processes")
	}
	if pidOf(t, next) == pid {
		t.Error("the session has the old process")
	}
}

// TestStop stops a hub from the outside; the answer comes when all servers have
// ended.
func TestStop(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	socket := o.socket()
	s := newScript(t, "stubborn", `"eof_delay_ms":1000`)
	v := o.session(s.entry())
	pid := pidOf(t, v)
	conn, err := Connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- Stop(t.Context(), conn) }()
	s.await("eof", "")
	if _, err := Connect(t.Context(), socket); !errors.Is(err, errEnding) {
		t.Errorf("a visitor who came then got %v", err)
	}
	if lease, err := o.db.Lease(t.Context(), leaseName(testBuild)); err != nil || lease.Holder != o.id {
		t.Errorf("the lease is %+v, %v, while a server runs", lease, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if alive(pid) {
		t.Error("the server has survived")
	}
	_ = conn.Close()
	o.ended()
	soon(t, "the session has ended", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.ended
	})
	o.nothingLeft(socket)
}

// TestInterrupted ends a hub with its process.
func TestInterrupted(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	socket := o.socket()
	v := o.session(newScript(t, "one", "").entry())
	pid := pidOf(t, v)
	o.stop()
	o.ended()
	if alive(pid) {
		t.Error("the server has survived")
	}
	o.nothingLeft(socket)
}

// TestLostLease has a hub whose place was taken serve its sessions to the end,
// and nobody else.
func TestLostLease(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	socket := o.socket()
	s := newScript(t, "one", "")
	v := o.session(s.entry())
	pid := pidOf(t, v)
	if ok, err := o.db.Succeed(t.Context(), leaseName(testBuild), o.id, "another", time.Minute); err != nil || !ok {
		t.Fatal(ok, err)
	}
	soon(t, "nobody listens", func() bool {
		_, err := Connect(t.Context(), socket)
		return errors.Is(err, ErrGone)
	})
	if got := pidOf(t, v); got != pid || !o.running() {
		t.Errorf("the session's process is %d, was %d", got, pid)
	}
	v.leave()
	o.ended()
	if alive(pid) {
		t.Error("the server has survived")
	}
	if lease, err := o.db.Lease(t.Context(), leaseName(testBuild)); err != nil || lease.Holder != "another" {
		t.Errorf("the lease is %+v, %v", lease, err)
	}
}

// TestLeftProcesses keeps a dead hub registered as long as its processes may be
// there, so that every later hub knows of them.
func TestLeftProcesses(t *testing.T) {
	for _, ends := range []bool{true, false} {
		dir := t.TempDir()
		db := openStore(t, dir, nil)
		cmd := exec.Command(os.Args[0], "stub", newScript(t, "one", "").File)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		input, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		end := sync.OnceFunc(func() { _, _ = input.Close(), cmd.Wait() })
		t.Cleanup(end)
		err = errors.Join(
			db.PutInstance(t.Context(), store.Instance{ID: "dead", Kind: Kind, Build: "other", Socket: filepath.Join(dir, "dead.sock")}),
			db.PutProcess(t.Context(), store.Process{Instance: "dead", ID: "1", Key: store.Key{Name: "one"}, PID: cmd.Process.Pid}),
		)
		if err != nil {
			t.Fatal(err)
		}
		began, passed := time.Now(), atomic.Int64{}
		o := newOffice(t, dir, time.Minute, func(options *Options) {
			options.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
		})
		o.report() // it has seen what the dead hub left
		if all, err := db.Instances(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("registered are %+v, %v", all, err)
		}
		if all, err := db.Processes(t.Context()); err != nil || len(all) != 1 || all[0].Instance != "dead" {
			t.Errorf("recorded are %+v, %v", all, err)
		}
		if ends {
			end()
		} else {
			passed.Store(int64(orphanWait)) // the pid must be another's
		}
		soon(t, "the dead hub is forgotten", func() bool {
			all, err := db.Instances(t.Context())
			return err == nil && len(all) == 1 && all[0].ID == o.id
		})
		if all, err := db.Processes(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("recorded are %+v, %v", all, err)
		}
		o.stop()
		o.ended()
	}
}

// TestTaken refuses to be a second hub.
func TestTaken(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	err := Run(t.Context(), optionsFor(o.db, o.dir, testBuild, NewID(), time.Minute))
	if !errors.Is(err, ErrTaken) {
		t.Errorf("the second hub returned %v", err)
	}
	if !o.running() || o.report().ID != o.id {
		t.Error("the first hub was disturbed")
	}
}

// TestSweep removes what dead hubs left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, nil)
	path, err := socketPath(dir, "dead")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(path)
	old := time.Now().Add(-time.Hour)
	abandon := func(name string) string {
		path := filepath.Join(folder, name)
		l, err := listenAt(path)
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead := abandon("dead.sock")
	young := abandon("young.sock")
	if err := os.Chtimes(young, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(folder, "live.sock")
	l, err := listenAt(live)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(folder, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{live, file} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for id, socket := range map[string]string{"dead": dead, "live": live} {
		if err := db.PutInstance(t.Context(), store.Instance{ID: id, Kind: Kind, Build: "other", Socket: socket}); err != nil {
			t.Fatal(err)
		}
	}
	o := newOffice(t, dir, time.Minute, nil)
	soon(t, "the dead hub's socket is gone", func() bool { _, err := os.Lstat(dead); return errors.Is(err, os.ErrNotExist) })
	for _, path := range []string{young, live, file} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("what must stay: %v", err)
		}
	}
	all, err := db.Instances(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("registered are %+v, %v", all, err)
	}
	for _, instance := range all {
		if instance.ID != "live" && instance.ID != o.id {
			t.Errorf("registered is %+v", instance)
		}
	}
}
