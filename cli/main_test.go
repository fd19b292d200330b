package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
	"mcpproxy/testdata/stub"
)

// TestMain makes this test binary serve as the program, and as the scriptable
// server mcpstub: scripts and tests run both in fresh processes.
func TestMain(m *testing.M) {
	program := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		code := Main(ctx, ProcessEnv())
		stop()
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){
		"mcpproxy":                 program,
		filepath.Base(runningFile): program, // started by what always leads to it
		"mcpstub": func() {
			// Not os.Exit: under the race detector that takes a second.
			syscall.Exit(stub.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the scripts of testdata/script. Each has a home folder of its
// own; what they may use beside the commands of testscript:
//
//	exits CODE COMMAND ARG...       run a command that must end with that code
//	known NAME STATE TOOLS [ERROR]  put what is known of a server into the store,
//	                                as seen five minutes before 2026-03-01T12:00Z
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"known": known,
		},
	})
}

// exits runs a command and checks its exit code. Stdout and stderr can be
// checked as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// known writes a row of the store for a configured server, as an instance that
// has run it would.
func known(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: known NAME STATE TOOLS [ERROR]")
	}
	tools, err := strconv.Atoi(args[2])
	ts.Check(err)
	ctx, home := context.Background(), ts.Getenv("HOME")
	cfg, err := config.Load(config.LoadOptions{Home: home, Dir: home})
	ts.Check(err)
	server := cfg.Server(args[0])
	if server == nil {
		ts.Fatalf("%s is not configured", args[0])
	}
	db, err := store.Open(ctx, filepath.Join(cfg.DataDir, storeFile), store.Options{Now: func() time.Time { return testNow().Add(-5 * time.Minute) }})
	ts.Check(err)
	row := store.Server{
		Key:   store.Key{Name: server.Name, Fingerprint: server.Fingerprint()},
		State: args[1], AttemptedAt: testNow().Add(-5 * time.Minute),
	}
	if len(args) > 3 {
		row.LastError = strings.Join(args[3:], " ")
	}
	if text, err := strconv.Unquote(row.LastError); err == nil {
		row.LastError = text
	}
	ts.Check(db.PutServer(ctx, row))
	if tools >= 0 {
		var items []store.Item
		for i := range tools {
			name := "tool" + strconv.Itoa(i)
			items = append(items, store.Item{Kind: "tool", Name: name, Raw: json.RawMessage(`{"name":"` + name + `"}`)})
		}
		_, _, err = db.ReplaceItems(ctx, row.Key, items)
		ts.Check(err)
	}
	ts.Check(db.Close())
}
