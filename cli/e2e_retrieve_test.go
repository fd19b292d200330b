package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/testdata/catalogue"
)

// testRetrieve puts the real servers and the recorded ones behind mode
// retrieve_tools, and has the SDK's client ask what a person would ask and call
// what it finds.
func (e *endToEnd) testRetrieve(t *testing.T) {
	w := e.newWorld(t)
	if err := os.WriteFile(filepath.Join(w.work, "shopping.txt"), []byte("bread and milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := w.realServers()
	w.configure(t, append(servers, w.recordedServers(t, servers)...))
	cmd := exec.Command(w.program, "--mode", "retrieve_tools", "--config", w.config, "--data-dir", w.data)
	cmd.Dir, cmd.Env = w.work, w.environ()
	client := mcp.NewClient(&mcp.Implementation{Name: "retrieve", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	r := retriever{t, session}
	for deadline := time.Now().Add(patience); ; {
		if strings.Contains(r.call("retrieve_tools", map[string]any{"query": "anything"}), `"notice"`) && time.Now().Before(deadline) {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		break
	}
	t.Run("questions", func(t *testing.T) { r.ask(t) })
	t.Run("calls", func(t *testing.T) {
		for _, use := range []struct {
			query, name string
			args        map[string]any
			want        string
		}{
			{"read the text of a file", "filesystem:read_text_file", map[string]any{"path": filepath.Join(w.work, "shopping.txt")}, "bread and milk"},
			{"write a file", "filesystem:write_file", map[string]any{"path": filepath.Join(w.work, "new.txt"), "content": "x"}, "Successfully"},
			{"everything add two numbers sum", "everything:get-sum", map[string]any{"a": 2, "b": 40}, "42"},
			{"memory knowledge graph create entities", "memory:create_entities", map[string]any{"entities": []any{map[string]any{"name": "Anna", "entityType": "person", "observations": []string{"likes tea"}}}}, "Anna"},
		} {
			with := r.callWith(use.query, use.name)
			if got := r.call(with, map[string]any{"name": use.name, "args": use.args}); !strings.Contains(got, use.want) {
				t.Errorf("%s by %s: %s", use.name, with, got)
			}
		}
	})
}

// retriever is a client of mode retrieve_tools.
type retriever struct {
	t       *testing.T
	session *mcp.ClientSession
}

// call returns the text of a result that must be no failure.
func (r retriever) call(tool string, args any) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	result, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		r.t.Fatalf("%s: %v", tool, err)
	}
	var texts []string
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if result.IsError {
		r.t.Fatalf("%s %v: %s", tool, args, texts)
	}
	return strings.Join(texts, "\n")
}

// find returns the names of what a search finds, and what each is called with.
func (r retriever) find(query string, limit int) (names []string, callWith map[string]string) {
	r.t.Helper()
	var answer struct {
		Tools []struct {
			Name     string
			ID       string
			CallWith string `json:"call_with"`
		}
	}
	text := r.call("retrieve_tools", map[string]any{"query": query, "limit": limit})
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		r.t.Fatalf("%v in %s", err, tail(text))
	}
	callWith = map[string]string{}
	for _, tool := range answer.Tools {
		name := tool.Name + tool.ID // one that is too long is compact
		names = append(names, name)
		callWith[name] = tool.CallWith
	}
	return names, callWith
}

// callWith is what a tool is to be called with, by a search that must find it among
// the first five.
func (r retriever) callWith(query, name string) string {
	r.t.Helper()
	names, callWith := r.find(query, 5)
	if !slices.Contains(names, name) {
		r.t.Fatalf("%q finds %v", query, names)
	}
	return callWith[name]
}

// ask asks the twenty questions of the catalogue; the right tool is to be among the
// first five for as many as there.
func (r retriever) ask(t *testing.T) {
	questions, err := catalogue.Questions()
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for _, q := range questions {
		names, _ := r.find(q.Question, catalogue.First)
		if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(q.Tools, name) }) {
			answered++
			continue
		}
		t.Logf("%s: %v", q.Question, names)
	}
	t.Logf("%d of %d questions are answered", answered, len(questions))
	if answered < catalogue.Held {
		t.Errorf("%d of %d questions are answered, %d were", answered, len(questions), catalogue.Held)
	}
}

// recordedServers are the servers of the catalogue that are not among the real ones,
// each as a server that offers what was recorded.
func (w *world) recordedServers(t *testing.T, real []serverConfig) (list []serverConfig) {
	t.Helper()
	stub, err := exec.LookPath("mcpstub")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := catalogue.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range manifest {
		if slices.ContainsFunc(real, func(s serverConfig) bool { return s.Name == entry.Name }) {
			continue
		}
		tools, err := catalogue.Tools(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		scenario := filepath.Join(filepath.Dir(w.config), entry.Name+".json")
		if err := os.WriteFile(scenario, fmt.Appendf(nil, `{"name":%q,"lifetime_ms":120000,"tools":%s}`, entry.Name, tools), 0o600); err != nil {
			t.Fatal(err)
		}
		list = append(list, serverConfig{Name: entry.Name, Command: stub, Args: []string{"stub", scenario}, Env: map[string]string{markVariable: w.mark}})
	}
	return list
}
