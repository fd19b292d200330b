//go:build unix

package upstream

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// every is a server entry whose lists are read again at that interval, which is
// shorter than a configuration can say.
func every(t *testing.T, interval time.Duration, entry string) config.Server {
	t.Helper()
	spec := entriesOf(t, entry)[0]
	spec.ToolDiscoveryInterval = interval
	return spec
}

// TestSweep has a server that changes its list without a word: the next reading
// finds out.
func TestSweep(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"methods":{"tools/list":{"result":{"tools":[{"name":"only","inputSchema":{"type":"object"}}]},"times":1}}`)
	var changes atomic.Int32
	set := Open(t.Context(), Options{
		Servers: []config.Server{every(t, 300*time.Millisecond, s.entry(""))},
		Store:   func() *store.DB { return nil }, Now: time.Now,
		Changed: func() { changes.Add(1) },
	})
	defer set.Close(context.Background())
	set.Introduce(t.Context())
	awaitClaim(t, "the new tools are there", func() bool { return len(set.Loaded().Server("s").Tools) > 1 })
	if n := len(s.events("start")); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
}

// TestSweepsKeepOneSession reads the lists of a remote server many times.
func TestSweepsKeepOneSession(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	var mu sync.Mutex
	sessions := map[string]bool{}
	lists := 0
	server := sdkServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				mu.Lock()
				lists++
				sessions[r.GetSession().ID()] = true
				mu.Unlock()
			}
			return next(ctx, method, r)
		}
	})
	url := serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	set := Open(t.Context(), Options{
		Servers: []config.Server{every(t, 20*time.Millisecond, fmt.Sprintf(`{"name":"s","url":%q}`, url))},
		Store:   func() *store.DB { return nil }, Now: time.Now,
	})
	defer set.Close(context.Background())
	set.Introduce(t.Context())
	awaitClaim(t, "its lists were read eight times", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return lists >= 8
	})
	mu.Lock()
	defer mu.Unlock()
	if len(sessions) != 1 {
		t.Errorf("%d sessions for %d readings", len(sessions), lists)
	}
}

// TestSweepOncePerMachine has two instances know one remote server: only one of
// them reads its lists again.
func TestSweepOncePerMachine(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	spec := entriesOf(t, `{"name":"s","url":"http://127.0.0.1:1/mcp"}`)
	var mine []bool
	var again []time.Time
	for _, instance := range []string{"one", "two"} {
		set := Open(t.Context(), Options{Servers: spec, Store: func() *store.DB { return db }, Now: time.Now, Instance: instance})
		defer set.Close(context.Background())
		turn, next := set.server("s").mine(t.Context(), "discovery", time.Minute)
		mine, again = append(mine, turn), append(again, next)
	}
	if again[1].Before(again[0]) || again[1].Sub(again[0]) > 2*time.Second {
		t.Errorf("whoever does it looks again at %v, the other at %v", again[0], again[1])
	}
	if !mine[0] || mine[1] {
		t.Errorf("whose turn it is: %v", mine)
	}
	// A child is its own process's business.
	child := Open(t.Context(), Options{Servers: entriesOf(t, `{"name":"s","command":"true"}`), Store: func() *store.DB { return db }, Now: time.Now, Instance: "three"})
	defer child.Close(context.Background())
	if turn, _ := child.server("s").mine(t.Context(), "discovery", time.Minute); !turn {
		t.Error("nobody would look after a child")
	}
}

// TestUnreadListIsReadAgain has a server refuse to list its tools twice: it is
// asked again by itself, less and less often, and is ready when it has answered.
func TestUnreadListIsReadAgain(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"methods":{"tools/list":{"times":2,"error":{"code":-32603,"message":"not now"}}}`)
	o := open(t, s.entry(`,"tool_discovery_interval":"0s"`))
	o.call("s", "fast", "")
	awaitClaim(t, "it is unavailable", func() bool { return strings.Contains(o.status("s").Reason, "not now") })
	awaitClaim(t, "it is ready", func() bool { return o.status("s").State == Ready && len(o.Loaded().Server("s").Tools) > 0 })
	var asked []time.Time
	for _, e := range s.events("recv") {
		if strings.Contains(e.Text, "tools/list") {
			asked = append(asked, e.Time)
		}
	}
	if len(asked) != 3 || asked[1].Sub(asked[0]) < firstBackoff || asked[2].Sub(asked[1]) < 2*firstBackoff {
		t.Errorf("it was asked at %v", asked)
	}
}
