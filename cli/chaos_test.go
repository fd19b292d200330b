//go:build unix

package cli_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Sizes of the chaos; MCPPROXY_CHAOS, a duration, makes it last longer than in an
// ordinary run of the tests.
const (
	chaosInstances = 8
	chaosServers   = 6
	chaosTime      = 6 * time.Second
	chaosPause     = 400 * time.Millisecond // between two kills
	// Kills come in bursts, the next one when so many right answers have come since
	// the last. A dead hub is replaced within its lease and two seconds; the rest is
	// for a machine that has much else to do.
	chaosBurst    = 3
	chaosProgress = 25
	chaosRecovery = 8*time.Second + answerTime
)

// chaos is what goes on while processes are killed.
type chaos struct {
	t          *testing.T
	dir, home  string
	until      time.Time
	over       chan struct{} // closed after the last kill, when all goes on again
	random     func(n int) int
	right, bad atomic.Int64 // answers: as they should be, explicit errors
	cut        atomic.Int64 // calls whose own instance was killed
}

// TestChaos makes calls from several instances to several servers while
// instances, hubs and servers are killed: every answer is right or an explicit
// error, none is lost or swapped, a shared server never has two processes, the
// store stays whole, and nothing is left at the end.
func TestChaos(t *testing.T) {
	lasting := chaosTime
	if text := os.Getenv("MCPPROXY_CHAOS"); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var turn sync.Mutex
	source := rand.New(rand.NewPCG(seed, 1))
	c := &chaos{t: t, until: time.Now().Add(lasting), over: make(chan struct{}), random: func(n int) int {
		turn.Lock()
		defer turn.Unlock()
		return source.IntN(n)
	}}
	c.dir, c.home = sharedFolder(t)
	var stubs []*upstreamStub
	for i := range chaosServers {
		annotations := ""
		if i%2 == 0 {
			annotations = `,"annotations":{"readOnlyHint":true}`
		}
		stubs = append(stubs, newStub(t, fmt.Sprintf("s%d", i), fmt.Sprintf(
			`"list_builtins":["slow"],"tools":[{"name":"echo","inputSchema":{"type":"object"}%s}]`, annotations)))
	}
	if err := os.WriteFile(filepath.Join(c.dir, "mcp_config.json"), []byte(sharedConfig("", stubs...)), 0o600); err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for i := range chaosInstances {
		working.Go(func() {
			for life := 0; c.goesOn(); life++ {
				c.live(i, life)
			}
		})
	}
	done := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(c.kill)
	beside.Go(func() { c.watch(done, stubs) })
	working.Wait()
	close(done)
	beside.Wait()
	t.Logf("%d right answers, %d explicit errors, %d calls of killed instances", c.right.Load(), c.bad.Load(), c.cut.Load())
	assertAllGone(t, c.home, hubIdle+endOfAll)
	c.checkStore()
}

// goesOn reports whether there are calls to be made.
func (c *chaos) goesOn() bool {
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}

// live is one life of an instance and its client: calls, one after the other,
// until there are none to be made or the instance is killed.
func (c *chaos) live(client, life int) {
	cmd := exec.Command("mcpproxy", "--mode", "direct", "--config", filepath.Join(c.dir, "mcp_config.json"), "--data-dir", filepath.Join(c.dir, "data"))
	cmd.Dir, cmd.Env = c.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	lines := bufio.NewReaderSize(stdout, 1<<20)
	// answer reads up to the answer to a request; false when the instance ended.
	answer := func(id int) (message, bool) {
		late := time.AfterFunc(3*answerTime, func() {
			c.t.Errorf("client %d: no answer to request %d", client, id)
			_ = cmd.Process.Kill()
		})
		defer late.Stop()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return message{}, false
			}
			if m := parse(line); string(m.ID) == strconv.Itoa(id) {
				return m, true
			}
		}
	}
	fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c%d","version":"1"}}}`+"\n", client)
	_, alive := answer(0)
	for id := 1; alive && c.goesOn(); id++ {
		text := fmt.Sprintf("client %d, life %d, call %d", client, life, id)
		params := fmt.Sprintf(`{"name":"s%d__echo","arguments":{"text":%q}}`, c.random(chaosServers), text)
		if _, err := fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", id, params); err != nil {
			break
		}
		var m message
		if m, alive = answer(id); !alive {
			c.cut.Add(1)
			break
		}
		switch {
		case strings.Contains(m.text(), `"`+text+`"`) || strings.Contains(string(m.Result), text):
			c.right.Add(1)
		case m.Error != nil && m.errorText() != "", m.isError() && m.text() != "":
			c.bad.Add(1)
		default:
			c.t.Errorf("%s: got %s", text, m.Raw)
		}
	}
	stdin.Close()
	late := time.AfterFunc(leaveTime, func() {
		c.t.Errorf("client %d: the instance is there %s after its client left", client, leaveTime)
		_ = cmd.Process.Kill()
	})
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait() // killed, mostly
	late.Stop()
	if text := stderr.String(); strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
		c.t.Errorf("client %d: stderr: %s", client, text)
	}
}

// kill ends processes in bursts until the time is over, and sees to it that
// everything goes on after each.
func (c *chaos) kill() {
	defer close(c.over)
	for time.Now().Before(c.until) {
		for range 1 + c.random(chaosBurst) {
			time.Sleep(chaosPause)
			c.killOne()
		}
		before, late := c.right.Load(), time.Now().Add(chaosRecovery)
		for c.right.Load() < before+chaosProgress {
			time.Sleep(chaosPause / 10)
			if time.Now().After(late) {
				c.t.Errorf("%d right answers in %s after the last kill", c.right.Load()-before, chaosRecovery)
				return
			}
		}
	}
}

// killOne kills an instance, the hub or a server, if there is one.
func (c *chaos) killOne() {
	var victims []process
	wanted := [][2]string{{"mcpproxy", "--mode"}, {"mcpproxy", "hub-run"}, {"mcpstub", "stub"}}[c.random(3)]
	for _, p := range processesOf(c.t, c.home) {
		if p.is(wanted[0], wanted[1]) {
			victims = append(victims, p)
		}
	}
	if len(victims) > 0 {
		// It may just have ended by itself.
		_ = syscall.Kill(victims[c.random(len(victims))].pid, syscall.SIGKILL)
	}
}

// watch counts the processes of each server. One that was just killed may be on
// its way out while its successor starts, so what is seen twice has to be seen
// again a moment later.
func (c *chaos) watch(done <-chan struct{}, stubs []*upstreamStub) {
	seen := map[string]string{} // the pids that were there twice at the last look
	for {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-done:
			return
		}
		pids := map[string][]string{}
		for _, p := range processesOf(c.t, c.home) {
			if p.is("mcpstub", "stub") {
				pids[p.args[2]] = append(pids[p.args[2]], strconv.Itoa(p.pid))
			}
		}
		for _, s := range stubs {
			now := ""
			if len(pids[s.file]) > 1 {
				now = strings.Join(pids[s.file], " ")
			}
			if now != "" && now == seen[s.file] {
				c.t.Errorf("server %s has the processes %s", s.name, now)
			}
			seen[s.file] = now
		}
	}
}

// checkStore looks whether the file is whole.
func (c *chaos) checkStore() {
	path := filepath.Join(c.dir, "data", "mcpproxy.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(c.t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		c.t.Errorf("the store: %v %s", err, verdict)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 8<<20 {
		c.t.Errorf("the write-ahead log has %d bytes", info.Size())
	}
}
