//go:build linux || darwin

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// openStore opens the store in a folder until the end of the test.
func openStore(t *testing.T, dir string, now func() time.Time) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// office is a hub in the process of the test.
type office struct {
	t    *testing.T
	dir  string
	db   *store.DB
	id   string
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned
	err  error
}

// newOffice runs a hub until the end of the test.
func newOffice(t *testing.T, dir string, idle time.Duration, change func(*Options)) *office {
	t.Helper()
	o := &office{t: t, dir: dir, db: openStore(t, dir, nil), id: NewID(), done: make(chan struct{})}
	options := optionsFor(o.db, dir, testBuild, o.id, idle)
	options.Log = func(text string) { t.Log(text) }
	if change != nil {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.stop = cancel
	go func() {
		defer close(o.done)
		o.err = Run(ctx, options)
	}()
	t.Cleanup(func() {
		cancel()
		o.ended()
	})
	soon(t, "the hub is registered", func() bool {
		hub, found, err := Find(t.Context(), o.db, options.Build)
		return err == nil && found && hub.ID == o.id
	})
	return o
}

// ended waits for the end of the hub, which must be in order.
func (o *office) ended() {
	o.t.Helper()
	select {
	case <-o.done:
		if o.err != nil {
			o.t.Errorf("the hub returned %v", o.err)
		}
	case <-time.After(eventually):
		o.t.Error("the hub does not end")
	}
}

// running reports whether the hub has not ended.
func (o *office) running() bool {
	select {
	case <-o.done:
		return false
	default:
		return true
	}
}

// socket is where the hub listens.
func (o *office) socket() string {
	o.t.Helper()
	hub, found, err := Find(o.t.Context(), o.db, testBuild)
	if err != nil || !found {
		o.t.Fatalf("no hub is registered: %v", err)
	}
	return hub.Socket
}

// report asks the hub what it does.
func (o *office) report() Report {
	o.t.Helper()
	conn, err := Connect(o.t.Context(), o.socket())
	if err != nil {
		o.t.Fatal(err)
	}
	defer conn.Close()
	r, err := Status(o.t.Context(), conn)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// visitor is a connection of an instance, spoken to byte by byte.
type visitor struct {
	t    *testing.T
	conn net.Conn
	read sync.WaitGroup

	mu      sync.Mutex
	last    int64
	answers map[string]wire.Message // by raw id
	told    []wire.Message          // notifications and requests of the hub
	ended   bool
}

// visit connects to the hub.
func (o *office) visit() *visitor {
	o.t.Helper()
	conn, err := Connect(o.t.Context(), o.socket())
	if err != nil {
		o.t.Fatal(err)
	}
	return newVisitor(o.t, conn)
}

func newVisitor(t *testing.T, conn net.Conn) *visitor {
	v := &visitor{t: t, conn: conn, answers: map[string]wire.Message{}}
	v.read.Go(v.listen)
	t.Cleanup(v.leave)
	return v
}

func (v *visitor) listen() {
	in := wire.NewReader(v.conn, 0, nil)
	for {
		m, err := in.Next()
		v.mu.Lock()
		switch {
		case err != nil:
			v.ended = true
		case m.IsResponse():
			v.answers[string(m.ID)] = m
		default:
			v.told = append(v.told, m)
		}
		v.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// leave closes the connection; a second time does nothing.
func (v *visitor) leave() {
	_ = v.conn.Close()
	v.read.Wait()
}

func (v *visitor) write(frame []byte) {
	v.t.Helper()
	if _, err := v.conn.Write(append(frame, '\n')); err != nil {
		v.t.Fatalf("write to the hub: %v", err)
	}
}

// send sends a request and returns its id.
func (v *visitor) send(method, params string) string {
	v.t.Helper()
	v.mu.Lock()
	v.last++
	id := v.last
	v.mu.Unlock()
	v.write(wire.Request(id, method, json.RawMessage(params)))
	return fmt.Sprint(id)
}

// receive waits for the answer to a request: its result, or the text of its
// error.
func (v *visitor) receive(id string) (result json.RawMessage, failure string) {
	v.t.Helper()
	var m wire.Message
	soon(v.t, "an answer to request "+id, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		var there bool
		m, there = v.answers[id]
		if !there && v.ended {
			v.t.Fatalf("the connection ended without an answer to request %s", id)
		}
		return there
	})
	if m.Error != nil {
		return nil, wire.ParseError(m.Error).Error()
	}
	return m.Result, ""
}

// call makes a request that succeeds.
func (v *visitor) call(method, params string) json.RawMessage {
	v.t.Helper()
	result, failure := v.receive(v.send(method, params))
	if failure != "" {
		v.t.Fatalf("%s: %s", method, failure)
	}
	return result
}

// fail makes a request that fails, with a text in the error.
func (v *visitor) fail(method, params, want string) {
	v.t.Helper()
	result, failure := v.receive(v.send(method, params))
	if failure == "" || !strings.Contains(failure, want) {
		v.t.Errorf("%s: got %s %q, want an error with %q", method, result, failure, want)
	}
}

// tool calls a tool and returns the text of the result.
func (v *visitor) tool(name, arguments string) string {
	v.t.Helper()
	return text(v.call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)))
}

// text is the text of a tool's result.
func text(result json.RawMessage) string {
	for block := range wire.Elements(wire.Member(result, "content")) {
		return member(block, "text")
	}
	return ""
}

func (v *visitor) notify(method, params string) {
	v.t.Helper()
	v.write(wire.Notification(method, json.RawMessage(params)))
}

// heard are the messages of a method so far.
func (v *visitor) heard(method string) []wire.Message {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []wire.Message
	for _, m := range v.told {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// open begins a session with a server.
func (v *visitor) open(entry upstream.Entry) json.RawMessage {
	v.t.Helper()
	return v.call(upstream.MethodOpen, v.opening(entry))
}

func (v *visitor) opening(entry upstream.Entry) string {
	v.t.Helper()
	params, err := json.Marshal(upstream.OpenParams{
		Instance: "instance", Client: upstream.Client{Name: "tester", Version: "1"}, Entry: entry,
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return string(params)
}

// session is a new connection with a session.
func (o *office) session(entry upstream.Entry) *visitor {
	o.t.Helper()
	v := o.visit()
	v.open(entry)
	return v
}

// alive reports whether a process is there; one that is dead and was not waited
// for counts.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(nullSignal) == nil
}
