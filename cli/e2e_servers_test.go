package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// everything is the reference server that uses every part of the protocol.
const everything = "everything"

// realServers are the servers from npm, as one configuration. None of them
// needs a key or a network to list its tools.
func (w *world) realServers() []serverConfig {
	reference := "@modelcontextprotocol/server-"
	return []serverConfig{
		w.server(everything, w.module(reference+"everything/dist/index.js")),
		w.server("filesystem", w.module(reference+"filesystem/dist/index.js"), w.work),
		w.server("memory", w.module(reference+"memory/dist/index.js")).with("MEMORY_FILE_PATH", filepath.Join(w.home, "memory.jsonl")),
		w.server("sequential-thinking", w.module(reference+"sequential-thinking/dist/index.js")),
		w.server("chrome-devtools", w.module("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"),
			"--no-usage-statistics", "--no-performance-crux").with("CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS", "1"),
		w.server("notion", w.module("@notionhq/notion-mcp-server/bin/cli.mjs")),
		w.server("eslint", w.module("@eslint/mcp/src/mcp-cli.js")),
	}
}

// server is the entry of one server that node runs.
func (w *world) server(name, entry string, args ...string) serverConfig {
	return serverConfig{
		Name:    name,
		Command: w.node,
		Args:    append([]string{entry}, args...),
		Env:     map[string]string{markVariable: w.mark},
		// Some of them offer more in the course of a conversation.
		AutoApprove: true,
	}
}

// with returns the entry with one more environment variable.
func (s serverConfig) with(key, value string) serverConfig {
	s.Env[key] = value
	return s
}

// environ is the environment of a server that is started directly.
func (s serverConfig) environ(w *world) []string {
	var more []string
	for key, value := range s.Env {
		more = append(more, key+"="+value)
	}
	return w.environ(more...)
}

// testDefinitions compares every tool, resource, template and prompt of every
// server as the proxy lists it with the server's own list: at the first start,
// and at the second, which answers from the store and starts no server.
func (e *endToEnd) testDefinitions(t *testing.T) {
	w := e.newWorld(t)
	servers := w.realServers()
	starts := filepath.Join(w.home, "starts")
	for _, server := range servers {
		server.with("NODE_OPTIONS", "--require="+w.script("note-start.cjs")).with("E2E_STARTS", starts)
	}
	w.configure(t, servers)

	want := listing{}
	var names []string
	for _, server := range servers {
		argv := append([]string{w.node, w.script("list-raw.mjs"), server.Command}, server.Args...)
		direct := parseListing(t, w.runIn(t, w.work, server.environ(w), argv).stdout)
		want.add(t, server.Name, direct)
		names = append(names, server.Name)
	}

	proxy := append([]string{w.program}, w.proxyArgs()...)
	first := append([]string{w.script("list-raw.mjs"), "--until", strings.Join(names, ",")}, proxy...)
	t.Run("first start", func(t *testing.T) {
		want.assertEqual(t, parseListing(t, w.run(t, w.node, first...).stdout))
	})
	t.Run("second start", func(t *testing.T) {
		if err := os.Remove(starts); err != nil {
			t.Fatal(err)
		}
		second := append([]string{w.script("list-raw.mjs")}, proxy...)
		want.assertEqual(t, parseListing(t, w.run(t, w.node, second...).stdout))
		if started, err := os.ReadFile(starts); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("servers were started: %s (%v)", started, err)
		}
	})
}

// testConversation holds the same conversation with server-everything directly
// over stdio and through the proxy, which reaches it over each transport, and
// compares every message that came back. Over streamable HTTP a server answers on
// one stream and notifies on another, so only the order within each is compared.
func (e *endToEnd) testConversation(t *testing.T) {
	inOrder := func(events []string) []string { return events }
	for _, transport := range []struct {
		name, argument, path string
		order                func(events []string) []string
	}{
		{"stdio", "stdio", "", inOrder},
		{"streamable http", "streamableHttp", "/mcp", answersLast},
		{"sse", "sse", "/sse", inOrder},
	} {
		t.Run(transport.name, func(t *testing.T) {
			w := e.newWorld(t)
			server := w.server(everything, w.module("@modelcontextprotocol/server-everything/dist/index.js"), transport.argument)
			if transport.path == "" {
				w.configure(t, []serverConfig{server})
			} else {
				url := w.listen(t, server) + transport.path
				w.configure(t, []serverConfig{{Name: server.Name, URL: url, AutoApprove: true}})
				server.Args[1] = "stdio"
			}
			w.compareConversations(t, server, transport.order)
		})
	}
}

