package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// servers are Upstreams that note what reaches them; a call waits until it may
// end.
type servers struct {
	end   chan struct{} // nil: calls end at once
	stamp string
	done  func(json.RawMessage, *wire.Error) // of the last started call

	mu   sync.Mutex
	seen []string
}

func (s *servers) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

func (s *servers) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *servers) Snapshot(context.Context) *catalog.Snapshot { return catalog.NewSnapshot(nil) }
func (s *servers) Loaded() *catalog.Snapshot                  { return catalog.NewSnapshot(nil) }
func (s *servers) Stamp(context.Context) string               { return s.stamp }
func (s *servers) Settle(context.Context)                     { s.note("settle") }
func (s *servers) SetLevel(level string)                      { s.note("level " + level) }
func (s *servers) Notified(method string, _ json.RawMessage)  { s.note(method) }

func (s *servers) Start(r Request, done func(json.RawMessage, *wire.Error)) (func(error), bool) {
	s.note("start " + r.Server + " " + r.Method)
	s.done = done
	return func(error) {}, true
}

func (s *servers) Do(ctx context.Context, r Request) (json.RawMessage, *wire.Error) {
	s.note("do " + r.Server + " " + r.Method)
	if s.end != nil {
		select {
		case <-s.end:
		case <-ctx.Done():
		}
	}
	return json.RawMessage(`{}`), nil
}

func (s *servers) Subscribe(_ context.Context, r Request, uri string) (json.RawMessage, *wire.Error) {
	s.note("subscribe " + r.Server + " " + uri)
	return json.RawMessage(`{}`), nil
}

func (s *servers) Unsubscribe(_ context.Context, r Request, uri string) (json.RawMessage, *wire.Error) {
	s.note("unsubscribe " + r.Server + " " + uri)
	return json.RawMessage(`{}`), nil
}

func item(server string, kind catalog.Kind, name, annotations string) *catalog.Item {
	raw := json.RawMessage(`{"annotations":` + annotations + `}`)
	return catalog.New(catalog.Ref{Server: server, Kind: kind, Name: name}, raw, nil)
}

func reader() auth.Caller { return auth.Caller{Kind: auth.Agent, All: true, Tier: catalog.Read} }

