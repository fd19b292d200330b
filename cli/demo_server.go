package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// demoServerCmd is an MCP server of its own: the upstream of the demonstration
// and of the tests, which needs nothing but this binary and a folder.
type demoServerCmd struct {
	Folder string `arg:"" help:"the folder that holds the notes"`
}

// Help implements kong.HelpProvider.
func (*demoServerCmd) Help() string {
	return `The notes are the files NAME.md of the folder; nothing outside it can be reached.

    mcpproxy demo-server ~/notes
    mcpproxy demo-server /srv/notes`
}

// run serves until stdin ends or ctx does.
func (c *demoServerCmd) run(ctx context.Context, a *app) error {
	root, err := os.OpenRoot(a.path(c.Folder))
	if err != nil {
		return fmt.Errorf("open the notes: %w", err)
	}
	a.opened = append(a.opened, root)
	transport := &mcp.IOTransport{Reader: io.NopCloser(a.Stdin), Writer: keepOpen{a.Stdout}}
	err = newDemoServer(noteFolder{root}).Run(ctx, transport)
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve the notes: %w", err)
	}
	return nil
}

// keepOpen is a writer whose Close does nothing.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// The URIs of the demonstration's resources.
const (
	notesIndexURI    = "notes://index"
	noteURIPrefix    = "notes://note/"
	noteURITemplate  = noteURIPrefix + "{name}"
	markdownMIMEType = "text/markdown"
)

// noteURI returns the URI of a note.
func noteURI(name string) string { return noteURIPrefix + url.PathEscape(name) }

// demoServer is the server and what its handlers work on.
type demoServer struct {
	*mcp.Server
	notes noteFolder
}

// newDemoServer returns a server over a folder of notes with tools of each
// kind, a resource, a resource template, a prompt and completions.
func newDemoServer(notes noteFolder) *demoServer {
	d := &demoServer{notes: notes}
	d.Server = mcp.NewServer(
		&mcp.Implementation{Name: "notes", Title: "Notes", Version: buildOf().Version},
		&mcp.ServerOptions{
			Instructions:       "Notes in one folder. List or search them before reading, and ask before deleting one.",
			CompletionHandler:  d.complete,
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
	d.addTools()
	d.AddResource(&mcp.Resource{
		Name: "index", Title: "All notes", URI: notesIndexURI, MIMEType: markdownMIMEType,
		Description: "The names of all notes as a list of links",
	}, d.readIndex)
	d.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "note", Title: "One note", URITemplate: noteURITemplate, MIMEType: markdownMIMEType,
		Description: "The text of the note of this name",
	}, d.readNoteResource)
	d.AddPrompt(&mcp.Prompt{
		Name: "summarize_notes", Title: "Summarize notes",
		Description: "Asks for a summary of one note, or of all of them",
		Arguments:   []*mcp.PromptArgument{{Name: "name", Title: "Note", Description: "the note to summarize; all without it"}},
	}, d.summarize)
	return d
}

// readIndex is the resource that lists the notes.
func (d *demoServer) readIndex(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	names, err := d.notes.names("")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("# Notes\n\n")
	for _, name := range names {
		fmt.Fprintf(&b, "- [%s](%s)\n", name, noteURI(name))
	}
	return markdown(req.Params.URI, b.String()), nil
}

// readNoteResource is the template that reads a note.
func (d *demoServer) readNoteResource(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, noteURIPrefix))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	text, err := d.notes.read(name)
	switch {
	case errors.Is(err, errNoNote):
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, err
	}
	return markdown(req.Params.URI, text), nil
}

func markdown(uri, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: markdownMIMEType, Text: text}}}
}

// summarize is the prompt: the request and the notes it is about.
func (d *demoServer) summarize(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	names := []string{req.Params.Arguments["name"]}
	if names[0] == "" {
		var err error
		if names, err = d.notes.names(""); err != nil {
			return nil, err
		}
	}
	result := &mcp.GetPromptResult{
		Description: "A summary of notes",
		Messages: []*mcp.PromptMessage{{
			Role: "user", Content: &mcp.TextContent{Text: "Summarize these notes in three sentences. Name what is still to be done."},
		}},
	}
	for _, name := range names {
		text, err := d.notes.read(name)
		if err != nil {
			return nil, err
		}
		result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: &mcp.EmbeddedResource{
			Resource: &mcp.ResourceContents{URI: noteURI(name), MIMEType: markdownMIMEType, Text: text},
		}})
	}
	return result, nil
}

// complete offers note names wherever an argument is called name.
func (d *demoServer) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	result := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if req.Params.Argument.Name != "name" {
		return result, nil
	}
	names, err := d.notes.names(req.Params.Argument.Value)
	if err != nil {
		return nil, err
	}
	result.Completion.Total = len(names)
	result.Completion.HasMore = len(names) > 100
	result.Completion.Values = names[:min(len(names), 100)]
	return result, nil
}
