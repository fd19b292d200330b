package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// roleEnv makes the test binary act as another process: its value names the
// role, the arguments are the role's.
const roleEnv = "STORE_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func(args []string) error{
		"acquire": roleAcquire,
		"change":  roleChange,
		"count":   roleCount,
		"fill":    roleFill,
		"follow":  roleFollow,
		"idle":    roleIdle,
		"open":    roleOpen,
		"read":    roleRead,
		"renew":   roleRenew,
	}
	maps.Copy(roles, systemRoles())
	role, ok := os.LookupEnv(roleEnv)
	if !ok {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is the test binary in a role, not started yet.
func process(t testing.TB, role string, args ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output = new(bytes.Buffer)
	cmd = exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stdout, cmd.Stderr = output, output
	return cmd, output
}

// roleChange changes the items of server args[1] in the file args[0] args[2]
// times and prints the number of each change that was kept.
func roleChange(args []string) error {
	ctx := context.Background()
	var n int
	if _, err := fmt.Sscan(args[2], &n); err != nil {
		return err
	}
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	key := Key{Name: args[1]}
	for i := range n {
		items := []Item{{Kind: "tool", Name: "n", Raw: fmt.Appendf(nil, `{"n":%d}`, i)}, {Kind: "tool", Name: "pad", Raw: bytes.Repeat([]byte("x"), i%3000)}}
		if _, changed, err := db.ReplaceItems(ctx, key, items); err != nil || !changed {
			return fmt.Errorf("change %d: changed %v: %w", i, changed, err)
		}
		fmt.Println(i)
	}
	return nil
}

// roleOpen opens the file args[0] and prints what was done about it, or the
// kind of failure.
func roleOpen(args []string) error {
	db, err := Open(context.Background(), args[0], Options{Mended: func(what string) { fmt.Println(what) }})
	if err == nil {
		fmt.Println("opened")
		return db.Close()
	}
	return err
}

// roleRead opens the file args[0], reads the items of all servers and prints
// how many there were and the time both took.
func roleRead(args []string) error {
	ctx := context.Background()
	start := time.Now()
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	opened := time.Since(start)
	var keys []Key
	for i := range 20 {
		keys = append(keys, benchKey(i))
	}
	items, err := db.Items(ctx, keys)
	if err != nil {
		return err
	}
	fmt.Println(len(items), opened.Microseconds(), time.Since(start).Microseconds())
	return db.Close()
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{OnError: func(err error) { t.Errorf("queued write: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func fresh(t testing.TB) *DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "data", "mcpproxy.db"))
}

// check fails the test when the file is damaged.
func check(t testing.TB, db *DB) {
	t.Helper()
	var text string
	if err := db.pool.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&text); err != nil || text != "ok" {
		t.Errorf("integrity check: %s, %v", text, err)
	}
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func benchKey(i int) Key {
	return Key{Name: fmt.Sprintf("server-%02d", i), Fingerprint: strings.Repeat("f", 64), Audience: "elicitation,sampling"}
}

// fill stores 20 servers of 50 tools with about 800 bytes each.
func fill(t testing.TB, db *DB) {
	t.Helper()
	for i := range 20 {
		var items []Item
		for j := range 50 {
			raw := fmt.Sprintf(`{"name":"tool_%d_%d","description":"%s","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`, i, j, strings.Repeat("some words ", 65))
			items = append(items, Item{Kind: "tool", Name: fmt.Sprintf("tool_%d_%d", i, j), Raw: []byte(raw)})
		}
		if _, _, err := db.ReplaceItems(t.Context(), benchKey(i), items); err != nil {
			t.Fatal(err)
		}
	}
}
