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
	writer, err := db.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for i, conn := range append(conns, watch, writer) {
		wait := "5000"
		if conn == writer {
			wait = "1" // begin waits itself
		}
		for pragma, want := range map[string]string{
			"busy_timeout": wait, "journal_mode": "wal", "synchronous": "1", "journal_size_limit": "4194304",
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

// processes runs n processes in a role at the same time and returns what they
// wrote.
func processes(t *testing.T, n int, role string, args func(i int) []string) (texts []string) {
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
		texts = append(texts, outputs[i].String())
	}
	return texts
}

func TestProcessesMakeTheFileTogether(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		path := filepath.Join(t.TempDir(), "data", "mcpproxy.db")
		processes(t, 8, "open", func(int) []string { return []string{path} })
		db := open(t, path)
		var n int
		if err := db.pool.QueryRowContext(t.Context(), "SELECT count(*) FROM schema").Scan(&n); err != nil || n != len(list) {
			t.Errorf("%d migrations were applied, %v; want %d", n, err, len(list))
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
	body := bytes.Repeat([]byte("x"), 20_000)
	for i := range 1000 {
		if err := db.PutList(t.Context(), fmt.Sprint(i), body); err != nil {
			t.Fatal(err)
		}
	}
	expectSmallLog(t, db.Path())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := logSize(t, db.Path()); n > logKeep {
		t.Errorf("the log has %d bytes after Close", n)
	}
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
	held, now, err8 := db.Acquire(ctx, "hub", "a", time.Hour)
	moved, err9 := db.Succeed(ctx, "hub", "a", "b", time.Hour)
	lease, err10 := db.Lease(ctx, "hub")
	instances, err11 := db.Instances(ctx)
	gone, err12 := db.PruneInstances(ctx, 0)
	running, err13 := db.Processes(ctx)
	err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, err13,
		db.Release(ctx, "hub", "a"), db.PutInstance(ctx, Instance{}), db.RemoveInstance(ctx, "a"),
		db.PutProcess(ctx, Process{}), db.RemoveProcess(ctx, "a", "1"),
		db.PutServer(ctx, Server{}), db.RequestRestart(ctx, "a", time.Now()), db.PutList(ctx, "k", nil),
		db.Write(ctx, op), db.Later(op), db.Flush(ctx), db.Close())
	if err != nil {
		t.Error(err)
	}
	if held || moved || now != lease || lease != (Lease{}) || instances != nil || running != nil || gone != 0 {
		t.Error("a nil DB shares something")
	}
	if servers != nil || items != nil || list != nil || generation+version+replaced+int64(pruned) != 0 || changed || ran || db.Path() != "" {
		t.Error("a nil DB holds something")
	}
}
