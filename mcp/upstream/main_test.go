package upstream

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
	scripted "mcpproxy/testdata/stub"
	scripts "mcpproxy/testdata/stub/script"
)

// TestMain makes this test binary serve as a server, "stub SCENARIO", and as
// the guard process.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "stub":
		os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == "guard":
		if len(os.Args) > 2 {
			time.Sleep(500 * time.Millisecond) // a machine with much to do
		}
		signal.Ignore(syscall.SIGTERM)
		RunGuard(context.Background(), os.Stdin, os.Stdout)
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 && !nothingLeft() {
		code = 1
	}
	os.Exit(code)
}

// script is a server of a test: this binary again, doing what a scenario says.
type script struct {
	*scripts.Script
	t *testing.T
}

// newScript makes a server that does what the members of the scenario say.
func newScript(t *testing.T, name, members string) *script {
	t.Helper()
	return &script{scripts.New(t, name, members), t}
}

// entry is the configuration entry, with more members.
func (s *script) entry(more string) string {
	// Under the race detector processes take a second to end, unless told.
	return fmt.Sprintf(`{"name":%q,"command":%q,"args":["stub",%q],"env":{"GORACE":"atexit_sleep_ms=0"}%s}`, s.Name, os.Args[0], s.File, more)
}

// events are the events of a kind so far.
func (s *script) events(kind string) []scripted.Event { return s.Events(kind) }

// opened is a Set and what it has said.
type opened struct {
	*Set
	t       *testing.T
	closing sync.Once

	mu    sync.Mutex
	warns []string
}

// open opens a Set with these configuration entries, without a store, which is
// closed at the end of the test.
func open(t *testing.T, entries ...string) *opened {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "mcp_config.json")
	text := `{"mcpServers":[` + strings.Join(entries, ",") + `]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{Path: file, Home: home, Dir: home, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.Servers {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
	}
	o := &opened{t: t}
	o.Set = Open(t.Context(), Options{
		Servers: cfg.Servers,
		Env:     config.Env{Environ: os.Environ(), Home: home, Dir: home},
		Store:   func() *store.DB { return nil },
		Warn: func(text string) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.warns = append(o.warns, text)
		},
		Now: time.Now,
	})
	t.Cleanup(func() { o.Close(context.Background()) })
	return o
}

// Close closes the Set; a second time does nothing.
func (o *opened) Close(ctx context.Context) {
	o.closing.Do(func() { o.Set.Close(ctx) })
}

// warnings are all warnings so far.
func (o *opened) warnings() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.warns, "\n")
}

// call calls a tool and returns the raw result.
func (o *opened) call(server, tool, arguments string) string {
	o.t.Helper()
	if arguments == "" {
		arguments = "{}"
	}
	result, failure := o.Do(o.t.Context(), Request{
		Server: server, Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments),
	})
	if failure != nil {
		return failure.Error()
	}
	return string(result)
}