// TestRefusals is the table of what the rules forbid, and of what is said then.
func TestRefusals(t *testing.T) {
	const none, reads, writes = `{}`, `{"readOnlyHint":true}`, `{"destructiveHint":false}`
	rules := Rules{Servers: map[string]Rule{
		"open":    {Unannotated: catalog.Destructive},
		"trusted": {Unannotated: catalog.Read},
		"off":     {Disabled: true, Quarantined: true, Invalid: errors.New("no command")},
		"broken":  {Invalid: errors.New("no command"), Quarantined: true},
		"held":    {Quarantined: true},
		"some":    {EnabledTools: []string{"a"}, Unannotated: catalog.Destructive},
		"nothing": {EnabledTools: []string{}},
		"most":    {DisabledTools: []string{"b"}},
		"quiet":   {HideResources: true},
		"silent":  {HidePrompts: true},
	}}
	for _, c := range []struct {
		caller auth.Caller
		item   *catalog.Item
		want   string // part of the refusal, "" is none
	}{
		{auth.Local(), item("open", catalog.Tool, "t", none), ""},
		{auth.Local(), item("unknown", catalog.Tool, "t", none), "server unknown is not configured"},
		{auth.Local(), item("off", catalog.Tool, "t", none), "mcpproxy enable off"},
		{auth.Local(), item("broken", catalog.Tool, "t", none), "server broken cannot be used: no command"},
		{auth.Local(), item("held", catalog.Tool, "t", none), "server held is quarantined"},
		{auth.Local(), item("held", catalog.Resource, "x:1", none), "server held is quarantined"},
		{auth.Local(), item("held", catalog.Prompt, "p", none), "server held is quarantined"},
		{auth.Local(), item("some", catalog.Tool, "a", none), ""},
		{auth.Local(), item("some", catalog.Tool, "b", none), "tool b of server some is disabled"},
		{auth.Local(), item("some", catalog.Prompt, "b", none), ""},
		{auth.Local(), item("nothing", catalog.Tool, "a", none), "tool a of server nothing is disabled"},
		{auth.Local(), item("most", catalog.Tool, "a", none), ""},
		{auth.Local(), item("most", catalog.Tool, "b", none), "tool b of server most is disabled"},
		{auth.Local(), item("quiet", catalog.Resource, "x:1", none), "expose_resources"},
		{auth.Local(), item("quiet", catalog.Template, "x:{a}", none), "expose_resources"},
		{auth.Local(), item("quiet", catalog.Tool, "t", none), ""},
		{auth.Local(), item("quiet", catalog.Prompt, "p", none), ""},
		{auth.Local(), item("silent", catalog.Prompt, "p", none), "expose_prompts"},
		{auth.Local(), item("silent", catalog.Resource, "x:1", none), ""},
		{reader(), item("open", catalog.Tool, "t", none), `needs the permission "destructive"`},
		{reader(), item("open", catalog.Tool, "t", writes), `needs the permission "write"`},
		{reader(), item("open", catalog.Tool, "t", reads), ""},
		{reader(), item("trusted", catalog.Tool, "t", none), ""},
		{reader(), item("open", catalog.Resource, "x:1", none), ""},
		{reader(), item("open", catalog.Prompt, "p", none), ""},
	} {
		up := &servers{}
		gate := NewGate(up, rules, Options{})
		_, refusal := gate.Do(t.Context(), Use{Caller: c.caller, Item: c.item, Method: "m"})
		if may := gate.May(c.caller, c.item); may != (refusal == nil) {
			t.Errorf("%v: May says %v, Do says %v", c.item.Ref, may, refusal)
		}
		switch {
		case c.want == "" && refusal != nil:
			t.Errorf("%v is refused: %v", c.item.Ref, refusal)
		case c.want != "" && (refusal == nil || refusal.Code != wire.CodeRefused || !strings.Contains(refusal.Message, c.want)):
			t.Errorf("%v: %v, want %q", c.item.Ref, refusal, c.want)
		case (c.want == "") != (len(up.noted()) == 1):
			t.Errorf("%v: %q reached the server", c.item.Ref, up.noted())
		}
	}
	gate := NewGate(&servers{}, rules, Options{})
	if e := gate.Explain("held"); e == nil || !strings.Contains(e.Message, "quarantined") {
		t.Errorf("held: %v", e)
	}
	aliased := NewGate(&servers{}, Rules{Servers: map[string]Rule{"held": {Alias: "h", Quarantined: true}}}, Options{})
	if e := aliased.Explain("h"); e == nil || !strings.Contains(e.Message, "quarantined") {
		t.Errorf("the alias of held: %v", e)
	}
	for _, server := range []string{"open", "unknown", "some", ""} {
		if e := gate.Explain(server); e != nil {
			t.Errorf("%s: %v", server, e)
		}
	}
}

