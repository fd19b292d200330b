//go:build unix

package upstream

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

// alive reports whether a process is there that is more than a status to be
// asked for.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	state := string(stat[strings.LastIndexByte(string(stat), ')')+2:])
	return state[0] != 'Z' && state[0] != 'X'
}

// living counts the processes of a server that are there.
func (s *script) living() int {
	s.t.Helper()
	n := 0
	for _, e := range s.events("start") {
		if alive(e.PID) {
			n++
		}
	}
	return n
}

// status is the state of a server now.
func (o *opened) status(server string) Status {
	o.t.Helper()
	for _, status := range o.Status() {
		if status.Name == server {
			return status
		}
	}
	o.t.Fatalf("no server %s", server)
	return Status{}
}

// TestOpenStartsNothing opens a Set and looks at what it has.
func TestOpenStartsNothing(t *testing.T) {
	watchGoroutines(t)
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	o.Snapshot(t.Context())
	o.Close(t.Context())
	if n := len(s.events("start")); n != 0 {
		t.Errorf("%d starts", n)
	}
	if state := o.status("s").State; state != Idle {
		t.Errorf("state %s", state)
	}
}

// TestOneStart has many calls that all need a server nobody has started.
func TestOneStart(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"start_delay_ms":300`)
	o := open(t, s.entry(""))
	var all sync.WaitGroup
	var good atomic.Int32
	for range 50 {
		all.Go(func() {
			if strings.Contains(o.call("s", "fast", ""), "fast") {
				good.Add(1)
			}
		})
	}
	all.Wait()
	if good.Load() != 50 {
		t.Errorf("%d of 50 calls were answered", good.Load())
	}
	if n := len(s.events("start")); n != 1 {
		t.Errorf("%d starts", n)
	}
	o.Close(t.Context())
	if n := s.living(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestNeverTwoProcesses restarts a server that takes its time to leave, while
// calls go on: the new process never lives beside the old one.
func TestNeverTwoProcesses(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"ignore_eof":true`)
	o := open(t, s.entry(""))
	o.call("s", "fast", "")
	stop := make(chan struct{})
	var watching, calling sync.WaitGroup
	var most atomic.Int32
	watching.Go(func() {
		for {
			most.Store(max(most.Load(), int32(s.living())))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	calling.Go(func() {
		for {
			o.call("s", "fast", "")
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	if err := o.Restart(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if result := o.call("s", "fast", ""); !strings.Contains(result, "fast") {
		t.Error(result)
	}
	close(stop)
	watching.Wait()
	calling.Wait()
	if most.Load() != 1 {
		t.Errorf("%d processes at once", most.Load())
	}
	if n := len(s.events("start")); n != 2 {
		t.Errorf("%d starts", n)
	}
	if state := o.status("s").State; state != Ready {
		t.Errorf("state %s", state)
	}
}

// TestRestartOfWrapper restarts a server behind a shell; nothing of the old one
// is left.
func TestRestartOfWrapper(t *testing.T) {
	t.Parallel()
	s := newScript(t, "s", `"ignore_eof":true,"ignore_term":true`)
	o := open(t, fmt.Sprintf(`{"name":"s","command":"sh","args":["-c","exec 3<&0; \"$0\" stub \"$1\" <&3 & wait",%q,%q],"env":{"GORACE":"atexit_sleep_ms=0"}}`, os.Args[0], s.File))
	o.call("s", "fast", "")
	if err := o.Restart(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if n := s.living(); n != 1 || len(s.events("start")) != 2 {
		t.Errorf("%d processes after %d starts", n, len(s.events("start")))
	}
}

// TestCloseDuringStart closes while servers are being started and none of them
// has answered.
func TestCloseDuringStart(t *testing.T) {
	watchGoroutines(t)
	var scripts []*script
	var entries []string
	for i := range 3 {
		s := newScript(t, fmt.Sprintf("s%d", i), `"ignore_eof":true,"ignore_term":true,"methods":{"initialize":{"never":true}}`)
		scripts, entries = append(scripts, s), append(entries, s.entry(""))
	}
	o := open(t, entries...)
	var calls sync.WaitGroup
	for _, s := range scripts {
		calls.Go(func() {
			if result := o.call(s.Name, "fast", ""); !strings.Contains(result, "shutting down") {
				t.Errorf("%s: %s", s.Name, result)
			}
		})
		if !eventually(func() bool { return len(s.events("recv")) > 0 }) {
			t.Fatal("it does not start")
		}
	}
	begun := time.Now()
	o.Close(t.Context())
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("close took %s", took)
	}
	calls.Wait()
	for _, s := range scripts {
		if n := s.living(); n != 0 {
			t.Errorf("%s: %d processes are left", s.Name, n)
		}
	}
	if result := o.call("s0", "fast", ""); !strings.Contains(result, "shutting down") {
		t.Errorf("after close: %s", result)
	}
}

// TestCloseAtAnyMoment closes at a different moment of the start each time.
func TestCloseAtAnyMoment(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	for i := range 12 {
		s := newScript(t, "s", "")
		o := open(t, s.entry(""))
		done := make(chan struct{})
		go func() { defer close(done); o.call("s", "fast", "") }()
		time.Sleep(time.Duration(i) * 15 * time.Millisecond) // another moment each time
		o.Close(t.Context())
		<-done
		if n := s.living(); n != 0 {
			t.Errorf("after %d: %d processes are left", i, n)
		}
	}
}

// TestCallUnderWayAtClose ends a call with the Set, and tells why.
func TestCallUnderWayAtClose(t *testing.T) {
	watchGoroutines(t)
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	done := make(chan string)
	go func() { done <- o.call("s", "hang", "") }()
	if !eventually(func() bool {
		for _, e := range s.events("recv") {
			if strings.Contains(e.Text, "hang") {
				return true
			}
		}
		return false
	}) {
		t.Fatal("the call does not arrive")
	}
	o.Close(t.Context())
	if result := <-done; !strings.Contains(result, "server s") || !strings.Contains(result, "stopped") {
		t.Error(result)
	}
	if state := o.status("s").State; state != Idle {
		t.Errorf("state %s", state)
	}
}

// TestDiesWhileListing has a server that ends whenever it is asked what it has:
// it counts as unavailable, and is tried again less and less often.
func TestDiesWhileListing(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"methods":{"tools/list":{"exit":7}}`)
	o := open(t, s.entry(""))
	o.Settle(t.Context())
	status := o.status("s")
	if status.State != Unavailable || status.Err == nil || !strings.Contains(status.Err.Error(), "exit status 7") {
		t.Errorf("%+v", status)
	}
	if !eventually(func() bool { return len(s.events("start")) >= 3 }) {
		t.Fatalf("%d starts", len(s.events("start")))
	}
	starts := s.events("start")
	first, second := starts[1].Time.Sub(starts[0].Time), starts[2].Time.Sub(starts[1].Time)
	if second < first*3/2 {
		t.Errorf("tried after %s and then after %s", first, second)
	}
	// Once it says what it has, all is well.
	s.Write("")
	o.call("s", "fast", "")
	if !eventually(func() bool { return o.Snapshot(t.Context()).Server("s").Known && o.status("s").State == Ready }) {
		t.Errorf("%+v", o.status("s"))
	}
}

// TestManyListsDuringBackoff asks for lists again and again while a server is
// not due: that starts nothing, no goroutines either.
func TestManyListsDuringBackoff(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"exit_at_start":1`)
	o := open(t, s.entry(""))
	o.Settle(t.Context())
	if !eventually(func() bool { return len(s.events("start")) >= 3 && o.status("s").State == Unavailable }) {
		t.Fatal("it is not tried again")
	}
	starts, before := len(s.events("start")), goroutinesOf(t)
	for range 200 {
		o.Settle(t.Context())
	}
	if !eventually(func() bool { return goroutinesOf(t) <= before+5 }) {
		t.Errorf("%d goroutines, were %d", goroutinesOf(t), before)
	}
	if n := len(s.events("start")); n > starts+1 {
		t.Errorf("%d starts after %d", n, starts)
	}
}

// TestSettleEndsWithItsContext does not wait for longer than its caller.
func TestSettleEndsWithItsContext(t *testing.T) {
	s := newScript(t, "s", `"start_delay_ms":20000`)
	o := open(t, s.entry(""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	o.Settle(ctx)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestPermanentError is not tried again by itself, and at each call only when
// somebody could have changed something.
func TestPermanentError(t *testing.T) {
	watchGoroutines(t)
	o := open(t, `{"name":"s","command":"no-such-binary-anywhere"}`)
	for range 5 {
		if result := o.call("s", "t", ""); !strings.Contains(result, "server s cannot be reached (state unavailable)") ||
			!strings.Contains(result, "no-such-binary-anywhere") {
			t.Error(result)
		}
	}
	if n := strings.Count(o.warnings(), "no-such-binary-anywhere"); n != 1 {
		t.Errorf("warnings: %s", o.warnings())
	}
}

// TestRefusedInitialize relays why a server refused the handshake.
func TestRefusedInitialize(t *testing.T) {
	watchGoroutines(t)
	s := newScript(t, "s", `"methods":{"initialize":{"error":{"code":-32603,"message":"licence expired"}}}`)
	o := open(t, s.entry(""))
	if result := o.call("s", "t", ""); !strings.Contains(result, "server s cannot be reached") || !strings.Contains(result, "licence expired") {
		t.Error(result)
	}
	if n := s.living(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestUnknownProtocol names the version that the server insists on.
func TestUnknownProtocol(t *testing.T) {
	s := newScript(t, "s", `"protocol":"2019-01-01"`)
	o := open(t, s.entry(""))
	if result := o.call("s", "t", ""); !strings.Contains(result, `protocol version \"2019-01-01\"`) && !strings.Contains(result, `protocol version "2019-01-01"`) {
		t.Error(result)
	}
}

// TestListChanges has a server whose tools change while it runs.
func TestListChanges(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	o.Settle(t.Context())
	has := func(tool string) bool {
		for _, item := range o.Snapshot(t.Context()).Server("s").Items(catalog.Tool) {
			if item.Name == tool {
				return true
			}
		}
		return false
	}
	if has("fresh") || !has("fast") {
		t.Error("the first list is wrong")
	}
	o.call("s", "addtool", `{"name":"fresh"}`)
	if !eventually(func() bool { return has("fresh") }) {
		t.Error("an added tool is not seen")
	}
	o.call("s", "droptool", `{"name":"fast"}`)
	if !eventually(func() bool { return !has("fast") }) {
		t.Error("a dropped tool is still there")
	}
}

// TestTimedOutListKeepsTheOld reads a list again in vain; what was known stays.
func TestTimedOutListKeepsTheOld(t *testing.T) {
	s := newScript(t, "s", "")
	o := open(t, s.entry(`,"init_timeout":"1s"`))
	o.Settle(t.Context())
	s.Write(`"methods":{"tools/list":{"never":true}}`)
	if err := o.Restart(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return strings.Contains(o.warnings(), "tools/list: no answer within 1s (init_timeout)") }) {
		t.Errorf("warnings: %s", o.warnings())
	}
	if n := len(o.Snapshot(t.Context()).Server("s").Items(catalog.Tool)); n == 0 {
		t.Error("the tools are gone")
	}
}
