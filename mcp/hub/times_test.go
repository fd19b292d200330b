//go:build linux || darwin

package hub

import (
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
)

// TestTimes combines what several clients want of one process.
func TestTimes(t *testing.T) {
	times := func(start, health, discovery time.Duration) *upstream.Times {
		return &upstream.Times{InitTimeout: start, HealthCheckInterval: health, ToolDiscoveryInterval: discovery}
	}
	for name, test := range map[string]struct{ a, b, want *upstream.Times }{
		"both have": {times(9, 5, 7), times(8, 6, 3), times(9, 5, 3)},
		"one never": {times(9, 0, 7), times(8, 6, 0), times(9, 6, 7)},
		"all never": {times(8, 0, 0), times(9, 0, 0), times(9, 0, 0)},
	} {
		p := &process{sessions: map[*client]bool{{times: test.a}: true, {times: test.b}: true}}
		if got, wanted := p.times(); got != *test.want || !wanted {
			t.Errorf("%s: %v, %t", name, got, wanted)
		}
	}
}

// TestTimesOfAll probes a server as often as the most careful of its sessions
// wants, also after one that wants no probes has come, and until it has left.
func TestTimesOfAll(t *testing.T) {
	o := newOffice(t, t.TempDir(), time.Minute, nil)
	s := newScript(t, "probed", "")
	probes := func() int { return strings.Count(strings.Join(s.events("recv"), ""), `"ping"`) }
	careful := s.entry()
	careful.HealthCheckInterval = 20 * time.Millisecond
	a := o.session(careful)
	b := o.session(s.entry())
	before := probes()
	soon(t, "the server is probed", func() bool { return probes() > before })
	a.leave()
	soon(t, "the server is probed no more", func() bool {
		before := probes()
		time.Sleep(300 * time.Millisecond)
		return probes() == before
	})
	if b.tool("fast", `{}`) != "fast" {
		t.Error("the other session is gone")
	}
}
