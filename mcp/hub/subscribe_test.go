//go:build linux || darwin

package hub

import (
	"slices"
	"strings"
	"testing"
	"time"

	scripted "mcpproxy/testdata/stub"
)

// subscriptions are what the server did about subscriptions, in order.
func (s *script) subscriptions() []string {
	s.t.Helper()
	all, err := scripted.ReadLog(s.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	var done []string
	for _, e := range all {
		if e.Kind == "subscribe" || e.Kind == "unsubscribe" {
			done = append(done, e.Kind)
		}
	}
	return done
}

// TestSubscribeAfterLeave has a session subscribe to what another that has left
// had subscribed to, while the server still works on giving that up: it hears of
// the new subscription last.
func TestSubscribeAfterLeave(t *testing.T) {
	for name, give := range map[string]func(a *visitor){
		"leaves":       func(a *visitor) { a.leave() },
		"unsubscribes": func(a *visitor) { a.send("resources/unsubscribe", `{"uri":"r:1"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, t.TempDir(), time.Minute, nil)
			s := newScript(t, "watched", `"methods":{"resources/unsubscribe":{"delay_ms":500}}`)
			a, b := o.session(s.entry()), o.session(s.entry())
			a.call("resources/subscribe", `{"uri":"r:1"}`)
			give(a)
			s.await("recv", "resources/unsubscribe")
			b.call("resources/subscribe", `{"uri":"r:1"}`)
			s.await("unsubscribe", "r:1")
			if got, want := s.subscriptions(), []string{"subscribe", "unsubscribe", "subscribe"}; !slices.Equal(got, want) {
				t.Errorf("the server did %v, want %v", got, want)
			}
		})
	}
}

// TestSecondSubscriberAsks has the first of two sessions be refused a
// subscription while the other waits for the same: the server is asked again.
func TestSecondSubscriberAsks(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "moody", `"methods":{"resources/subscribe":{"times":1,"delay_ms":500,"error":{"code":-32000,"message":"not now"}}}`)
	a, b := o.session(s.entry()), o.session(s.entry())
	first := a.send("resources/subscribe", `{"uri":"r:1"}`)
	s.await("recv", "resources/subscribe")
	b.call("resources/subscribe", `{"uri":"r:1"}`)
	if _, failure := a.receive(first); !strings.Contains(failure, "not now") {
		t.Errorf("the first got %q", failure)
	}
	b.tool("update", `{"uri":"r:1"}`)
	soon(t, "the second is told", func() bool { return len(b.heard("notifications/resources/updated")) == 1 })
	if got := s.subscriptions(); !slices.Equal(got, []string{"subscribe"}) {
		t.Errorf("the server did %v", got)
	}
}
