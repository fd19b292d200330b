package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/store"
)

// roleEnv makes the test binary act as another process.
const roleEnv = "AUTH_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleEnv)
	if !ok {
		os.Exit(m.Run())
	}
	if err := act(context.Background(), role, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// act does what another process is to do with the data folder dir.
func act(ctx context.Context, role, dir string, args []string) error {
	if role == "key" {
		awaitStart()
		key, made, err := OpenKey(dir)
		fmt.Println(key.ID(), made)
		return err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	tokens := NewTokens(db, dir, time.Now)
	switch role {
	case "bind":
		awaitStart()
		b, err := Bind(ctx, db, dir)
		fmt.Println(b.Key.ID(), b.Orphan)
		return err
	case "create":
		secret, _, err := tokens.Create(ctx, Settings{Name: args[0], Servers: args[1:]})
		fmt.Println(secret.Reveal())
		return err
	case "regenerate":
		secret, _, err := tokens.Regenerate(ctx, args[0], time.Time{})
		fmt.Println(secret.Reveal())
		return err
	case "revoke":
		_, _, err := tokens.Revoke(ctx, args[0])
		return err
	case "delete":
		_, err := tokens.Delete(ctx, args[0])
		return err
	}
	return errors.New("no such role")
}

// awaitStart waits for all processes of a gang.
func awaitStart() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func command(t testing.TB, role, dir string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{dir}, args...)...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

// elsewhere has another process act, and returns what it printed.
func elsewhere(t testing.TB, role, dir string, args ...string) string {
	t.Helper()
	cmd := command(t, role, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", role, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// together has n processes act at the same time, and returns what each printed.
func together(t *testing.T, n int, role, dir string) []string {
	t.Helper()
	wait, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outputs := make([]bytes.Buffer, n)
	var ready, ended sync.WaitGroup
	for i := range n {
		cmd := command(t, role, dir)
		cmd.Stdin, cmd.Stderr = wait, os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ready.Add(1)
		ended.Go(func() {
			_, err := io.ReadFull(out, make([]byte, len("ready\n")))
			ready.Done()
			if err == nil {
				_, err = outputs[i].ReadFrom(out)
			}
			if err := errors.Join(err, cmd.Wait()); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wait.Close()
	ready.Wait()
	start.Close()
	ended.Wait()
	var texts []string
	for i := range outputs {
		texts = append(texts, strings.TrimSpace(outputs[i].String()))
	}
	return texts
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// desk is a data folder with its store and tokens.
type desk struct {
	*Tokens
	dir   string
	db    *store.DB
	clock *clock
}

// newDesk opens a new data folder, at a time of full milliseconds.
func newDesk(t testing.TB) *desk { return deskIn(t, filepath.Join(t.TempDir(), "data")) }

func deskIn(t testing.TB, dir string) *desk {
	t.Helper()
	c := &clock{at: time.Now().Truncate(time.Millisecond)}
	db, err := store.Open(t.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{
		Now: c.now, OnError: func(err error) { t.Errorf("queued write: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &desk{NewTokens(db, dir, c.now), dir, db, c}
}

// create makes a token that must be possible.
func (d *desk) create(t testing.TB, s Settings) Secret {
	t.Helper()
	secret, _, err := d.Create(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// parse is a secret that another process printed.
func parse(t testing.TB, text string) Secret {
	t.Helper()
	secret, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
