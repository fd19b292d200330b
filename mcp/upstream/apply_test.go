//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// entriesOf parses configuration entries.
func entriesOf(t *testing.T, entries ...string) []config.Server {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "mcp_config.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":[`+strings.Join(entries, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{Path: file, Home: home, Dir: home, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Servers
}

// awaitClaim fails the test if a claim does not come true.
func awaitClaim(t *testing.T, what string, claim func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !claim(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestApply changes the servers of a Set that runs: only what changed restarts,
// the old process is gone before the new one is there, and what is gone from the
// configuration cannot be called.
func TestApply(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	kept, changed, removed, added := newScript(t, "kept", ""), newScript(t, "changed", ""), newScript(t, "removed", ""), newScript(t, "added", "")
	o := open(t, kept.entry(""), changed.entry(""), removed.entry(""))
	for _, name := range []string{"kept", "changed", "removed"} {
		o.call(name, "fast", "")
	}
	o.Apply(t.Context(), entriesOf(t,
		added.entry(""),
		strings.Replace(changed.entry(""), `"env":{`, `"env":{"MARK":"2",`, 1),
		kept.entry(`,"call_tool_timeout":"5m","alias":"k","tool_overrides":{"fast":{"description":"quick"}}`)))

	for name, want := range map[string]string{"kept": "fast", "changed": "fast", "added": "fast", "removed": "not configured"} {
		if got := o.call(name, "fast", ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	awaitClaim(t, "removed ends", func() bool { return removed.living() == 0 })
	if n := len(kept.events("start")); n != 1 {
		t.Errorf("kept was started %d times", n)
	}
	if n, living := len(changed.events("start")), changed.living(); n != 2 || living != 1 {
		t.Errorf("changed was started %d times, %d live", n, living)
	}
	var order []string
	for _, s := range o.Snapshot(t.Context()).Servers() {
		order = append(order, s.Prefix)
	}
	if got := fmt.Sprint(order); got != "[added changed k]" {
		t.Errorf("servers %s", got)
	}
	for _, tool := range o.Snapshot(t.Context()).Server("kept").Tools {
		if overridden := tool.Override != nil; overridden != (tool.Name == "fast") {
			t.Errorf("%s is overridden: %t", tool.Name, overridden)
		}
	}
	o.Close(context.Background())
	if n := kept.living() + changed.living() + added.living(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestApplyDuringStart takes a server away while it starts: the process ends, and
// whoever waits for it is told.
func TestApplyDuringStart(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"start_delay_ms":30000`)
	o := open(t, s.entry(""))
	got := make(chan string)
	go func() { got <- o.call("s", "fast", "") }()
	awaitClaim(t, "it starts", func() bool { return s.living() == 1 })
	begun := time.Now()
	o.Apply(t.Context(), nil)
	if text := <-got; !strings.Contains(text, "server s") {
		t.Errorf("the call gave %s", text)
	}
	awaitClaim(t, "it ends", func() bool { return s.living() == 0 })
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it ended after %s", took)
	}
}

// marked is the entry of a server with a variable, whose value is part of what
// its connection is made of.
func marked(s *script, value string) string {
	return strings.Replace(s.entry(""), `"env":{`, `"env":{"MARK":"`+value+`",`, 1)
}

// TestNeverTwice changes the entry of a server while it starts, twice while it
// stops, and takes it away and brings it back: there is never a second process.
func TestNeverTwice(t *testing.T) {
	for name, steps := range map[string]struct {
		scenario string
		entries  []string // values of MARK, "" for no entry at all
	}{
		"while it starts": {`"start_delay_ms":700`, []string{"1", "2"}},
		"twice":           {`"eof_delay_ms":1400`, []string{"1", "2", "3"}},
		"away and back":   {`"eof_delay_ms":1400`, []string{"1", "", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, "s", steps.scenario)
			o := open(t, marked(s, "0"))
			var calls sync.WaitGroup
			call := func() { calls.Go(func() { o.call("s", "fast", "") }) }
			call()
			awaitClaim(t, "it starts", func() bool { return s.living() == 1 })
			if !strings.Contains(steps.scenario, "start_delay") {
				calls.Wait()
			}
			done := make(chan struct{})
			var watching sync.WaitGroup
			watching.Go(func() {
				for {
					if n := s.living(); n > 1 {
						t.Errorf("%d processes at once", n)
						return
					}
					select {
					case <-time.After(20 * time.Millisecond):
					case <-done:
						return
					}
				}
			})
			for _, value := range steps.entries {
				if value == "" {
					o.Apply(t.Context(), nil)
				} else {
					o.Apply(t.Context(), entriesOf(t, marked(s, value)))
					call()
				}
				time.Sleep(300 * time.Millisecond)
			}
			calls.Wait()
			if got := o.call("s", "fast", ""); !strings.Contains(got, "fast") {
				t.Errorf("at the end: %s", got)
			}
			close(done)
			watching.Wait()
		})
	}
}

