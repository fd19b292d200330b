package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPragmasHoldOnEveryConnection(t *testing.T) {
	db := fresh(t)
	db.pool.SetMaxOpenConns(5)
	var conns []*sql.Conn
	for range 5 {
		conn, err := db.pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	watch, err := db.watch.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	for i, conn := range append(conns, watch) {
		for pragma, want := range map[string]string{
			"busy_timeout": "5000", "journal_mode": "wal", "synchronous": "1", "journal_size_limit": "4194304",
		} {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("connection %d: %s is %q, %v; want %q", i, pragma, got, err, want)
			}
		}
	}
}

func TestOpenMakesPrivateFile(t *testing.T) {
	db := fresh(t)
	if err := db.PutList(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		filepath.Dir(db.Path()): os.ModeDir | 0o700,
		db.Path():               0o600,
		db.Path() + "-wal":      0o600,
		db.Path() + "-shm":      0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want mode %v", path, info, err, want)
		}
	}
}

func TestOpenAgain(t *testing.T) {
	db := fresh(t)
	if err := db.PutList(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	before, err := db.Generation(t.Context())
	if err != nil || before == 0 {
		t.Fatal(before, err)
	}
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	again := open(t, db.Path())
	if body, err := again.List(t.Context(), "k"); string(body) != "v" || err != nil {
		t.Errorf("list is %q, %v", body, err)
	}
	if after, err := again.Generation(t.Context()); after != before || err != nil {
		t.Errorf("generation %d, %v; want %d", after, err, before)
	}
	check(t, again)
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{
		"with space", "what?mode=memory", "a#b", "100%", "a%20b", "a%3Fb", "a&b=c;d+e", "Ünï 日本", "quote'\"", "new\nline", "\xff\xfe", "file:x",
	} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			root := t.TempDir()
			db := open(t, filepath.Join(root, name, name+".db"))
			if err := db.PutList(t.Context(), "k", []byte(name)); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(root)
			if err != nil || len(entries) != 1 || entries[0].Name() != name {
				t.Errorf("root holds %v, %v; want %q alone", entries, err, name)
			}
			if info, err := os.Stat(filepath.Join(root, name, name+".db-wal")); err != nil || info.Size() == 0 {
				t.Errorf("the data is not beside the path asked for: %v, %v", info, err)
			}
		})
	}
}

func TestOneFileForEverySpelling(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(root, "real", "mcpproxy.db")
	open(t, real)
	linked := filepath.Join(root, "linked")
	if err := os.Symlink(filepath.Join(root, "real"), linked); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real/mcpproxy.db", filepath.Join(root, "other.db")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "real"))
	for _, spelling := range []string{
		filepath.Join(linked, "mcpproxy.db"),
		root + "//real/./../real/mcpproxy.db",
		"mcpproxy.db",
		"../linked/mcpproxy.db",
		filepath.Join(root, "other.db"),
	} {
		if db := open(t, spelling); db.Path() != real {
			t.Errorf("%s leads to %s, want %s", spelling, db.Path(), real)
		}
	}
}

// processes runs n processes in a role at the same time.
func processes(t *testing.T, n int, role string, args func(i int) []string) {
	t.Helper()
	cmds, outputs := make([]*exec.Cmd, n), make([]*bytes.Buffer, n)
	for i := range n {
		cmds[i], outputs[i] = process(t, role, args(i)...)
		if err := cmds[i].Start(); err != nil {
			t.Error(err)
			cmds = cmds[:i]
			break
		}
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, outputs[i])
		}
	}
}

func TestProcessesMakeTheFileTogether(t *testing.T) {
	for range 3 {
		path := filepath.Join(t.TempDir(), "data", "mcpproxy.db")
		processes(t, 8, "open", func(int) []string { return []string{path} })
		db := open(t, path)
		var n int
		if err := db.pool.QueryRowContext(t.Context(), "SELECT count(*) FROM schema").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d migrations were applied, %v", n, err)
		}
		check(t, db)
	}
}

func TestProcessesReadAndWriteWithoutBusyErrors(t *testing.T) {
	const writers, times = 8, 200
	db := fresh(t)
	before, err := db.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	processes(t, writers, "change", func(i int) []string {
		return []string{db.Path(), fmt.Sprintf("server-%d", i), fmt.Sprint(times)}
	})
	if after, err := db.Generation(t.Context()); err != nil || after-before != writers*times {
		t.Errorf("%d changes were counted, %v; want %d", after-before, err, writers*times)
	}
	check(t, db)
}