func TestMethodsReachTheirServers(t *testing.T) {
	up := &servers{}
	gate := NewGate(up, Rules{Servers: map[string]Rule{"s": {}}}, Options{})
	for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
		use := Use{Caller: auth.Local(), Item: item("s", catalog.Resource, "x:1", `{}`), Method: method, Params: json.RawMessage(`{"uri":"x:\u0031"}`)}
		if _, e := gate.Do(t.Context(), use); e != nil {
			t.Errorf("%s: %v", method, e)
		}
	}
	gate.Settle(t.Context())
	gate.SetLevel("error")
	gate.Notified("notifications/roots/list_changed", nil)
	want := []string{"do s resources/read", "subscribe s x:1", "unsubscribe s x:1", "settle", "level error", "notifications/roots/list_changed"}
	if got := up.noted(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRepeatable(t *testing.T) {
	gate := NewGate(&servers{}, Rules{}, Options{})
	for _, c := range []struct {
		kind        catalog.Kind
		annotations string
		want        bool
	}{
		{catalog.Tool, `{}`, false}, {catalog.Tool, `{"readOnlyHint":true}`, true}, {catalog.Tool, `{"idempotentHint":true}`, true},
		{catalog.Tool, `{"destructiveHint":false}`, false}, {catalog.Resource, `{}`, true}, {catalog.Prompt, `{}`, true},
	} {
		u := Use{Item: item("s", c.kind, "x", c.annotations)}
		if got := gate.request(&u).Repeatable; got != c.want {
			t.Errorf("%s %s: %v", c.kind, c.annotations, got)
		}
	}
}

// TestStamp checks that a stamp tells what a caller may see apart.
func TestStamp(t *testing.T) {
	stamp := func(from string, rules map[string]Rule, caller auth.Caller) string {
		return NewGate(&servers{stamp: from}, Rules{Servers: rules}, Options{}).Stamp(t.Context(), caller)
	}
	one := stamp("a", map[string]Rule{"s": {}, "t": {}}, auth.Local())
	if same := stamp("a", map[string]Rule{"t": {}, "s": {}}, auth.Local()); one == "" || same != one {
		t.Errorf("%q is not %q", same, one)
	}
	for name, other := range map[string]string{
		"catalog": stamp("b", map[string]Rule{"s": {}, "t": {}}, auth.Local()),
		"rules":   stamp("a", map[string]Rule{"s": {DisabledTools: []string{"x"}}, "t": {}}, auth.Local()),
		"split":   stamp("a", map[string]Rule{"s": {DisabledTools: []string{"x", "y"}}, "t": {}}, auth.Local()),
		"joined":  stamp("a", map[string]Rule{"s": {DisabledTools: []string{"x y"}}, "t": {}}, auth.Local()),
		"nothing": stamp("a", map[string]Rule{"s": {EnabledTools: []string{}}, "t": {}}, auth.Local()),
		"caller":  stamp("a", map[string]Rule{"s": {}, "t": {}}, reader()),
	} {
		if other == one {
			t.Errorf("another %s has the same stamp", name)
		}
	}
	if stamp("a", map[string]Rule{"s": {DisabledTools: []string{"x", "y"}}}, auth.Local()) == stamp("a", map[string]Rule{"s": {DisabledTools: []string{"x y"}}}, auth.Local()) {
		t.Error("two disabled tools have the stamp of one")
	}
	if got := stamp("", nil, auth.Local()); got != "" {
		t.Errorf("without a stamp of the catalog: %q", got)
	}
}

// busyGate is a gate whose calls last until end is closed.
func busyGate(own, total Limit) (*Gate, *servers) {
	up := &servers{end: make(chan struct{})}
	return NewGate(up, Rules{Servers: map[string]Rule{"a": {Limit: own}, "b": {}}, Total: total}, Options{}), up
}

func use(server string) Use {
	return Use{Caller: auth.Local(), Item: item(server, catalog.Tool, "t", `{}`), Method: "tools/call"}
}

// TestLimits runs uses against limits: some get through, some wait, some are
// shed at once.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name       string
		own, total Limit
		uses       []string // servers
		through    int
		shed       int
		says       string
	}{
		{"no limit", Limit{}, Limit{}, []string{"a", "a", "a", "b"}, 4, 0, ""},
		{"one at a time", Limit{Concurrent: 1}, Limit{}, []string{"a", "a", "b", "b"}, 3, 1, "server a is busy: 1 calls under way (max_concurrent_requests) and 0 waiting (queue_size)"},
		{"one waits", Limit{Concurrent: 1, Queue: 1}, Limit{}, []string{"a", "a", "a"}, 1, 1, "server a is busy"},
		{"two waits", Limit{Concurrent: 2, Queue: 5}, Limit{}, []string{"a", "a", "a", "a"}, 2, 0, ""},
		{"in total", Limit{}, Limit{Concurrent: 2}, []string{"a", "b", "a"}, 2, 1, "mcpproxy is busy"},
		{"both", Limit{Concurrent: 1}, Limit{Concurrent: 2}, []string{"a", "b", "a", "b"}, 2, 2, "is busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, up := busyGate(c.own, c.total)
				var shed []*wire.Error
				var all sync.WaitGroup
				var mu sync.Mutex
				for _, server := range c.uses {
					all.Go(func() {
						if _, e := gate.Do(t.Context(), use(server)); e != nil {
							mu.Lock()
							shed = append(shed, e)
							mu.Unlock()
						}
					})
					synctest.Wait()
				}
				if got := len(up.noted()); got != c.through {
					t.Errorf("%d got through, want %d", got, c.through)
				}
				if len(shed) != c.shed {
					t.Errorf("%d were shed, want %d", len(shed), c.shed)
				}
				for _, e := range shed {
					if e.Code != wire.CodeBusy || !strings.Contains(e.Message, c.says) || string(e.Data) != `{"retryAfterSeconds":1}` {
						t.Errorf("shed with %s", e.JSON())
					}
				}
				close(up.end)
				all.Wait()
				if got := len(up.noted()); got != len(c.uses)-c.shed {
					t.Errorf("%d got through in the end", got)
				}
				// What was taken is given back.
				if _, e := gate.Do(t.Context(), use("a")); e != nil {
					t.Errorf("afterwards: %v", e)
				}
			})
		})
	}
}

