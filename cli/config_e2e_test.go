package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/store"
)

// childEnv is the environment that a stub runs in.
func (p *proxy) childEnv(server string) map[string]string {
	p.t.Helper()
	m := p.tool(server+"__env", "")
	env := map[string]string{}
	if err := json.Unmarshal(at(m.Result, "structuredContent"), &env); err != nil {
		p.t.Fatalf("%v: %s", err, m.Raw)
	}
	return env
}

// TestReferences has references in every field; what cannot be resolved keeps
// that one server from running (K01).
func TestReferences(t *testing.T) {
	t.Parallel()
	good := newStub(t, "good", "").with(`"env":{"A":"${HOME}/x","C":"${NO_SUCH_VARIABLE:-d}","D":"$$5 $x $(y)","E":"${env:HOME}"}`)
	args := newStub(t, "args", "")
	remote := newRemote(t)
	p := startProxy(t, entries("",
		good.entry(),
		newStub(t, "unset-env", "").with(`"env":{"B":"${NO_SUCH_VARIABLE}"}`).entry(),
		`{"name":"unset-args","command":"mcpstub","args":["stub","${NO_SUCH_ARGUMENT}"]}`,
		`{"name":"unset-command","command":"${NO_SUCH_COMMAND}"}`,
		`{"name":"unset-url","url":"http://127.0.0.1:1/${NO_SUCH_PATH}"}`,
		fmt.Sprintf(`{"name":"unset-header","url":%q,"headers":{"X-Key":"${NO_SUCH_KEY}"}}`, remote.URL),
		fmt.Sprintf(`{"name":"args","command":"${NO_SUCH_VARIABLE:-mcpstub}","args":["${X:-stub}",%q]}`, args.file)))
	p.initialize("")
	env := p.childEnv("good")
	for name, want := range map[string]string{"A": p.home() + "/x", "C": "d", "D": "$5 $x $(y)", "E": p.home()} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if m := p.tool("args__fast", ""); m.text() != "fast" {
		t.Errorf("args: %s", m.Raw)
	}
	for name, parts := range map[string][2]string{
		"unset-env": {"env.B", "NO_SUCH_VARIABLE"}, "unset-args": {"args[1]", "NO_SUCH_ARGUMENT"},
		"unset-command": {"command", "NO_SUCH_COMMAND"}, "unset-url": {"url", "NO_SUCH_PATH"},
		"unset-header": {"headers.X-Key", "NO_SUCH_KEY"},
	} {
		m := p.tool(name+"__fast", "")
		if !m.isError() || !strings.Contains(m.text(), "server "+name) || !strings.Contains(m.text(), parts[0]) || !strings.Contains(m.text(), parts[1]) {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	if n := len(remote.requests("initialize")); n != 0 {
		t.Errorf("%d requests without the header", n)
	}
}

// TestSecretsStayInside has a secret that a server blurts out; what the proxy
// and the hub say and keep does not show it (Z04).
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(string, ...*upstreamStub) string{"private": privateConfig, "shared": sharedConfig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := "s3cr3t-0123456789"
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			with := fmt.Sprintf(`"env":{"TOKEN":"${file:%s}"}`, file)
			broken := newStub(t, "s", fmt.Sprintf(`"exit_at_start":1,"stderr_text":"bad token %s\n"`, secret)).with(with)
			p := startProxy(t, configure("", broken, newStub(t, "well", "").with(with)))
			p.initialize("")
			m := p.tool("s__t", "")
			if !m.isError() || !strings.Contains(m.text(), "bad token ***") {
				t.Errorf("%s", m.Raw)
			}
			if got := p.tool("well__env", "").text(); !strings.Contains(got, secret) {
				t.Errorf("the server has not its own secret: %s", got)
			}
			// While all that ends is still there, and after it.
			data := filepath.Join(p.dir, "data")
			texts := []map[string]string{filesIn(t, data)}
			p.close()
			assertAllGone(t, p.home(), hubIdle+endOfAll)
			texts = append(texts, filesIn(t, data), map[string]string{"stderr": p.stderrText(), "the answer": string(m.Raw)})
			if log := texts[1]["logs/s.log"]; !strings.Contains(log, "bad token ***") {
				t.Errorf("the log: %s", log)
			}
			for _, needed := range []string{"mcpproxy.db", "logs/hub.log"} {
				if _, there := texts[1][needed]; !there && (name == "shared" || needed != "logs/hub.log") {
					t.Errorf("there is no %s to look into", needed)
				}
			}
			for _, part := range texts {
				for name, text := range part {
					if strings.Contains(text, secret) {
						t.Errorf("%s shows the secret", name)
					}
				}
			}
		})
	}
}