// compareConversations talks to the server directly, then to the configured one
// through the proxy. The events of a step are compared in the given order.
func (w *world) compareConversations(t *testing.T, server serverConfig, order func([]string) []string) {
	t.Helper()
	exercise := []string{w.script("exercise-everything.mjs")}
	if allShared() {
		exercise = append(exercise, "--no-roots") // which shared servers do not get
	}
	argv := slices.Concat([]string{w.node}, exercise, []string{server.Command}, server.Args)
	direct := parseConversation(t, w.runIn(t, w.work, server.environ(w), argv).stdout)

	args := slices.Concat(exercise, []string{"--prefix", everything + "__", w.program}, w.proxyArgs())
	proxied := parseConversation(t, w.run(t, w.node, args...).stdout)

	want := listing{}
	want.add(t, everything, listing{"tools/list": itemsOf(t, "tools", direct.Tools)})
	want.assertEqual(t, listing{"tools/list": itemsOf(t, "tools", proxied.Tools)})
	assertEveryToolCalled(t, direct)

	if len(direct.Steps) != len(proxied.Steps) {
		t.Fatalf("%d steps directly, %d through the proxy", len(direct.Steps), len(proxied.Steps))
	}
	for i, step := range direct.Steps {
		got := proxied.Steps[i]
		t.Run(step.title(), func(t *testing.T) {
			assertSameEvents(t, order(normalise(t, step.Events)), order(normalise(t, got.Events)))
		})
	}
}

// listen starts a server that listens on a free port of this machine until the
// test ends, and returns its origin. The entry gets the port into its environment.
func (w *world) listen(t *testing.T, server serverConfig) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(server.Command, server.Args...)
	cmd.Dir, cmd.Env = w.work, server.with("PORT", port).environ(w)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", server.Name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = connection.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", server.Name, err)
		}
	}
}

// conversation is the output of exercise-everything.mjs.
type conversation struct {
	Tools string // the line of the answer to tools/list
	Steps []conversationStep
}

// conversationStep is one request and all that arrived until it was over.
type conversationStep struct {
	Step struct {
		Method string
		Params struct {
			Name string
			URI  string
		}
	}
	Events []string // one received line each
}

// title names a step for the reader of a failure.
func (s conversationStep) title() string {
	return strings.TrimSpace(strings.Join([]string{s.Step.Method, s.Step.Params.Name, s.Step.Params.URI}, " "))
}

// parseConversation reads the JSON Lines of exercise-everything.mjs.
func parseConversation(t *testing.T, stdout string) conversation {
	t.Helper()
	var c conversation
	lines := bufio.NewScanner(strings.NewReader(stdout))
	lines.Buffer(nil, len(stdout)+1)
	for lines.Scan() {
		var line struct {
			Tools string
			conversationStep
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("read the conversation: %v: %s", err, tail(lines.Text()))
		}
		if line.Tools != "" {
			c.Tools = line.Tools
			continue
		}
		c.Steps = append(c.Steps, line.conversationStep)
	}
	return c
}

// assertEveryToolCalled fails when the conversation leaves out a listed tool.
func assertEveryToolCalled(t *testing.T, c conversation) {
	t.Helper()
	called := map[string]bool{}
	for _, step := range c.Steps {
		if step.Step.Method == "tools/call" {
			called[step.Step.Params.Name] = true
		}
	}
	for _, item := range itemsOf(t, "tools", c.Tools) {
		if name := item.text("name"); !called[name] {
			t.Errorf("the conversation never calls %s", name)
		}
	}
}
