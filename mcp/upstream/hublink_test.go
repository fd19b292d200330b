//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// helloWith is an answer to initialize with these capabilities.
func helloWith(capabilities string) json.RawMessage {
	return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `}`)
}

// TestHelloOfTheHub has the hub tell that a server has restarted: once before its
// answer to hub/open, which says what was before, and once while the session is
// open. What came last counts, without another connection.
func TestHelloOfTheHub(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	near, far := net.Pipe()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer far.Close()
	var writing sync.Mutex
	write := func(frame []byte) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = far.Write(append(frame, '\n')) // fails at the end of the test
	}
	serving.Go(func() {
		in := wire.NewReader(far, 0, nil)
		for {
			m, err := in.Next()
			switch {
			case err != nil:
				return
			case m.Method == MethodOpen:
				write(wire.Notification(MethodHello, helloWith(`{"tools":{},"completions":{}}`)))
				write(wire.Response(m.ID, wire.SetMember(json.RawMessage(`{"hub":"h","pid":1}`), helloWith(`{"tools":{}}`), "initialize")))
			case m.Method == "tools/list":
				write(wire.Response(m.ID, json.RawMessage(`{"tools":[{"name":"t"}]}`)))
			}
		}
	})
	dials := 0
	home := t.TempDir()
	set := Open(t.Context(), Options{
		Servers: entriesOf(t, `{"name":"s","command":`+string(wire.Quote(os.Args[0]))+`}`),
		Env:     config.Env{Environ: os.Environ(), Home: home, Dir: home},
		Store:   func() *store.DB { return nil },
		Shared:  func(config.Server) bool { return true },
		Hub: func(context.Context) (net.Conn, error) {
			dials++
			return near, nil
		},
		Now: time.Now,
	})
	defer set.Close(context.Background())
	set.Introduce(t.Context(), "s")
	completions := func() bool { return set.Snapshot(t.Context()).Server("s").Completions }
	if !completions() {
		t.Error("what the hub said before its answer is lost")
	}
	write(wire.Notification(MethodHello, helloWith(`{"tools":{}}`)))
	awaitClaim(t, "the news of the open session count", func() bool { return !completions() })
	if dials != 1 {
		t.Errorf("there were %d connections", dials)
	}
}
