//go:build linux || darwin

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
	scripted "mcpproxy/testdata/stub"
	scripts "mcpproxy/testdata/stub/script"
)

// TestMain makes this test binary serve as a server, "stub SCENARIO", as the
// guard process, as a hub and as an instance that looks for one.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	code := 0
	switch os.Args[1] {
	case "stub":
		code = scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	case "guard":
		upstream.RunGuard(context.Background(), os.Stdin, os.Stdout)
	case "hub":
		code = role(roleHub(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	case "instance":
		code = role(roleInstance(os.Args[2], os.Args[3]))
	default:
		code = m.Run()
	}
	os.Exit(code)
}

func role(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// testBuild is the build of hubs and instances that are to find each other.
const testBuild = "test"

// eventually is how long tests wait for what must happen.
const eventually = 20 * time.Second

// roleHub is a hub in a process of its own, bounded in time.
func roleHub(dir, build, id, idle string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	limit, err := time.ParseDuration(idle)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		return err
	}
	err = Run(ctx, optionsFor(db, dir, build, id, limit))
	return errors.Join(err, db.Close())
}

// optionsFor are the options of a hub with a real Set.
func optionsFor(db *store.DB, dir, build, id string, idle time.Duration) Options {
	return Options{
		Store: db, DataDir: dir, Build: build, ID: id, Now: time.Now,
		IdleTimeout: func() time.Duration { return idle },
		Log:         func(text string) { fmt.Fprintln(os.Stderr, "hub", id, text) },
		Open: func(ctx context.Context, sessions upstream.Sessions) *upstream.Set {
			set := upstream.Open(ctx, upstream.Options{
				Store: func() *store.DB { return db }, Guard: func() []string { return []string{os.Args[0], "guard"} },
				Version: "test", Instance: id, Now: time.Now, Sessions: sessions,
				Warn: func(text string) { fmt.Fprintln(os.Stderr, "hub", id, text) },
			})
			set.Load() // so that it follows what others write to the store
			return set
		},
	}
}

// roleInstance opens three connections to the hub at once, prints the ids of
// the hubs it found, and keeps the connections until its input ends.
func roleInstance(dir, idle string) error {
	ctx, cancel := context.WithTimeout(context.Background(), eventually)
	defer cancel()
	db, err := store.Open(ctx, filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		return err
	}
	d := NewDialer(DialOptions{
		Store: func() *store.DB { return db }, Build: testBuild, Now: time.Now,
		Spawn: func(_ context.Context, id string) (<-chan struct{}, error) {
			cmd := exec.Command(os.Args[0], "hub", dir, testBuild, id, idle)
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			fmt.Println("started", id, cmd.Process.Pid)
			return nil, cmd.Process.Release()
		},
	})
	var all sync.WaitGroup
	found := make([]string, 3)
	for i := range found {
		all.Go(func() {
			conn, err := d.Dial(ctx)
			if err != nil {
				found[i] = err.Error()
				return
			}
			report, err := Status(ctx, conn)
			found[i] = report.ID
			if err != nil {
				found[i] = err.Error()
			}
		})
	}
	all.Wait()
	for _, id := range found {
		fmt.Println("found", id)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, db.Close())
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

// entry is what an instance hands to the hub, with more environment.
func (s *script) entry(env ...string) upstream.Entry {
	// Under the race detector processes take a second to end, unless told.
	env = append(env, "GORACE=atexit_sleep_ms=0", "PATH="+os.Getenv("PATH"))
	slices.Sort(env)
	return upstream.Entry{
		Name: s.Name, Fingerprint: "f", Announced: json.RawMessage(`{"sampling":{}}`),
		Command: os.Args[0], Args: []string{"stub", s.File}, Env: env, Dir: filepath.Dir(s.File),
		Times: upstream.Times{InitTimeout: eventually},
	}
}

// events are the texts of the events of a kind so far.
func (s *script) events(kind string) []string { return s.Texts(kind) }

// await waits until an event of a kind holds a text, and returns it.
func (s *script) await(kind, text string) string {
	return s.Await(eventually, func(e scripted.Event) bool { return e.Kind == kind && strings.Contains(e.Text, text) }).Text
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(eventually); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", eventually, what)
		}
	}
}

// member is the text of a string member, by its path.
func member(raw json.RawMessage, path ...string) string {
	text, _ := wire.String(wire.Member(raw, path...))
	return text
}
