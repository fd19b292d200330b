package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
)

// tokenHome is a home folder for several invocations.
type tokenHome struct {
	dir string
	now time.Time
}

// invoke runs one invocation in the home folder.
func (h *tokenHome) invoke(t *testing.T, change func(*Env), args ...string) result {
	t.Helper()
	return invokeWith(t, func(env *Env) {
		env.Home, env.Dir = h.dir, h.dir
		env.Now = func() time.Time { return h.now }
		if change != nil {
			change(env)
		}
	}, args...)
}

// asked puts a person with an answer before the streams.
func asked(answer string) func(*Env) {
	return func(env *Env) {
		env.IsTerminal = terminals(Stdin, Stderr)
		env.Stdin = strings.NewReader(answer)
	}
}

func TestTokenEndsWhenAPersonAgrees(t *testing.T) {
	h := &tokenHome{t.TempDir(), testNow()}
	h.invoke(t, nil, "token", "create", "ci", "--servers", "a,b")
	const question = "mcpproxy: revoke token ci (a, b: read; expires 2026-03-31T12:00:00Z) for good? [y/N] "
	for _, answer := range []string{"", "\n", "n\n", "no\n", "yess\n", "ja\n"} {
		got := h.invoke(t, asked(answer), "token", "revoke", "ci")
		if got.code != exitFailed || got.stderr != question+"mcpproxy: error: nothing was changed\n" {
			t.Errorf("%q: %+v", answer, got)
		}
	}
	if got := h.invoke(t, asked("y\n"), "token", "revoke", "ci"); got.code != exitDone || got.stderr != question+"mcpproxy: revoked token ci\n" {
		t.Errorf("%+v", got)
	}
	if got := h.invoke(t, asked(" Yes \n"), "token", "delete", "ci"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	// With nothing to see the question or nobody to answer it, none is asked.
	for _, streams := range [][]Stream{{Stdin}, {Stderr}, {Stdin, Stdout}} {
		got := h.invoke(t, func(env *Env) { env.IsTerminal = terminals(streams...) }, "token", "create", "ci", "--servers", "a")
		if got.code != exitDone {
			t.Fatalf("%+v", got)
		}
		if got := h.invoke(t, func(env *Env) { env.IsTerminal = terminals(streams...) }, "token", "delete", "ci"); got.code != exitUsage {
			t.Errorf("%v: %+v", streams, got)
		}
		h.invoke(t, nil, "token", "delete", "ci", "-y")
	}
}

const tokenTable = "" +
	"NAME  STATE    PERMISSIONS  SERVERS  EXPIRES  USED      CREATED\n" +
	"a     active   read         a        in 30d   just now  just now\n" +
	"b     active   read         *        in 12h             just now\n" +
	"c     active   read,write            in 5m              just now\n"

const tokenTableLater = "" +
	"NAME  STATE    PERMISSIONS  SERVERS  EXPIRES  USED    CREATED\n" +
	"a     active   read         a        in 28d   2d ago  2d ago\n" +
	"b     expired  read         *        36h ago          2d ago\n" +
	"c     revoked  read,write            47h ago          2d ago\n"

// TestTokenTable checks what a person sees, and that a use is among it.
func TestTokenTable(t *testing.T) {
	h := &tokenHome{t.TempDir(), testNow()}
	made := h.invoke(t, nil, "token", "create", "a", "--servers", "a")
	h.invoke(t, nil, "token", "create", "b", "--servers", "*", "--expires", "12h")
	h.invoke(t, nil, "token", "create", "c", "--servers", "", "--permissions", "read,write", "--expires", "5m59s")

	a := &app{Env: Env{Now: func() time.Time { return h.now }, Home: h.dir, Dir: h.dir}}
	cfg, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := a.tokens(t.Context(), cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := auth.ParseSecret(made.stdout)
	if err == nil {
		_, err = tokens.Authenticate(t.Context(), secret)
	}
	if err := errors.Join(err, a.close()); err != nil {
		t.Fatal(err)
	}

	list := func(want string) {
		t.Helper()
		got := h.invoke(t, func(env *Env) {
			env.IsTerminal = terminals(Stdout)
			env.Environ = []string{"NO_COLOR=1"}
			env.Columns = func() int { return 100 }
		}, "token", "list")
		if squeeze(got.stdout) != squeeze(want) || got.code != exitDone {
			t.Errorf("%+v\n%s\nwant\n%s", got, got.stdout, want)
		}
	}
	list(tokenTable)
	h.invoke(t, nil, "token", "revoke", "c", "--yes")
	h.now = h.now.Add(48 * time.Hour)
	list(tokenTableLater)
}

// squeeze leaves one blank where there are several.
func squeeze(text string) string { return regexp.MustCompile(` +`).ReplaceAllString(text, " ") }

// TestTokenSecretsStayOut: after everything that can be done with tokens, no
// secret is in a file of the data folder, or on stderr.
func TestTokenSecretsStayOut(t *testing.T) {
	h := &tokenHome{t.TempDir(), testNow()}
	var secrets, said []string
	do := func(args ...string) {
		t.Helper()
		got := h.invoke(t, nil, append([]string{"--log-level", "debug"}, args...)...)
		if got.code != exitDone {
			t.Errorf("%q: %+v", args, got)
		}
		found := regexp.MustCompile(`mcp_agt_([0-9a-f]{64})`).FindStringSubmatch(got.stdout)
		if found != nil {
			secrets = append(secrets, found[1])
		}
		said = append(said, got.stderr)
		if found == nil {
			said = append(said, got.stdout)
		}
	}
	do("token", "create", "a", "--servers", "x")
	do("token", "create", "b", "--servers", "x", "--json")
	do("token", "regenerate", "a")
	do("token", "list", "--json")
	do("token", "show", "a")
	do("token", "revoke", "a", "--yes", "--json")
	do("token", "delete", "b", "--yes")
	if len(secrets) != 3 {
		t.Fatalf("%d secrets", len(secrets))
	}
	files := 0
	err := filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		said = append(said, string(content))
		return err
	})
	if err != nil || files < 2 {
		t.Fatalf("%d files, %v", files, err)
	}
	for _, text := range said {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, secret[:16]) {
				t.Error("a secret is where it must not be")
			}
		}
	}
}