// TestQueueTimeout lets a use wait as long as it may, and no longer; one that
// waited for the whole gives its server's slot back.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, up := busyGate(Limit{Concurrent: 2, Queue: 2}, Limit{Concurrent: 1, Queue: 2, Timeout: 3 * time.Second})
		var all sync.WaitGroup
		all.Go(func() { gate.Do(t.Context(), use("a")) })
		synctest.Wait()
		began := time.Now()
		_, e := gate.Do(t.Context(), use("a"))
		if e == nil || e.Code != wire.CodeBusy || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), e)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, e := gate.Do(ctx, use("a")); e == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), e)
		}
		close(up.end)
		all.Wait()
		for range 2 {
			all.Go(func() {
				if _, e := gate.Do(t.Context(), use("a")); e != nil {
					t.Errorf("afterwards: %v", e)
				}
			})
		}
		all.Wait()
	})
}

// TestStartIsDoWithoutWaiting holds the fast way to the same rules: what is
// refused, or would have to wait, does not start.
func TestStartIsDoWithoutWaiting(t *testing.T) {
	up := &servers{}
	gate := NewGate(up, Rules{Servers: map[string]Rule{
		"a": {Limit: Limit{Concurrent: 1, Queue: 5}},
		"q": {Quarantined: true},
	}}, Options{})
	use := func(server, annotations string) Use {
		return Use{Caller: reader(), Item: item(server, catalog.Tool, "t", annotations), Method: "tools/call"}
	}
	const readOnly = `{"readOnlyHint":true}`
	ended := 0
	start := func(u Use) bool {
		_, started := gate.Start(u, func(json.RawMessage, *wire.Error) { ended++ })
		return started
	}
	switch {
	case start(use("q", readOnly)):
		t.Error("a call to a quarantined server was started")
	case start(use("a", `{"destructiveHint":true}`)):
		t.Error("a call above the caller's tier was started")
	case start(use("nobody", readOnly)):
		t.Error("a call to an unknown server was started")
	case !start(use("a", readOnly)):
		t.Fatal("a permitted call was not started")
	case start(use("a", readOnly)):
		t.Error("a call above the limit was started")
	}
	up.done(nil, nil)
	if ended != 1 {
		t.Fatalf("done was called %d times", ended)
	}
	if !start(use("a", readOnly)) {
		t.Error("the slot was not given back")
	}
	if got := up.noted(); !slices.Equal(got, []string{"start a tools/call", "start a tools/call"}) {
		t.Errorf("reached the servers: %q", got)
	}
}