func TestDataVersion(t *testing.T) {
	db := fresh(t)
	other := open(t, db.Path())
	version := func() int64 {
		t.Helper()
		n, err := db.DataVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := version()
	if again := version(); again != first {
		t.Errorf("data version went from %d to %d without a write", first, again)
	}
	for name, writer := range map[string]*DB{"this": db, "another": other} {
		before := version()
		if err := writer.PutList(t.Context(), "k", []byte(name)); err != nil {
			t.Fatal(err)
		}
		if version() == before {
			t.Errorf("a write of %s DB did not show", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := version()
	if _, err := db.DataVersion(ended); err != nil {
		t.Error(err)
	}
	if version() != before {
		t.Error("an ended context cost the connection")
	}
}

func TestWriteAheadLogStaysSmall(t *testing.T) {
	db := fresh(t)
	for range 8 { // idle siblings, which have read something
		if _, err := open(t, db.Path()).Servers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wal := func() int64 {
		info, err := os.Stat(db.Path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	body := bytes.Repeat([]byte("x"), 20_000)
	for i := range 1000 {
		if err := db.PutList(t.Context(), fmt.Sprint(i), body); err != nil {
			t.Fatal(err)
		}
	}
	if n := wal(); n > 8<<20 {
		t.Errorf("the log has %d bytes while in use", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := wal(); n > walKeep {
		t.Errorf("the log has %d bytes after Close", n)
	}
}

func TestKilledWritersLoseNothing(t *testing.T) {
	db := fresh(t)
	for round := range 4 {
		type writer struct {
			cmd    *exec.Cmd
			output *lineWatcher
		}
		var writers []writer
		for i := range 3 {
			cmd, _ := process(t, "change", db.Path(), fmt.Sprintf("server-%d", i), "1000000")
			output := &lineWatcher{after: 20 + 15*round + 7*i, reached: make(chan struct{})}
			cmd.Stdout = output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writers = append(writers, writer{cmd, output})
		}
		for _, w := range writers {
			select {
			case <-w.output.reached:
			case <-time.After(time.Minute):
				t.Error("a writer makes no progress")
			}
			if err := w.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		for i, w := range writers {
			_ = w.cmd.Wait() // killed
			items, err := db.Items(t.Context(), []Key{{Name: fmt.Sprintf("server-%d", i)}})
			var got struct{ n int }
			if err == nil && len(items) == 2 {
				_, err = fmt.Sscanf(string(items[0].Raw), `{"n":%d}`, &got.n)
			}
			if acked := w.output.last(); err != nil || got.n < acked {
				t.Errorf("round %d: server %d has change %d (%d items), %v; %d was acknowledged", round, i, got.n, len(items), err, acked)
			}
		}
		again := open(t, db.Path())
		check(t, again)
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// lineWatcher keeps what a process writes and tells when there are after lines.
// It is read when the process has ended.
type lineWatcher struct {
	after   int
	reached chan struct{}
	lines   int
	text    []byte
}

func (w *lineWatcher) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	before := w.lines
	w.lines += bytes.Count(p, []byte("\n"))
	if before < w.after && w.lines >= w.after {
		close(w.reached)
	}
	return len(p), nil
}

// last is the number on the last whole line.
func (w *lineWatcher) last() (n int) {
	whole := string(w.text[:bytes.LastIndexByte(w.text, '\n')+1])
	lines := strings.Fields(whole)
	_, _ = fmt.Sscan(lines[len(lines)-1], &n)
	return n
}

func TestNilDB(t *testing.T) {
	var db *DB
	ctx := t.Context()
	ran := false
	op := func(context.Context, *Tx) error { ran = true; return nil }
	servers, err1 := db.Servers(ctx)
	items, err2 := db.Items(ctx, []Key{{Name: "a"}})
	list, err3 := db.List(ctx, "k")
	generation, err4 := db.Generation(ctx)
	version, err5 := db.DataVersion(ctx)
	replaced, changed, err6 := db.ReplaceItems(ctx, Key{Name: "a"}, []Item{{Kind: "tool"}})
	pruned, err7 := db.Prune(ctx, nil, 0)
	err := errors.Join(err1, err2, err3, err4, err5, err6, err7,
		db.PutServer(ctx, Server{}), db.RequestRestart(ctx, "a", time.Now()), db.PutList(ctx, "k", nil),
		db.Write(ctx, op), db.Later(op), db.Flush(ctx), db.Close())
	if err != nil {
		t.Error(err)
	}
	if servers != nil || items != nil || list != nil || generation+version+replaced+int64(pruned) != 0 || changed || ran || db.Path() != "" {
		t.Error("a nil DB holds something")
	}
}
