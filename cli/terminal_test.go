package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// onTerminal is an Env with a terminal of that width behind stdout, and a
// configuration and store with three servers in its home folder.
func onTerminal(t *testing.T, width int, environ ...string) func(*Env) {
	return func(env *Env) {
		t.Helper()
		env.IsTerminal = terminals(Stdout)
		env.Columns = func() int { return width }
		env.Environ = append([]string{"TERM=xterm"}, environ...)
		dir := filepath.Join(env.Home, ".mcpproxy")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := `{"mcpServers": [
			{"name": "github", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"]},
			{"name": "docs", "url": "https://example.com/mcp"},
			{"name": "old", "command": "true", "enabled": false}]}`
		if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.LoadOptions{Home: env.Home, Dir: env.Home})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(t.Context(), filepath.Join(dir, storeFile), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.PutServer(t.Context(), store.Server{
			Key:   store.Key{Name: "docs", Fingerprint: cfg.Server("docs").Fingerprint()},
			State: stateUnavailable, LastError: "no route\x1b[2J to\nhost 日本語", AttemptedAt: testNow().Add(-90 * time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

const (
	wideTable = "" +
		"NAME    STATE        SEEN    TARGET                                      ERROR\n" +
		"github  idle                 npx -y @modelcontextprotocol/server-github\n" +
		"docs    unavailable  1h ago  https://example.com/mcp                     no route\\x1b[2J to\\nhost 日本語\n" +
		"old     disabled             true\n"
	narrowTable = "" +
		"NAME    STATE        SEEN    TARGET          ERROR\n" +
		"github  idle                 npx -y @model…\n" +
		"docs    unavailable  1h ago  https://examp…  no route\\x1b[2…\n" +
		"old     disabled             true\n"
	colouredTable = "" +
		"\x1b[1mNAME\x1b[0m    \x1b[1mSTATE\x1b[0m        \x1b[1mSEEN\x1b[0m    \x1b[1mTARGET\x1b[0m          \x1b[1mERROR\x1b[0m\n" +
		"github  idle                 npx -y @model…\n" +
		"docs    \x1b[31munavailable\x1b[0m  1h ago  https://examp…  no route\\x1b[2…\n" +
		"old     disabled             true\n"
)

// TestTableOnTerminal checks header, alignment, width, relative times, columns
// nobody needs, colours, and that nothing of a server steers the terminal.
func TestTableOnTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		width   int
		environ []string
		want    string
	}{
		"wide":            {200, []string{"NO_COLOR=1"}, wideTable},
		"narrow":          {60, []string{"NO_COLOR=1"}, narrowTable},
		"colours":         {60, nil, colouredTable},
		"empty NO_COLOR":  {60, []string{"NO_COLOR="}, colouredTable},
		"NO_COLOR=0":      {60, []string{"NO_COLOR=0"}, narrowTable},
		"NO_COLOR=false":  {60, []string{"NO_COLOR=false"}, narrowTable},
		"dumb terminal":   {60, []string{"TERM=dumb"}, narrowTable},
		"last value wins": {60, []string{"NO_COLOR=1", "NO_COLOR="}, colouredTable},
	} {
		t.Run(name, func(t *testing.T) {
			got := invokeWith(t, onTerminal(t, test.width, test.environ...), "list")
			if got.code != 0 || got.stderr != "" || got.stdout != test.want {
				t.Errorf("exit code %d, stderr %q, stdout\n%s\n%q\nwant\n%q", got.code, got.stderr, got.stdout, got.stdout, test.want)
			}
			for line := range strings.Lines(got.stdout) {
				if test.want == colouredTable {
					continue
				}
				if w := len([]rune(strings.TrimSuffix(line, "\n"))); w > test.width {
					t.Errorf("%d columns, want at most %d: %q", w, test.width, line)
				}
			}
		})
	}
}

// TestMarkedWords checks that the words of a search are marked where styles are
// shown, and cost no room.
func TestMarkedWords(t *testing.T) {
	for name, test := range map[string]struct {
		environ []string
		want    string
	}{
		"styled": {nil, "\x1b[1mTOOL\x1b[0m       \x1b[1mABOUT\x1b[0m\na:\x1b[1mread\x1b[0m_it  \x1b[1mReads\x1b[0m a …\n"},
		"plain":  {[]string{"NO_COLOR=1"}, "TOOL       ABOUT\na:read_it  Reads a …\n"},
	} {
		var out bytes.Buffer
		a := &app{Env: Env{Stdout: &out, Now: testNow, IsTerminal: terminals(Stdout), Columns: func() int { return 20 }, Environ: test.environ}}
		table := a.newTable("TOOL", "ABOUT")
		table.row(cell{text: "a:read_it", asked: "reading"}, cell{text: "Reads a file", asked: "reading"})
		if err := table.print(); err != nil || out.String() != test.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, out.String(), test.want)
		}
	}
}

// TestFieldsOnTerminal checks the answer about one thing.
func TestFieldsOnTerminal(t *testing.T) {
	got := invokeWith(t, onTerminal(t, 80), "get", "docs")
	want := "" +
		"name      docs\n" +
		"state     unavailable\n" +
		"error     no route\\x1b[2J to\\nhost 日本語\n" +
		"protocol  auto\n" +
		"target    https://example.com/mcp\n" +
		"seen_at   1h ago\n"
	if head, _, _ := strings.Cut(got.stdout, "config "); got.code != 0 || head != want {
		t.Errorf("exit code %d\n%s\nwant\n%s", got.code, head, want)
	}
	got = invokeWith(t, onTerminal(t, 80), "status")
	for _, want := range []string{"KiB)\n", "servers  1 idle, 1 unavailable, 1 disabled\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("status lacks %q:\n%s", want, got.stdout)
		}
	}
	if got.code != exitUnavailable {
		t.Errorf("exit code %d, want %d", got.code, exitUnavailable)
	}
}