// filesIn are the contents of all files in a folder, by their paths in it.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() {
			return nil // it has just been removed, or holds no text
		}
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(folder, path) // a path in it
		texts[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestChildEnvironment gives a server the base environment and its own (K03).
func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	base := newStub(t, "base", "").with(`"env":{"X":"1","LANG":"xx"}`)
	all := newStub(t, "all", "").with(`"env":{"X":"1"},"inherit_env":"all"`)
	p := startProxy(t, configOf(base, all))
	p.initialize("")
	env := p.childEnv("base")
	if env["PATH"] != os.Getenv("PATH") || env["HOME"] != p.home() || env["X"] != "1" || env["LANG"] != "xx" {
		t.Errorf("%q", env)
	}
	if _, there := env["GORACE"]; there {
		t.Error("a variable that is not of the base environment is inherited")
	}
	for name, env := range map[string]map[string]string{"base": env, "all": p.childEnv("all")} {
		for key := range env {
			if strings.HasPrefix(key, "MCPPROXY_") && key != "MCPPROXY_PARENT" {
				t.Errorf("%s inherits %s", name, key)
			}
		}
	}
	if env := p.childEnv("all"); env["GORACE"] == "" || env["X"] != "1" {
		t.Errorf("%q", env)
	}
}

// TestPaths starts in one folder servers that are named from others (K13).
func TestPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	for _, folder := range []string{filepath.Join(home, "bin"), filepath.Join(home, "work"), filepath.Join(dir, "tools")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := newStub(t, "s", "")
	for _, file := range []string{filepath.Join(home, "bin", "s"), filepath.Join(dir, "tools", "s")} {
		script := fmt.Sprintf("#!/bin/sh\necho \"in $(pwd), argument $1\" >&2\nexec mcpstub stub %s\n", s.file)
		if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := startProxyIn(t, dir, entries("",
		`{"name":"home","command":"~/bin/s","args":["~/x"],"working_dir":"~/work"}`,
		`{"name":"relative","command":"./tools/s","args":["./x.js"]}`,
		`{"name":"gone","command":"~/bin/gone"}`,
		`{"name":"gone2","command":"./gone/s"}`,
		`{"name":"nowhere","command":"~/bin/s","working_dir":"~/nowhere"}`))
	p.initialize("")
	for _, name := range []string{"home", "relative"} {
		if m := p.tool(name+"__fast", ""); m.text() != "fast" {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	for name, path := range map[string]string{
		"gone": filepath.Join(home, "bin", "gone"), "gone2": filepath.Join(dir, "gone", "s"), "nowhere": filepath.Join(home, "nowhere"),
	} {
		if m := p.tool(name+"__fast", ""); !m.isError() || !strings.Contains(m.text(), path) {
			t.Errorf("%s: %q is not in %s", name, path, m.Raw)
		}
	}
	p.close()
	for name, said := range map[string]string{
		"home": "in " + filepath.Join(home, "work") + ", argument ~/x", "relative": "in " + dir + ", argument ./x.js",
	} {
		log, err := os.ReadFile(filepath.Join(dir, "data", "logs", name+".log"))
		if err != nil || !strings.Contains(string(log), said) {
			t.Errorf("%s: %v, no %q in %s", name, err, said, log)
		}
	}
}

// TestNamesOfServers has two entries of one name, and names that cannot be
// (K14).
func TestNamesOfServers(t *testing.T) {
	t.Parallel()
	first, second := newStub(t, "a", ""), newStub(t, "a", "")
	p := startProxy(t, entries("", first.entry(), second.entry(),
		newStub(t, "", "").entry(), newStub(t, "x__y", "").entry(), newStub(t, "ok", "").entry()))
	p.initialize("")
	p.awaitTools("ok__fast")
	if m := p.tool("a__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	if a, b := len(first.events("start")), len(second.events("start")); a != 1 || b != 0 {
		t.Errorf("%d and %d starts", a, b)
	}
	for _, part := range []string{"mcpServers.a: there is another server", "mcpServers.x__y: the name must be", "needs a name"} {
		p.awaitStderr(part)
	}
}

// TestUnusableStore serves whatever is in the place of the store and says so
// once, however many servers there are, shared or not (D05). A file that is no
// database is kept aside, all else is left as it was.
func TestUnusableStore(t *testing.T) {
	t.Parallel()
	garbage := []byte(strings.Repeat("no database ", 400))
	tests := map[string]struct {
		prepare func(t *testing.T, data string)
		kept    []byte // what must have been moved aside; nil for nothing
		says    string
	}{
		"garbage": {func(t *testing.T, data string) {
			write(t, filepath.Join(data, "mcpproxy.db"), garbage)
		}, garbage, "a new one was made"},
		"truncated": {func(t *testing.T, data string) {
			write(t, filepath.Join(data, "mcpproxy.db"), []byte("SQLite format 3\x00"+string(garbage[:200])))
		}, []byte("SQLite format 3\x00" + string(garbage[:200])), "a new one was made"},
		"folder in its place": {func(t *testing.T, data string) {
			if err := os.MkdirAll(filepath.Join(data, "mcpproxy.db", "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, nil, "going on without it"},
		"data folder is a file": {func(t *testing.T, data string) {
			if err := os.Remove(data); err != nil {
				t.Fatal(err)
			}
			write(t, data, []byte("a file"))
		}, nil, "going on without it"},
		"read-only folder": {func(t *testing.T, data string) {
			// One in which not even root can make a file.
			if err := os.Remove(data); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/proc/sys", data); err != nil {
				t.Fatal(err)
			}
		}, nil, "going on without it"},
		"folder missing": {func(t *testing.T, data string) {
			if err := os.Remove(data); err != nil {
				t.Fatal(err)
			}
		}, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			for _, folder := range []string{data, filepath.Join(dir, "home")} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			test.prepare(t, data)
			p := startProxyIn(t, dir, sharedConfig("", newStub(t, "s", ""), newStub(t, "a", ""), newStub(t, "b", "")))
			begun := time.Now()
			p.initialize("")
			if took := time.Since(begun); took > time.Second {
				t.Errorf("initialize took %s", took)
			}
			p.awaitTools("s__fast", "a__fast", "b__fast")
			for _, tool := range []string{"s__fast", "a__fast", "b__fast"} {
				if m := p.tool(tool, ""); m.text() != "fast" {
					t.Errorf("%s", m.Raw)
				}
			}
			if status := p.close(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			text := p.stderrText()
			if lines := strings.Count(text, "\n"); lines > 1 || (lines == 1) != (test.says != "") || !strings.Contains(text, test.says) {
				t.Errorf("stderr: %s", text)
			}
			kept, err := filepath.Glob(filepath.Join(data, "mcpproxy.db.unusable-*"))
			if err != nil {
				t.Fatal(err)
			}
			if (len(kept) == 1) != (test.kept != nil) || len(kept) > 1 {
				t.Errorf("kept: %q", kept)
			}
			for _, file := range kept {
				if got, err := os.ReadFile(file); err != nil || string(got) != string(test.kept) {
					t.Errorf("the file is not as it was: %v, %d bytes", err, len(got))
				}
			}
			assertAllGone(t, filepath.Join(dir, "home"), hubIdle+endOfAll)
		})
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLockedStore has another process hold the store for writing all the time:
// nobody who waits for an answer waits for that.
func TestLockedStore(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.awaitTools("s__fast")
	_, want := p.list("tools")
	p.close()

	db, err := store.Open(t.Context(), filepath.Join(p.dir, "data", "mcpproxy.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, release := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		if err := db.Write(t.Context(), func(context.Context, *store.Tx) error {
			close(held)
			<-release
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-held
	p = startProxyIn(t, p.dir, "")
	begun := time.Now()
	p.initialize("")
	_, got := p.list("tools")
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("initialize, tools/list and a call took %s", took)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, before %q", got, want)
	}
	begun = time.Now()
	p.close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s to end", took)
	}
	close(release)
	holding.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestTwoInstances has two instances and the command line work side by side
// (D06), also when all begin with nothing at the same time.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := startProxyIn(t, dir, configOf(s))
	b := startProxyIn(t, dir, "")
	var outcomes [3]commandOutcome
	var commands sync.WaitGroup
	for i, args := range [][]string{{"status"}, {"list"}, {"status", "--json"}} {
		commands.Go(func() { outcomes[i] = runCommand(t, dir, args...) })
	}
	for _, p := range []*proxy{a, b} {
		p.initialize("")
		p.awaitTools("s__fast")
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("%s", m.Raw)
		}
	}
	commands.Wait()
	for i, out := range outcomes {
		if out.code != 0 || out.stderr != "" {
			t.Errorf("command %d: exit code %d: %s", i, out.code, out.stderr)
		}
	}
	awaitState(t, dir, "s", "ready")
	// One that ends takes nothing from the other.
	a.close()
	if m := b.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	for _, p := range []*proxy{a, b} {
		if text := p.stderrText(); text != "" {
			t.Errorf("stderr: %s", text)
		}
	}
}
