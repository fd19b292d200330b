//go:build unix

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// systemRoles are those that not every system can play.
func systemRoles() map[string]func(args []string) error {
	return map[string]func(args []string) error{"full": roleFull}
}

// roleFull makes the file args[0], lets the system refuse to let it grow, uses
// it, and lets it grow again.
func roleFull(args []string) error {
	ctx := context.Background()
	var mu sync.Mutex
	var told []error
	db, err := Open(ctx, args[0], Options{OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	}})
	if err != nil {
		return err
	}
	defer db.Close()
	key := Key{Name: "s"}
	items := []Item{{Kind: "tool", Name: "a", Raw: bytes.Repeat([]byte("a"), 50_000)}}
	if _, _, err := db.ReplaceItems(ctx, key, items); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	full := limit
	full.Cur = 100_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	for range 3 {
		err := db.Later(func(ctx context.Context, tx *Tx) error { return tx.PutList(ctx, "big", make([]byte, 1<<20)) })
		if err := errors.Join(err, db.Flush(ctx)); err != nil {
			return err
		}
	}
	if err := db.PutList(ctx, "big", make([]byte, 1<<20)); err == nil {
		return errors.New("a full disk took a megabyte")
	}
	another, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	for _, db := range []*DB{db, another} {
		if got, err := db.Items(ctx, []Key{key}); err != nil || len(got) != 1 || !bytes.Equal(got[0].Raw, items[0].Raw) {
			return fmt.Errorf("%d items: %w", len(got), err)
		}
		if body, err := db.List(ctx, "big"); err != nil || body != nil {
			return fmt.Errorf("half a list of %d bytes: %w", len(body), err)
		}
	}
	if err := another.Close(); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := db.PutList(ctx, "big", make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(len(told), "errors")
	return nil
}

func TestFileThatMayNotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if texts := processes(t, 1, "full", func(int) []string { return []string{path} }); texts[0] != "3 errors\n" {
		t.Errorf("%s", texts)
	}
	db := open(t, path)
	check(t, db)
	if body, err := db.List(t.Context(), "big"); len(body) != 1<<20 || err != nil {
		t.Errorf("list of %d bytes, %v", len(body), err)
	}
}