// TestJSONOnTerminal checks that JSON is the same for a terminal and a pipe.
func TestJSONOnTerminal(t *testing.T) {
	person := invokeWith(t, onTerminal(t, 80), "list", "--json")
	program := invokeWith(t, func(env *Env) {
		onTerminal(t, 80)(env)
		env.IsTerminal = terminals()
	}, "list", "--json")
	if person.stdout != program.stdout || strings.Contains(person.stdout, "\x1b") {
		t.Errorf("terminal\n%s\npipe\n%s", person.stdout, program.stdout)
	}
}

// TestBare checks what a person gets who starts the program without a command.
func TestBare(t *testing.T) {
	typing := func(env *Env) { env.IsTerminal = terminals(Stdin, Stdout, Stderr) }
	for _, args := range [][]string{nil, {"--json"}, {"-q"}, {"--config", "x.json"}, {"--data-dir=x"}} {
		got := invokeWith(t, typing, args...)
		if got.code != exitUsage || got.stdout != "" || got.stderr != shortHelp {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, got.code, got.stdout, got.stderr)
		}
	}
	const waiting = "mcpproxy: waiting for an MCP client on stdin; Ctrl-D ends it\n"
	for _, args := range [][]string{{"--mode", "direct"}, {"run", "--mode=direct"}, {"run"}} {
		got := invokeWith(t, typing, args...)
		if !strings.Contains(got.stderr, waiting) || got.stdout != "" {
			t.Errorf("%q: stdout %q, stderr %q", args, got.stdout, got.stderr)
		}
		if got := invokeWith(t, nil, args...); strings.Contains(got.stderr, waiting) {
			t.Errorf("%q without a terminal: stderr %q", args, got.stderr)
		}
	}
}

// TestConfiguredMode checks that a default mode that cannot be served is
// replaced and told.
func TestConfiguredMode(t *testing.T) {
	const told = "mcpproxy: routing_mode proxy is not available in this build, serving retrieve_tools\n" +
		"mcpproxy: hint: mcpproxy --mode retrieve_tools\n"
	proxy := func(env *Env) { env.Environ = []string{"MCPPROXY_ROUTING_MODE=proxy"} }
	if got := invokeWith(t, proxy); !strings.Contains(got.stderr, told) {
		t.Errorf("stderr %q", got.stderr)
	}
	if got := invokeWith(t, nil); strings.Contains(got.stderr, "routing_mode") {
		t.Errorf("stderr %q", got.stderr)
	}
	if got := invokeWith(t, nil, "--mode", "direct"); strings.Contains(got.stderr, "routing_mode") {
		t.Errorf("stderr %q", got.stderr)
	}
	direct := func(env *Env) { env.Environ = []string{"MCPPROXY_ROUTING_MODE=direct"} }
	if got := invokeWith(t, direct); strings.Contains(got.stderr, "routing_mode") {
		t.Errorf("stderr %q", got.stderr)
	}
}

// TestBrokenStdout checks that output that nobody gets is a failure.
func TestBrokenStdout(t *testing.T) {
	got := invokeWith(t, func(env *Env) { env.Stdout = brokenWriter{} }, "version")
	if got.code != exitFailed || got.stderr != "mcpproxy: error: write to stdout: no space\n" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errNoSpace }

// TestAgo checks relative times.
func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "in the future", 0: "just now", 59 * time.Second: "just now",
		time.Minute: "1m ago", 59 * time.Minute: "59m ago", time.Hour: "1h ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago",
	} {
		if got := ago(testNow().Add(-d), testNow()); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