// TestSubscriptionsOutliveChange has a session that subscribed before the
// server's entry changed hear of updates after it.
func TestSubscriptionsOutliveChange(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", "")
	o := open(t, s.entry(""))
	o.Load() // a client has said what it can do
	session, _ := sessionOf(`{}`)
	if _, failure := o.Subscribe(t.Context(), Request{Session: session, Server: "s", Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"x:1"}`)}, "x:1"); failure != nil {
		t.Fatal(failure)
	}
	o.Apply(t.Context(), entriesOf(t, marked(s, "1")))
	awaitClaim(t, "the new process is asked for updates", func() bool {
		asked, starts := s.events("subscribe"), s.events("start")
		return len(starts) == 2 && asked[len(asked)-1].PID == starts[1].PID
	})
}

// TestFailuresOfOthers takes over the backoff of another process, and not that it
// did not find a command on its PATH.
func TestFailuresOfOthers(t *testing.T) {
	now := time.Now()
	for what, c := range map[string]struct {
		row  store.Server
		want int
	}{
		"backoff":    {store.Server{State: string(Unavailable), Failures: 2, AttemptedAt: now, NextAttemptAt: now.Add(time.Hour)}, 2},
		"command":    {store.Server{State: string(Unavailable), Failures: 1, AttemptedAt: now}, 0},
		"login":      {store.Server{State: string(NeedsLogin), Failures: 1, AttemptedAt: now}, 1},
		"an old one": {store.Server{State: string(Unavailable), Failures: 2, NextAttemptAt: now.Add(time.Hour)}, 0},
	} {
		server := newServer(&Set{}, config.Server{Name: "s"})
		if server.follows(c.row); server.failures != c.want {
			t.Errorf("%s: %d failures, want %d", what, server.failures, c.want)
		}
	}
}

// TestProbes stops a server so that it answers nothing: three probes later it is
// unavailable, its process is gone, and it is back when it is called.
func TestProbes(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", "")
	o := open(t, s.entry(`,"health_check_interval":"5s"`))
	o.call("s", "fast", "")
	pid := s.events("start")[0].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitClaim(t, "it is unavailable", func() bool { return o.status("s").State != Ready })
	if reason := o.status("s").Reason; !strings.Contains(reason, "health probes") {
		t.Errorf("reason %q", reason)
	}
	awaitClaim(t, "its process is gone", func() bool { return !alive(pid) })
	if got := o.call("s", "fast", ""); !strings.Contains(got, "fast") {
		t.Errorf("after that: %s", got)
	}
}

// TestProbesSpareBusyServer counts what keeps a server from being probed.
func TestProbesSpareBusyServer(t *testing.T) {
	c := newConn(t.Context(), "s", nil, nil)
	c.pending[1] = &pendingCall{}
	if c.busy() {
		t.Error("our own request counts as a call")
	}
	c.pending[2] = &pendingCall{session: wire.NewSession("c", nil)}
	if !c.busy() {
		t.Error("a call does not count")
	}
	c.pending[2].givenUp = true
	if c.busy() {
		t.Error("a call that nobody waits for keeps the server from being probed")
	}
}

// TestProbesSpareWhoIsNotHeard gives up no server whose answers cannot be handed
// on, since a client does not read.
func TestProbesSpareWhoIsNotHeard(t *testing.T) {
	o := open(t)
	c := newConn(t.Context(), "s", nil, nil)
	c.delivering.Add(1)
	server := newServer(o.Set, config.Server{Name: "s"})
	if err := server.probe(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// listeners are sessions that take down which lists have changed.
type listeners struct{ lists chan []catalog.Kind }

// ListsChanged implements Sessions.
func (l listeners) ListsChanged(_ string, kinds []catalog.Kind) { l.lists <- kinds }

// HelloChanged implements Sessions.
func (l listeners) HelloChanged(string, json.RawMessage) {}

// TestHostedServer has a fresh hub meet a server that is known to have tools and
// says at first that it has none; what it says later is told once; what it does
// not say is waited for.
func TestHostedServer(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newScript(t, "s", `"methods":{"tools/list":{"result":{"tools":[]},"times":1},"prompts/list":{"delay_ms":2500,"result":{"prompts":[{"name":"p"}]}}}`)
	entry := Entry{
		Name: "s", Fingerprint: "f", Announced: json.RawMessage(`{}`), Command: os.Args[0], Args: []string{"stub", s.File},
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Dir: filepath.Dir(s.File), Times: Times{InitTimeout: time.Minute},
	}
	key := store.Key{Name: "s", Fingerprint: "f"}
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.PutServer(ctx, store.Server{Key: key, State: "idle", Capabilities: json.RawMessage(`{"tools":{}}`), ConnectedAt: time.Now()}); err != nil {
			return err
		}
		_, _, err := tx.ReplaceItems(ctx, key, []store.Item{{Key: key, Kind: "tool", Name: "old", Raw: json.RawMessage(`{"name":"old"}`), Hash: "h"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan []catalog.Kind, 10)
	set := Open(t.Context(), Options{
		Store: func() *store.DB { return db }, Now: time.Now, Instance: "hub",
		Sessions: listeners{told},
	})
	defer set.Close(context.Background())
	set.Load()
	set.Host("s-1", entry)
	tools, err := set.Listed(t.Context(), "s-1", catalog.Tool)
	if err != nil || len(tools) < 2 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
	prompts, err := set.Listed(t.Context(), "s-1", catalog.Prompt)
	if err != nil || len(prompts) != 1 {
		t.Errorf("%d prompts, %v", len(prompts), err)
	}
	// It dies while nobody uses it, and comes back with other tools.
	if err := syscall.Kill(set.Processes()["s-1"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Write(`"tools":[{"name":"new","inputSchema":{"type":"object"}}]`)
	awaitClaim(t, "its end is noticed", func() bool { return set.Processes()["s-1"] == 0 })
	time.Sleep(2 * followTick) // the store is looked at meanwhile
	if _, err := set.Connect(t.Context(), "s-1"); err != nil {
		t.Fatal(err)
	}
	for late, news := time.After(30*time.Second), false; !news; {
		select {
		case kinds := <-told: // the prompts, which were late, among them
			news = slices.Contains(kinds, catalog.Tool)
		case <-late:
			t.Fatal("nobody was told of the new tools")
		}
	}
}

// TestEmptyListIsReadAgain has a server say once, after a change, that it has
// nothing.
func TestEmptyListIsReadAgain(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", `"methods":{"tools/list":{"result":{"tools":[]},"times":1}}`)
	o := open(t, s.entry(""))
	server := o.server("s")
	// It was full before; the stub says once that it is empty.
	server.catalog.Tools = []*catalog.Item{catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "old"}, json.RawMessage(`{"name":"old"}`), nil)}
	o.call("s", "fast", "")
	awaitClaim(t, "the list is read", func() bool { return o.Loaded().Server("s").Known })
	if tools := o.Loaded().Server("s").Tools; len(tools) < 2 {
		t.Errorf("%d tools", len(tools))
	}
}

// TestFollow has a second process write what a server offers, and lists it
// without asking the server.
func TestFollow(t *testing.T) {
	t.Parallel()
	watchGoroutines(t)
	s := newScript(t, "s", "")
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := store.Open(t.Context(), db.Path(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	servers := entriesOf(t, s.entry(""))
	set := Open(t.Context(), Options{Servers: servers, Store: func() *store.DB { return db }, Now: time.Now})
	defer set.Close(context.Background())
	set.Snapshot(t.Context())

	key := store.Key{Name: "s", Fingerprint: servers[0].Fingerprint()}
	write := func(tool string) {
		t.Helper()
		err := other.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			row := store.Server{Key: key, State: "ready", Capabilities: json.RawMessage(`{"tools":{}}`), ConnectedAt: time.Now(), ListedAt: time.Now()}
			if err := tx.PutServer(ctx, row); err != nil {
				return err
			}
			item := catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: tool}, json.RawMessage(`{"name":"`+tool+`"}`), nil)
			_, _, err := tx.ReplaceItems(ctx, key, []store.Item{{Key: key, Kind: "tool", Name: tool, Raw: item.Raw, Hash: item.Hash()}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"first", "second"} {
		write(tool)
		awaitClaim(t, tool+" is there", func() bool {
			tools := set.Loaded().Server("s").Tools
			return len(tools) == 1 && tools[0].Name == tool
		})
	}
	if n := len(s.events("start")); n != 0 {
		t.Errorf("the server was started %d times", n)
	}
}
