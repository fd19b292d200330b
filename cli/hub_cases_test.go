//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/store"
)

// hubStartTime bounds the call that finds its hub killed and starts another: it
// is less than a client waits for a hub that does not come.
const hubStartTime = 8 * time.Second

// killHub ends the hub of the instances in a folder.
func killHub(t *testing.T, home string) {
	t.Helper()
	hub := hubOf(t, home)
	if hub == nil {
		t.Fatal("no hub")
	}
	if err := syscall.Kill(hub.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitUntil(t, answerTime, "the hub is gone", func() bool {
		return countOf(t, home, "mcpproxy", "hub-run") == 0
	})
}

// expectNewHub calls a server whose hub was killed: another serves it at once.
func expectNewHub(t *testing.T, p *proxy, home string) {
	t.Helper()
	begun := time.Now()
	if m := p.tool("s__echo", `{"text":"again"}`); !strings.Contains(m.text(), "again") {
		t.Errorf("a call gave %s", m.Raw)
	}
	if took := time.Since(begun); took > hubStartTime {
		t.Errorf("a call took %s", took)
	}
	if hubOf(t, home) == nil {
		t.Error("no new hub")
	}
}

// TestHubStartsBesideABrokenFile kills the hub while the configuration is
// broken: another comes, says so, and takes over its idle time when it is mended.
func TestHubStartsBesideABrokenFile(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	good := sharedConfig("", newStub(t, "s", ""))
	p := startInstances(t, 1, dir, good)[0]
	p.tool("s__echo", `{"text":"x"}`)
	save(t, dir, "{")
	killHub(t, home)
	expectNewHub(t, p, home)
	awaitUntil(t, answerTime, "the hub says what is wrong", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "data", "logs", "hub.log"))
		return err == nil && strings.Contains(string(log), "mcp_config.json")
	})
	if text := p.stderrText(); strings.Contains(text, "not shared") {
		t.Errorf("stderr: %s", text)
	}
	save(t, dir, good)
	p.close()
	// The default is many minutes.
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestHubStaysInItsFolder edits data_dir, which takes effect at the next start:
// until then a new hub is where the store of its clients is.
func TestHubStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	s := newStub(t, "s", "")
	at := func(folder string) string {
		return sharedConfig(fmt.Sprintf(`"data_dir":%q,`, filepath.Join(dir, folder)), s)
	}
	p := startProxyIn(t, dir, at("data"), "--data-dir", "")
	p.initialize("")
	p.tool("s__echo", `{"text":"x"}`)
	save(t, dir, at("elsewhere"))
	p.awaitStderr("data_dir has changed")
	killHub(t, home)
	expectNewHub(t, p, home)
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("the hub is in the folder of the next start")
	}
	p.close()
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestHubAfterAnUpgrade replaces the program under an instance, or removes it,
// and kills the hub: the instance has its own build's hub again.
func TestHubAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	original, err := exec.LookPath("mcpproxy")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(program string) error{
		"replaced": func(program string) error {
			copyProgram(t, original, program+".new")
			return os.Rename(program+".new", program)
		},
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := sharedFolder(t)
			program := filepath.Join(t.TempDir(), "mcpproxy")
			copyProgram(t, original, program)
			if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(sharedConfig("", newStub(t, "s", ""))), 0o600); err != nil {
				t.Fatal(err)
			}
			p := startProgram(t, program, dir, nil)
			p.initialize("")
			p.tool("s__echo", `{"text":"x"}`)
			if err := change(program); err != nil {
				t.Fatal(err)
			}
			killHub(t, home)
			expectNewHub(t, p, home)
			if text := p.stderrText(); text != "" {
				t.Errorf("stderr: %s", text)
			}
			if log, err := os.ReadFile(filepath.Join(dir, "data", "logs", "hub.log")); err != nil || strings.Contains(string(log), "guard") {
				t.Errorf("the hub's log: %v %s", err, log)
			}
			p.close()
			assertAllGone(t, home, hubIdle+endOfAll)
		})
	}
}

// TestHubLogIsBounded starts a hub beside a large log, which becomes large again
// while the hub runs.
func TestHubLogIsBounded(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	logs := filepath.Join(dir, "data", "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(logs, "hub.log")
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	old := strings.Repeat("0123456789abcde\n", 5<<16)
	write(t, log, []byte(old))
	write(t, log+".1", []byte("older"))
	p := startInstances(t, 1, dir, sharedConfig("", newStub(t, "s", "")))[0]
	p.tool("s__fast", "")
	said := read(log)
	if !strings.HasPrefix(said, "mcpproxy: ") || read(log+".1") != old {
		t.Errorf("the log begins with %.100q", said)
	}
	more, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = more.WriteString(old)
		err = errors.Join(err, more.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	save(t, dir, "{")
	awaitUntil(t, answerTime, "the hub goes on in an empty log", func() bool {
		return strings.HasPrefix(read(log), "mcpproxy: ") && strings.Contains(read(log), "mcp_config.json")
	})
	if kept := read(log + ".1"); kept != said+old {
		t.Errorf("%d bytes are kept, which begin with %.100q", len(kept), kept)
	}
	p.close()
	assertAllGone(t, home, hubIdle+endOfAll)
}

// TestNoHubIsSaidOnce has a file in the place of the folder of logs, so that no
// hub can be started: that is said once, however many servers there are.
func TestNoHubIsSaidOnce(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "data", "logs"), []byte("a file"))
	p := startInstances(t, 1, dir, sharedConfig("", newStub(t, "a", ""), newStub(t, "b", ""), newStub(t, "c", "")))[0]
	for _, tool := range []string{"a__fast", "b__fast", "c__fast"} {
		if m := p.tool(tool, ""); m.text() != "fast" {
			t.Errorf("%s", m.Raw)
		}
	}
	if text := p.stderrText(); strings.Count(text, "servers are not shared with other clients") != 1 {
		t.Errorf("stderr: %s", text)
	}
	p.close()
	assertAllGone(t, home, endOfAll)
}

// TestSleepersAreRemembered starts an instance after the machine slept: another
// that has said nothing for minutes is not shown, and not forgotten either; one
// that is silent for long is.
func TestSleepersAreRemembered(t *testing.T) {
	t.Parallel()
	dir, home := sharedFolder(t)
	file := filepath.Join(dir, "data", "mcpproxy.db")
	for id, silent := range map[string]time.Duration{"asleep": 2 * time.Minute, "dead": 20 * time.Minute} {
		db, err := store.Open(t.Context(), file, store.Options{Now: func() time.Time { return time.Now().Add(-silent) }})
		if err != nil {
			t.Fatal(err)
		}
		// A process that is there for sure.
		if err := db.PutInstance(t.Context(), store.Instance{ID: id, Kind: "client", Client: id, PID: os.Getpid()}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p := startInstances(t, 1, dir, privateConfig("", newStub(t, "s", "")))[0]
	db, err := store.Open(t.Context(), file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var known string
	awaitUntil(t, answerTime, "the instance has written itself", func() bool {
		all, err := db.Instances(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		known = ""
		for _, i := range all {
			known += i.Client + " "
		}
		return strings.Contains(known, "client-0")
	})
	if !strings.Contains(known, "asleep") || strings.Contains(known, "dead") {
		t.Errorf("known are %s", known)
	}
	if out := runCommand(t, dir, "status").stdout; strings.Contains(out, "asleep") {
		t.Errorf("status: %s", out)
	}
	p.close()
	assertAllGone(t, home, endOfAll)
}
