package cli_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestNobodyIsLeftShared ends an instance and the hub in every way there is while
// servers run that are hard to get rid of: none of all processes may be there
// 5 s after the idle time.
func TestNobodyIsLeftShared(t *testing.T) {
	kill := func(t *testing.T, pid int, signal syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(t *testing.T, p *proxy, hub int){
		"end of stdin":       func(_ *testing.T, p *proxy, _ int) { p.stdin.Close() },
		"SIGTERM":            func(t *testing.T, p *proxy, _ int) { kill(t, p.cmd.Process.Pid, syscall.SIGTERM) },
		"SIGKILL":            func(t *testing.T, p *proxy, _ int) { kill(t, p.cmd.Process.Pid, syscall.SIGKILL) },
		"SIGTERM of the hub": func(t *testing.T, p *proxy, hub int) { kill(t, hub, syscall.SIGTERM); p.stdin.Close() },
		"SIGKILL of the hub": func(t *testing.T, p *proxy, hub int) { kill(t, hub, syscall.SIGKILL); p.stdin.Close() },
		"SIGKILL of them both": func(t *testing.T, p *proxy, hub int) {
			kill(t, p.cmd.Process.Pid, syscall.SIGKILL)
			kill(t, hub, syscall.SIGKILL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, names := crowd(t)
			config = strings.Replace(config, `"share_upstreams":false`, fmt.Sprintf(`"hub_idle_timeout":"%s"`, hubIdle), 1)
			p := startProxy(t, config)
			p.startAll(names)
			hub := hubOf(t, p.home())
			if hub == nil {
				t.Fatal("no hub")
			}
			// The instance, the hub, its guard, eight servers, two grandchildren, the
			// four shells of three wrappers.
			p.awaitProcesses(17)
			end(t, p, hub.pid)
			t.Logf("all gone after %s", assertAllGone(t, p.home(), hubIdle+endOfAll))
			<-p.exited
		})
	}
}
