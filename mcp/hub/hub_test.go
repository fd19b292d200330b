//go:build linux || darwin

package hub

import (
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
)

// idleHub is a hub without a Set and a socket, and a client of it.
func idleHub() (*hub, func() *client) {
	h := newHub(Options{Now: time.Now, IdleTimeout: func() time.Duration { return time.Minute }})
	return h, func() *client {
		c := &client{hub: h, session: wire.NewSession("", nil)}
		h.clients[c] = true
		return c
	}
}

// TestAdmission has a session wait for the end of what its server was replaced
// by it, and for nothing else.
func TestAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		old   process
		users []bool // sessions, each with whether its entry was replaced
		waits bool
	}{
		"replaced":               {process{name: "s", discard: true, dropping: true}, nil, true},
		"replaced, not reviewed": {process{name: "s", discard: true}, nil, true},
		"replaced, session ends": {process{name: "s"}, []bool{true}, true},
		"still used":             {process{name: "s"}, []bool{true, false}, false},
		"unused":                 {process{name: "s", dropping: true}, nil, false},
		"kept":                   {process{name: "s"}, nil, false},
		"of another server":      {process{name: "other", discard: true, dropping: true}, nil, false},
	} {
		h, join := idleHub()
		old := test.old
		old.id, old.sessions, old.gone = "old", map[*client]bool{}, make(chan struct{})
		for _, replaced := range test.users {
			c := join()
			c.replaced.Store(replaced)
			old.sessions[c] = true
		}
		h.processes[old.id] = &old
		p, gone := h.admit(join(), "new", "s", true)
		if waits := p == nil && gone == old.gone; waits != test.waits {
			t.Errorf("%s: waits: %t", name, waits)
		}
		if p, _ := h.admit(join(), "new", "s", false); p == nil {
			t.Errorf("%s: waits longer than it may", name)
		}
	}
}

// TestHostedFirst tells the Set of a process's sessions when it knows the
// process, and not before.
func TestHostedFirst(t *testing.T) {
	h, join := idleHub()
	c := join()
	c.session.SetLogLevel("error")
	p, err := h.join(t.Context(), c, upstream.Entry{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if found := h.review(); len(found.users) > 0 || len(found.levels) > 0 {
		t.Errorf("before: %v, %v", found.users, found.levels)
	}
	h.hosted(p)
	if found := h.review(); found.users[p.id] != 1 || found.levels[p.id] != "error" {
		t.Errorf("after: %v, %v", found.users, found.levels)
	}
}
