//go:build unix

package upstream

import (
	"strings"
	"testing"

	"mcpproxy/mcp/config"
)

// TestLeavingServerIsMasked takes a server away that has refused to list its
// tools and is asked for its prompts: what is said of that then, and after it is
// gone, is masked.
func TestLeavingServerIsMasked(t *testing.T) {
	watchGoroutines(t)
	t.Setenv("LEAVING_TOKEN", "s3cret-of-leaving")
	s := newScript(t, "s", `"methods":{"tools/list":{"error":{"code":-32603,"message":"refused s3cret-of-leaving"}},"prompts/list":{"never":true}}`)
	o := open(t, marked(s, "${env:LEAVING_TOKEN}"))
	o.call("s", "fast", "")
	leaving := o.server("s")
	awaitClaim(t, "prompts alone are waited for", func() bool {
		c := leaving.conn
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.pending) == 1 && len(s.events("recv")) >= 7
	})
	o.Apply(t.Context(), nil)
	awaitClaim(t, "the refusal is told", func() bool { return strings.Contains(o.warnings(), "refused ***") })
	<-leaving.gone
	leaving.warn("gone with %s", "s3cret-of-leaving")
	if got := o.warnings(); !strings.Contains(got, "server s: gone with ***") || strings.Contains(got, "s3cret") {
		t.Errorf("warnings: %s", got)
	}
}

// TestMaskOfLeavingServer has something else show the secret of a server that
// leaves.
func TestMaskOfLeavingServer(t *testing.T) {
	o := open(t)
	leaving := newServer(o.Set, config.Server{Name: "s"})
	leaving.log.mask([]string{"s3cret-of-leaving"})
	o.leave(leaving)
	o.warn("an echo of %s", "s3cret-of-leaving")
	if got := o.warnings(); got != "an echo of ***" {
		t.Errorf("warnings: %s", got)
	}
}
