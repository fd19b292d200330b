package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// entryName is what the clients call the program in their configuration.
const entryName = "mcpproxy"

// call is one tools/call of a test, and a text that its result, as JSON, must contain.
type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
	want      string
}

// testOfficialClient makes calls to several servers through one proxy with the
// official client, which checks what it receives against its own schemas and
// against the tools'.
func (e *endToEnd) testOfficialClient(t *testing.T) {
	w := e.newWorld(t)
	w.configure(t, w.realServers())
	w.warmUp(t)
	calls := w.calls(t)
	raw, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}

	args := append([]string{w.script("official-client.mjs"), string(raw), w.program}, w.proxyArgs()...)
	var got struct {
		Server  struct{ Name string }
		Tools   []string
		Results []json.RawMessage
	}
	decode(t, w.run(t, w.node, args...).stdout, &got)

	if got.Server.Name != "mcpproxy" {
		t.Errorf("server name %q, want mcpproxy", got.Server.Name)
	}
	for i, call := range calls {
		if !slices.Contains(got.Tools, call.Name) {
			t.Errorf("%s is not listed", call.Name)
		}
		if !strings.Contains(string(got.Results[i]), call.want) {
			t.Errorf("%s: want %s in %s", call.Name, call.want, got.Results[i])
		}
	}
}

// calls prepares the files that the calls are about and returns the calls.
func (w *world) calls(t *testing.T) []call {
	t.Helper()
	note, source := filepath.Join(w.work, "note.txt"), filepath.Join(w.work, "clean.js")
	w.write(t, note, "first line\nsecond line\n")
	w.write(t, source, "export const answer = 42;\n")
	w.write(t, filepath.Join(w.work, "eslint.config.js"), "export default [];\n")
	w.write(t, filepath.Join(w.work, "package.json"), `{"type": "module"}`)
	return []call{
		{"everything__get-sum", map[string]any{"a": 1, "b": 2}, `The sum of 1 and 2 is 3.`},
		{"everything__get-structured-content", map[string]any{"location": "Chicago"}, `"humidity":82`},
		{"filesystem__read_text_file", map[string]any{"path": note, "head": 1}, `first line`},
		{"filesystem__list_allowed_directories", map[string]any{}, w.work},
		{"memory__create_entities", map[string]any{"entities": []any{
			map[string]any{"name": "mcpproxy", "entityType": "program", "observations": []any{"stands between"}},
		}}, `stands between`},
		{"memory__read_graph", map[string]any{}, `"entityType":"program"`},
		{"sequential-thinking__sequentialthinking", map[string]any{
			"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
		}, `"thoughtHistoryLength":1`},
		{"eslint__lint-files", map[string]any{"filePaths": []any{source}}, `\"errorCount\":0`},
	}
}

// testInspector lists and calls with the inspector's command line.
func (e *endToEnd) testInspector(t *testing.T) {
	w := e.newWorld(t)
	w.configure(t, w.realServers())
	w.warmUp(t)
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		entryName: map[string]any{"type": "stdio", "command": w.program, "args": w.proxyArgs()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.work, "inspector.json")
	w.write(t, file, string(entry))

	// The package looks for its manifest in the folder above the working folder.
	dir := w.module("@modelcontextprotocol/inspector-cli/build")
	inspect := func(t *testing.T, method ...string) string {
		argv := []string{w.node, filepath.Join(dir, "cli.js"), "--cli", "--config", file, "--server", entryName}
		return w.runIn(t, dir, w.environ(), append(argv, method...)).stdout
	}

	t.Run("list", func(t *testing.T) {
		var got struct{ Tools []struct{ Name string } }
		decode(t, inspect(t, "--method", "tools/list"), &got)
		for _, server := range w.realServers() {
			if !slices.ContainsFunc(got.Tools, func(tool struct{ Name string }) bool {
				return strings.HasPrefix(tool.Name, server.Name+"__")
			}) {
				t.Errorf("no tool of %s is listed", server.Name)
			}
		}
	})
	t.Run("call", func(t *testing.T) {
		var got struct{ Content []struct{ Text string } }
		decode(t, inspect(t, "--method", "tools/call", "--tool-name", "everything__get-sum", "--tool-arg", "a=1", "b=2"), &got)
		if len(got.Content) != 1 || got.Content[0].Text != "The sum of 1 and 2 is 3." {
			t.Errorf("got %+v", got)
		}
	})
}

// testClaudeCode adds the program to an empty home and lets Claude Code connect.
// Claude Code ends its servers with SIGINT right after it has listed their tools.
func (e *endToEnd) testClaudeCode(t *testing.T) {
	w := e.newWorld(t)
	w.configure(t, w.realServers())
	claude := func(args ...string) string {
		environ := w.environ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
		wrapper := w.client("@anthropic-ai/claude-code/cli-wrapper.cjs")
		return w.runIn(t, w.work, environ, append([]string{w.node, wrapper}, args...)).stdout
	}

	claude(append([]string{"mcp", "add", "-s", "user", entryName, "--", w.program}, w.proxyArgs()...)...)
	list := claude("mcp", "list")
	if !reportsConnected(list) {
		t.Errorf("claude mcp list does not report %s as connected:\n%s", entryName, list)
	}
}

