package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// hubIdle is the hub_idle_timeout of the tests.
const hubIdle = time.Second

// sharedConfig is a configuration whose servers are shared, with more members,
// each with a comma behind.
func sharedConfig(members string, stubs ...*upstreamStub) string {
	return strings.Replace(privateConfig(members, stubs...), `"share_upstreams":false`, fmt.Sprintf(`"hub_idle_timeout":"%s"`, hubIdle), 1)
}

// readerSaid is what was said by whoever reads the lists of the servers: the
// instance itself, or the hub.
func (p *proxy) readerSaid() string {
	if !allShared() {
		return p.stderrText()
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "data", "logs", "hub.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(log)
}

// allShared makes the tests that would have their servers for themselves share
// them: what a client sees must be the same.
func allShared() bool { return os.Getenv("MCPPROXY_TEST_SHARED") != "" }
