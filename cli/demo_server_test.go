package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notesClient is a client of the demonstration's server, a child process.
type notesClient struct {
	*mcp.ClientSession
	dir      string
	progress chan float64
	updated  chan string
}

// startNotes starts the server over a folder with one note and connects to it
// in the given version of the protocol.
func startNotes(t *testing.T, version string) *notesClient {
	t.Helper()
	c := &notesClient{dir: t.TempDir(), progress: make(chan float64, 100), updated: make(chan string, 100)}
	if err := os.WriteFile(filepath.Join(c.dir, "first.md"), []byte("# First\nbuy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": req.Params.Message + " yes", "urgent": true}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.progress <- req.Params.Progress
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			c.updated <- req.Params.URI
		},
	})
	cmd := exec.Command("mcpproxy", "demo-server", c.dir)
	cmd.Stderr = os.Stderr
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	c.ClientSession = session
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// call calls a tool and decodes its structured content.
func (c *notesClient) call(t *testing.T, name string, args, out any) *mcp.CallToolResult {
	t.Helper()
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken("token")
	res, err := c.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if res.IsError {
		return res
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%s: %s: %v", name, raw, err)
	}
	return res
}

// TestDemoServer uses everything the demonstration's server offers, in both
// eras of the protocol.
func TestDemoServer(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			c := startNotes(t, version)
			t.Run("tools", c.testTools)
			t.Run("notes", c.testNotes)
			t.Run("ask", c.testAsk)
			t.Run("resources", c.testResources)
		})
	}
}

func (c *notesClient) testTools(t *testing.T) {
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, tool := range list.Tools {
		if tool.OutputSchema == nil || tool.Description == "" || tool.Annotations.Title == "" {
			t.Errorf("%s lacks a schema, a description or a title", tool.Name)
		}
		switch a := tool.Annotations; {
		case a.ReadOnlyHint:
			kinds[tool.Name] = "read"
		case a.DestructiveHint != nil && !*a.DestructiveHint:
			kinds[tool.Name] = "write"
		case a.DestructiveHint != nil:
			kinds[tool.Name] = "destructive"
		}
	}
	want := map[string]string{
		"list_notes": "read", "read_note": "read", "search_notes": "read", "count": "read", "ask": "read",
		"write_note": "write", "delete_note": "destructive",
	}
	for name, kind := range want {
		if kinds[name] != kind {
			t.Errorf("%s is %q, want %q", name, kinds[name], kind)
		}
	}
	if len(kinds) != len(want) {
		t.Errorf("tools %v", kinds)
	}
}

func (c *notesClient) testNotes(t *testing.T) {
	var list notesResult
	c.call(t, "list_notes", nil, &list)
	if len(list.Notes) != 1 || list.Notes[0].Name != "first" || list.Notes[0].Size != 17 {
		t.Errorf("list_notes: %+v", list)
	}
	var read noteResult
	res := c.call(t, "read_note", noteArguments{"first"}, &read)
	if text := res.Content[0].(*mcp.TextContent).Text; read.Text != "# First\nbuy milk\n" || text != read.Text {
		t.Errorf("read_note: %+v, %q", read, text)
	}
	var change changeResult
	c.call(t, "write_note", writeArguments{Name: "Zwei Ü", Text: "a\n"}, &change)
	c.call(t, "write_note", writeArguments{Name: "Zwei Ü", Text: "MILK\n", Append: true}, &change)
	if change.URI != "notes://note/Zwei%20%C3%9C" {
		t.Errorf("write_note: %+v", change)
	}
	var found searchResult
	c.call(t, "search_notes", searchArguments{Query: "milk"}, &found)
	want := []noteMatch{{"Zwei Ü", 2, "MILK"}, {"first", 2, "buy milk"}}
	if !slices.Equal(found.Matches, want) {
		t.Errorf("search_notes: %+v", found)
	}
	c.call(t, "search_notes", searchArguments{Query: "milk", Limit: 1}, &found)
	if !slices.Equal(found.Matches, want[:1]) {
		t.Errorf("search_notes with a limit: %+v", found)
	}
	c.call(t, "delete_note", noteArguments{"Zwei Ü"}, &change)
	if _, err := os.Stat(filepath.Join(c.dir, "Zwei Ü.md")); !os.IsNotExist(err) {
		t.Errorf("after delete_note: %v", err)
	}
	var counted countResult
	c.call(t, "count", countArguments{To: 3}, &counted)
	if counted.Counted != 3 {
		t.Errorf("count: %+v", counted)
	}
	for want := 1.0; want <= 3; want++ {
		if got := <-c.progress; got != want {
			t.Errorf("progress %v, want %v", got, want)
		}
	}
	for name, args := range map[string]any{
		"read_note": noteArguments{"gone"}, "delete_note": noteArguments{"gone"}, "write_note": writeArguments{Name: "../x"},
		"search_notes": searchArguments{}, "count": countArguments{To: 5000},
	} {
		if res := c.call(t, name, args, nil); !res.IsError || len(res.Content) == 0 {
			t.Errorf("%s with %+v is no failure: %+v", name, args, res)
		}
	}
}