// TestTokenIntoAFile says something where others can read that file.
func TestTokenIntoAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file's mode says nothing there")
	}
	h := &tokenHome{t.TempDir(), testNow()}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o644: true, 0o640: true} {
		path := filepath.Join(t.TempDir(), "token")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, mode)
		if err != nil {
			t.Fatal(err)
		}
		got := h.invoke(t, func(env *Env) { env.Stdout = file }, "token", "create", fmt.Sprintf("m%o", mode), "--servers", "a")
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if got.code != exitDone || strings.Contains(got.stderr, "chmod 600") != warned {
			t.Errorf("mode %o: %+v", mode, got)
		}
		if _, err := auth.ReadTokenFile(path); (err != nil) != warned {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// TestTokenLostOnTheWay: a secret that could not be printed is nowhere, and that
// is said.
func TestTokenLostOnTheWay(t *testing.T) {
	h := &tokenHome{t.TempDir(), testNow()}
	got := h.invoke(t, func(env *Env) { env.Stdout = fullDisk{} }, "token", "create", "a", "--servers", "a")
	if got.code != exitFailed || !strings.Contains(got.stderr, "its secret is lost: write to stdout: no space") || !strings.Contains(got.stderr, "hint: mcpproxy token regenerate a\n") {
		t.Errorf("%+v", got)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errNoSpace }

// TestConfirmEndsWithTheProgram: a person who interrupts is not waited for.
func TestConfirmEndsWithTheProgram(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close()
	var stderr bytes.Buffer
	a := &app{Env: Env{Stdin: reader, Stderr: &stderr, IsTerminal: terminals(Stdin, Stderr)}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.confirm(ctx, false, "really?"); !errors.Is(err, ctx.Err()) {
		t.Error(err)
	}
}
