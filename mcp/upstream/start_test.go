package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/wire"
)

// start starts a call and returns where its outcome comes; nil where it was not
// started.
func (o *opened) start(server, tool, arguments string, repeatable bool) (<-chan string, func(error)) {
	o.t.Helper()
	outcome := make(chan string, 2) // a second one would be a fault
	cancel, started := o.Start(Request{
		Server: server, Method: "tools/call", Repeatable: repeatable,
		Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments),
	}, func(result json.RawMessage, failure *wire.Error) {
		if failure != nil {
			outcome <- failure.Error()
			return
		}
		outcome <- string(result)
	})
	if !started {
		return nil, nil
	}
	o.t.Cleanup(func() {
		if n := len(outcome); n > 0 {
			o.t.Errorf("%s: %d outcomes too many", tool, n)
		}
	})
	return outcome, cancel
}

func (o *opened) outcome(c <-chan string) string {
	o.t.Helper()
	select {
	case text := <-c:
		return text
	case <-time.After(20 * time.Second):
		o.t.Fatal("no outcome")
		return ""
	}
}

// TestStartOnlyWithoutWaiting starts nothing that is not running yet, and
// nothing with an idle budget.
func TestStartOnlyWithoutWaiting(t *testing.T) {
	s, idle := newScript(t, "s", `"calls":{"bad":{"error":{"code":-32602,"message":"bad city"}}}`), newScript(t, "idle", "")
	o := open(t, s.entry(""), idle.entry(`,"call_idle_timeout":"10s"`))
	if c, _ := o.start("s", "fast", "{}", false); c != nil {
		t.Error("a call was started on a server that does not run")
	}
	o.call("s", "fast", "")
	o.call("idle", "fast", "")
	if c, _ := o.start("idle", "fast", "{}", false); c != nil {
		t.Error("a call with an idle budget was started")
	}
	c, _ := o.start("s", "echo", `{"big":9007199254740993}`, false)
	if got := o.outcome(c); !strings.Contains(got, "9007199254740993") {
		t.Errorf("echo: %s", got)
	}
	c, _ = o.start("s", "bad", `{}`, false)
	if got := o.outcome(c); !strings.Contains(got, "bad city (code -32602)") {
		t.Errorf("the server's error: %s", got)
	}
}

func TestStartedCallIsCancelled(t *testing.T) {
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	o.call("s", "fast", "")
	c, cancel := o.start("s", "hang", `{}`, false)
	cancel(&wire.ErrCancelled{Params: json.RawMessage(`{"requestId":"theirs","reason":"enough"}`)})
	if got := o.outcome(c); !strings.Contains(got, "cancelled") {
		t.Errorf("outcome: %s", got)
	}
	cancel(errors.New("again"))
	if !eventually(func() bool {
		for _, e := range s.events("recv") {
			if strings.Contains(e.Text, "notifications/cancelled") && strings.Contains(e.Text, "enough") && !strings.Contains(e.Text, "theirs") {
				return true
			}
		}
		return false
	}) {
		t.Error("the server did not hear of it, with its own request id")
	}
}

func TestStartedCallTakesTooLong(t *testing.T) {
	t.Parallel()
	s := newScript(t, "s", "")
	o := open(t, s.entry(`,"call_tool_timeout":"300ms"`))
	// On a busy machine the start alone can take longer than a call may.
	if !eventually(func() bool { return strings.Contains(o.call("s", "fast", ""), "fast") }) {
		t.Fatal("it does not start")
	}
	c, _ := o.start("s", "hang", `{}`, false)
	if got := o.outcome(c); !strings.Contains(got, "server s") || !strings.Contains(got, "300ms") {
		t.Errorf("outcome: %s", got)
	}
	c, _ = o.start("s", "fast", `{}`, false)
	if got := o.outcome(c); !strings.Contains(got, "fast") {
		t.Errorf("the next call: %s", got)
	}
}

// TestStartedCallsSeeTheServerDie lets a server end under two calls: the one
// that may be repeated is, on a new process, the other is told.
func TestStartedCallsSeeTheServerDie(t *testing.T) {
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	o.call("s", "fast", "")
	hung, _ := o.start("s", "hang", `{}`, false)
	c, _ := o.start("s", "exit", `{}`, false)
	for what, outcome := range map[string]<-chan string{"the call that hung": hung, "the call that ended it": c} {
		if got := o.outcome(outcome); !strings.Contains(got, "server s") || !strings.Contains(got, "ended") {
			t.Errorf("%s: %s", what, got)
		}
	}
	if got := o.call("s", "fast", ""); !strings.Contains(got, "fast") {
		t.Errorf("after the restart: %s", got)
	}
	repeated, _ := o.start("s", "hang", `{}`, true)
	exit, _ := o.start("s", "exit", `{}`, false)
	o.outcome(exit)
	if !eventually(func() bool { return len(s.events("start")) == 3 }) {
		t.Fatal("the server was not started again for the repeated call")
	}
	o.Close(t.Context())
	if got := o.outcome(repeated); !strings.Contains(got, "server s") {
		t.Errorf("the repeated call at the end: %s", got)
	}
}