func (c *notesClient) testAsk(t *testing.T) {
	var answer askResult
	c.call(t, "ask", askArguments{"Really?"}, &answer)
	if answer != (askResult{Action: "accept", Answer: "Really? yes", Urgent: true}) {
		t.Errorf("ask: %+v", answer)
	}
}

func (c *notesClient) testResources(t *testing.T) {
	ctx := t.Context()
	read := func(uri string) string {
		t.Helper()
		res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatalf("read %s: %v", uri, err)
		}
		return res.Contents[0].Text
	}
	resources, err := c.ListResources(ctx, nil)
	if err != nil || len(resources.Resources) != 1 || resources.Resources[0].URI != notesIndexURI {
		t.Fatalf("resources: %+v, %v", resources, err)
	}
	templates, err := c.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != noteURITemplate {
		t.Fatalf("templates: %+v, %v", templates, err)
	}
	if text := read(notesIndexURI); !strings.Contains(text, "- [first](notes://note/first)") {
		t.Errorf("index: %q", text)
	}
	if text := read(noteURI("first")); text != "# First\nbuy milk\n" {
		t.Errorf("note: %q", text)
	}
	if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: noteURI("../first")}); err == nil {
		t.Error("a note outside the folder was read")
	}
	prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "summarize_notes", Arguments: map[string]string{"name": "first"}})
	if err != nil || len(prompt.Messages) != 2 {
		t.Fatalf("prompt: %+v, %v", prompt, err)
	}
	if _, ok := prompt.Messages[1].Content.(*mcp.EmbeddedResource); !ok {
		t.Errorf("prompt: %T", prompt.Messages[1].Content)
	}
	completion, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "summarize_notes"},
		Argument: mcp.CompleteParamsArgument{Name: "name", Value: "fi"},
	})
	if err != nil || !slices.Equal(completion.Completion.Values, []string{"first"}) {
		t.Errorf("completion: %+v, %v", completion, err)
	}
	if c.InitializeResult().ProtocolVersion != "2025-11-25" {
		return // subscriptions are a stream of their own there
	}
	if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: noteURI("first")}); err != nil {
		t.Fatal(err)
	}
	c.call(t, "write_note", writeArguments{Name: "first", Text: "new"}, &changeResult{})
	if uri := <-c.updated; uri != noteURI("first") {
		t.Errorf("updated %s", uri)
	}
}

// TestNotesStayInTheFolder tries names and links that lead out of the folder.
func TestNotesStayInTheFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	notes := noteFolder{root}
	for _, name := range []string{
		"", "..", ".hidden", "../" + filepath.Base(outside) + "/secret", filepath.Join(outside, "secret"), "link",
		"a/b", `a\b`, "a:b", "a\x00b", "a\nb", " a", strings.Repeat("a", 101),
	} {
		if text, err := notes.read(name); err == nil {
			t.Errorf("read %q: %q", name, text)
		}
		if err := notes.write(name, "x", false); err == nil {
			t.Errorf("wrote %q", name)
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret.md")); err != nil || string(text) != "hunter2" {
		t.Errorf("outside: %q, %v", text, err)
	}
	if list, err := notes.list(); err != nil || len(list) != 0 {
		t.Errorf("list: %v, %v", list, err)
	}
}
