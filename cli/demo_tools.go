package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	noArguments struct{}

	noteArguments struct {
		Name string `json:"name" jsonschema:"the note's name, as list_notes gives it"`
	}

	searchArguments struct {
		Query string `json:"query" jsonschema:"the text to find; case does not matter"`
		Limit int    `json:"limit,omitempty" jsonschema:"at most so many lines, 1 to 100; 20 without it"`
	}

	writeArguments struct {
		Name   string `json:"name" jsonschema:"the note's name"`
		Text   string `json:"text" jsonschema:"the text, Markdown"`
		Append bool   `json:"append,omitempty" jsonschema:"add to the end of the note instead of replacing it"`
	}

	countArguments struct {
		To      int `json:"to" jsonschema:"the last number, 1 to 1000"`
		DelayMS int `json:"delay_ms,omitempty" jsonschema:"the time between two numbers in milliseconds, 0 to 1000"`
	}

	askArguments struct {
		Question string `json:"question" jsonschema:"what to ask the person"`
	}

	notesResult struct {
		Notes []note `json:"notes" jsonschema:"all notes by name"`
	}

	noteResult struct {
		Name string `json:"name" jsonschema:"the note's name"`
		Text string `json:"text" jsonschema:"its text"`
	}

	searchResult struct {
		Matches []noteMatch `json:"matches" jsonschema:"the lines found, by note and line"`
	}

	changeResult struct {
		Name string `json:"name" jsonschema:"the note that was changed"`
		URI  string `json:"uri" jsonschema:"its resource"`
	}

	countResult struct {
		Counted int `json:"counted" jsonschema:"how far the count came"`
	}

	askResult struct {
		Action string `json:"action" jsonschema:"accept, decline or cancel"`
		Answer string `json:"answer,omitempty" jsonschema:"what the person wrote"`
		Urgent bool   `json:"urgent,omitempty" jsonschema:"whether it cannot wait"`
	}
)

// addTools registers the tools: three that read, one that writes, one that
// destroys, one that takes its time and one that asks.
func (d *demoServer) addTools() {
	reads := func(title string) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, OpenWorldHint: new(false)}
	}
	writes := func(title string, destructive bool) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, DestructiveHint: new(destructive), OpenWorldHint: new(false)}
	}
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "list_notes", Description: "List all notes with their sizes and times.", Annotations: reads("List notes"),
	}, d.listNotes)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "read_note", Description: "Read the text of one note.", Annotations: reads("Read a note"),
	}, d.readNote)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "search_notes", Description: "Find the lines of all notes that hold a text.", Annotations: reads("Search notes"),
	}, d.searchNotes)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "write_note", Description: "Write a note, or add to one.", Annotations: writes("Write a note", false),
	}, d.writeNote)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "delete_note", Description: "Delete a note for good.", Annotations: writes("Delete a note", true),
	}, d.deleteNote)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "count", Description: "Count up to a number and report progress on the way.", Annotations: reads("Count"),
	}, d.count)
	mcp.AddTool(d.Server, &mcp.Tool{
		Name: "ask", Description: "Ask the person at the client a question with a form and return the answer.", Annotations: reads("Ask"),
	}, d.ask)
}

func (d *demoServer) listNotes(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, notesResult, error) {
	notes, err := d.notes.list()
	return nil, notesResult{Notes: notes}, err
}

func (d *demoServer) readNote(_ context.Context, _ *mcp.CallToolRequest, in noteArguments) (*mcp.CallToolResult, noteResult, error) {
	text, err := d.notes.read(in.Name)
	if err != nil {
		return nil, noteResult{}, err
	}
	result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	return result, noteResult{Name: in.Name, Text: text}, nil
}

func (d *demoServer) searchNotes(_ context.Context, _ *mcp.CallToolRequest, in searchArguments) (*mcp.CallToolResult, searchResult, error) {
	switch {
	case in.Query == "":
		return nil, searchResult{}, errors.New("query is empty; list_notes lists everything")
	case in.Limit == 0:
		in.Limit = 20
	case in.Limit < 1 || in.Limit > 100:
		return nil, searchResult{}, errors.New("limit is not between 1 and 100")
	}
	matches, err := d.notes.search(in.Query, in.Limit)
	return nil, searchResult{Matches: matches}, err
}

func (d *demoServer) writeNote(ctx context.Context, _ *mcp.CallToolRequest, in writeArguments) (*mcp.CallToolResult, changeResult, error) {
	if err := d.notes.write(in.Name, in.Text, in.Append); err != nil {
		return nil, changeResult{}, err
	}
	return nil, changeResult{Name: in.Name, URI: noteURI(in.Name)}, d.changed(ctx, in.Name)
}

func (d *demoServer) deleteNote(ctx context.Context, _ *mcp.CallToolRequest, in noteArguments) (*mcp.CallToolResult, changeResult, error) {
	if err := d.notes.remove(in.Name); err != nil {
		return nil, changeResult{}, err
	}
	return nil, changeResult{Name: in.Name, URI: noteURI(in.Name)}, d.changed(ctx, in.Name)
}

// changed tells the clients that subscribed to the note or the index.
func (d *demoServer) changed(ctx context.Context, name string) error {
	return errors.Join(
		d.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: noteURI(name)}),
		d.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: notesIndexURI}),
	)
}

func (d *demoServer) count(ctx context.Context, req *mcp.CallToolRequest, in countArguments) (*mcp.CallToolResult, countResult, error) {
	if in.To < 1 || in.To > 1000 || in.DelayMS < 0 || in.DelayMS > 1000 {
		return nil, countResult{}, errors.New("to is between 1 and 1000, delay_ms between 0 and 1000")
	}
	token := req.Params.GetProgressToken()
	for i := 1; i <= in.To; i++ {
		select {
		case <-ctx.Done():
			return nil, countResult{}, context.Cause(ctx)
		case <-time.After(time.Duration(in.DelayMS) * time.Millisecond):
		}
		if token == nil {
			continue
		}
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i), Total: float64(in.To),
		})
		if err != nil {
			return nil, countResult{}, err
		}
	}
	return nil, countResult{Counted: in.To}, nil
}

// askForm is the form of the tool ask.
const askForm = `{"type":"object","properties":{` +
	`"answer":{"type":"string","title":"Answer","minLength":1},` +
	`"urgent":{"type":"boolean","title":"Urgent","default":false}},"required":["answer"]}`

// ask returns the question as a request for input. The SDK puts it to the
// client, in the way of the client's protocol, and calls again with the answer.
func (d *demoServer) ask(_ context.Context, req *mcp.CallToolRequest, in askArguments) (*mcp.CallToolResult, askResult, error) {
	const key = "form"
	if answer, ok := req.Params.InputResponses[key]; ok {
		elicited, ok := answer.(*mcp.ElicitResult)
		if !ok {
			return nil, askResult{}, errors.New("the client answered with something else than a form")
		}
		result := askResult{Action: elicited.Action}
		result.Answer, _ = elicited.Content["answer"].(string)
		result.Urgent, _ = elicited.Content["urgent"].(bool)
		return nil, result, nil
	}
	if c := req.ClientCapabilities(); c == nil || c.Elicitation == nil {
		return nil, askResult{}, errors.New("this client cannot show a form")
	}
	form := &mcp.ElicitParams{Mode: "form", Message: in.Question, RequestedSchema: json.RawMessage(askForm)}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: form}}, askResult{}, nil
}