// testGeminiCLI adds the program to an empty home with one trusted folder and
// lets Gemini CLI connect. It refuses servers in folders that are not trusted.
func (e *endToEnd) testGeminiCLI(t *testing.T) {
	w := e.newWorld(t)
	w.configure(t, w.realServers())
	settings := filepath.Join(w.home, ".gemini")
	if err := os.Mkdir(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(t, filepath.Join(settings, "settings.json"),
		`{"general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}, "privacy": {"usageStatisticsEnabled": false}}`)
	w.write(t, filepath.Join(settings, "trustedFolders.json"), fmt.Sprintf(`{%q: "TRUST_FOLDER"}`, w.work))
	gemini := func(args ...string) outcome {
		environ := w.environ("GEMINI_TELEMETRY_ENABLED=false", "NO_COLOR=1")
		return w.runIn(t, w.work, environ, append([]string{w.node, w.client("@google/gemini-cli/bundle/gemini.js")}, args...))
	}

	mark := markVariable + "=" + w.mark
	gemini(append([]string{"mcp", "add", "-s", "user", "-e", mark, entryName, w.program, "--"}, w.proxyArgs()...)...)
	list := gemini("mcp", "list")
	if !reportsConnected(list.stdout + list.stderr) {
		t.Errorf("gemini mcp list does not report %s as connected:\n%s%s", entryName, list.stdout, list.stderr)
	}
}

// reportsConnected tells whether the line about our entry says that it is connected.
func reportsConnected(list string) bool {
	for line := range strings.Lines(list) {
		if strings.Contains(line, entryName+":") {
			return strings.HasSuffix(strings.TrimSpace(line), "Connected")
		}
	}
	return false
}

// codexSettings keep Codex's app server from looking for updates, plugins and
// an account outside this machine.
const codexSettings = `check_for_update_on_startup = false
chatgpt_base_url = "http://127.0.0.1:9/"

[analytics]
enabled = false

[features]
plugins = false
remote_plugin = false
apps = false
`

// testCodex adds the program to an empty home, reads the entry back, and asks
// Codex's app server for the state of its servers, for which it connects.
func (e *endToEnd) testCodex(t *testing.T) {
	w := e.newWorld(t)
	w.configure(t, w.realServers())
	w.warmUp(t)
	settings := filepath.Join(w.home, ".codex")
	if err := os.Mkdir(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(t, filepath.Join(settings, "config.toml"), codexSettings)
	codex := []string{w.node, w.client("@openai/codex/bin/codex.js")}

	mark := markVariable + "=" + w.mark
	add := append(codex, "mcp", "add", entryName, "--env", mark, "--", w.program)
	w.runIn(t, w.work, w.environ(), append(add, w.proxyArgs()...))

	var entries []struct {
		Name      string
		Enabled   bool
		Transport struct {
			Type, Command string
			Args          []string
		}
	}
	decode(t, w.runIn(t, w.work, w.environ(), append(codex, "mcp", "list", "--json")).stdout, &entries)
	if len(entries) != 1 || entries[0].Name != entryName || !entries[0].Enabled ||
		entries[0].Transport.Command != w.program || !slices.Equal(entries[0].Transport.Args, w.proxyArgs()) {
		t.Errorf("codex mcp list: got %+v", entries)
	}

	var status struct {
		Data []struct {
			Name  string
			Tools map[string]json.RawMessage
		}
	}
	w.askAppServer(t, append(codex, "app-server"), "mcpServerStatus/list", &status)
	if len(status.Data) != 1 || status.Data[0].Name != entryName || status.Data[0].Tools["everything__echo"] == nil {
		t.Errorf("codex did not get the tools: %+v", status)
	}
}

// askAppServer starts Codex's app server, makes one request without parameters
// and decodes its result into out.
func (w *world) askAppServer(t *testing.T, argv []string, method string, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.work, w.environ(), departure
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", strings.Join(argv, " "), err)
	}

	messages := []string{
		`{"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "e2e", "title": "e2e", "version": "1"}}}`,
		`{"method": "initialized"}`,
		fmt.Sprintf(`{"id": 2, "method": %q, "params": {}}`, method),
	}
	if _, err := fmt.Fprintln(stdin, strings.Join(messages, "\n")); err != nil {
		t.Errorf("write to the app server: %v", err)
	}
	answered := false
	for reader := bufio.NewReader(stdout); !answered; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			t.Errorf("read from the app server: %v", err)
			break
		}
		var message struct {
			ID            int
			Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &message) != nil || message.ID != 2 {
			continue
		}
		answered = true
		if err := json.Unmarshal(message.Result, out); err != nil {
			t.Errorf("%s: %v: error %s, result %s", method, err, message.Error, tail(string(message.Result)))
		}
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the app server ended with %v", err)
	}
}

// warmUp lets the program learn what all configured servers offer.
func (w *world) warmUp(t *testing.T) {
	t.Helper()
	var names []string
	for _, server := range w.realServers() {
		names = append(names, server.Name)
	}
	args := []string{w.script("list-raw.mjs"), "--until", strings.Join(names, ","), w.program}
	w.run(t, w.node, append(args, w.proxyArgs()...)...)
}

// write puts a file into the world.
func (w *world) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// decode reads the JSON that a program printed.
func decode(t *testing.T, stdout string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), out); err != nil {
		t.Fatalf("not the JSON that was expected: %v: %s", err, tail(stdout))
	}
}
