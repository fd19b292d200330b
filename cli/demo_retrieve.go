package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/catalog"
)

// throughVariant are the arguments of the tools that call tools.
type throughVariant struct {
	Name string `json:"name"`
	Args any    `json:"args"`
}

// demoRetrieve finds tools by what they do, and calls them by their tier.
func demoRetrieve(ctx context.Context, c *demoClient) error {
	if _, err := c.listTools(ctx, "the same whatever the servers offer"); err != nil {
		return err
	}
	callWith, err := c.retrieve(ctx, "find the notes that hold a word")
	if err != nil {
		return err
	}
	var found searchResult
	err = c.call(ctx, callWith, throughVariant{"notes:search_notes", searchArguments{Query: "bread"}}, &found, func() string {
		return fmt.Sprintf("notes:search_notes, %d line found: %s", len(found.Matches), found.Matches[0].Text)
	})
	return errors.Join(err, c.refusedVariant(ctx), c.longResult(ctx))
}

// retrieve searches and returns what the first tool is to be called with.
func (c *demoClient) retrieve(ctx context.Context, query string) (callWith string, err error) {
	err = c.step(retrieveTools, func() (string, []string, error) {
		text, err := c.text(ctx, retrieveTools, map[string]any{"query": query, "limit": 3, "detail": "compact"})
		if err != nil {
			return "", nil, err
		}
		var answer struct {
			Tools []struct {
				ID, Sig  string
				CallWith string `json:"call_with"`
			}
			Total int
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return "", nil, err
		}
		if len(answer.Tools) == 0 || answer.Tools[0].ID != "notes:search_notes" {
			return "", nil, fmt.Errorf("%q finds %v", query, answer.Tools)
		}
		var more []string
		for _, tool := range answer.Tools {
			more = append(more, tool.ID+tool.Sig+" "+cmp.Or(tool.CallWith, catalog.Destructive.String()))
		}
		callWith = "call_tool_" + cmp.Or(answer.Tools[0].CallWith, catalog.Destructive.String())
		return fmt.Sprintf("%q: %d of %d that fit, about %d tokens", query, len(answer.Tools), answer.Total, len(text)/4), more, nil
	})
	return callWith, err
}

// retrieveTools is the tool that searches.
const retrieveTools = "retrieve_tools"

// text calls a tool that answers with text.
func (c *demoClient) text(ctx context.Context, tool string, args any) (string, error) {
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	if res.IsError {
		return "", errors.New(textOf(res))
	}
	return textOf(res), nil
}

// refusedVariant tries to destroy something with a tool that only reads.
func (c *demoClient) refusedVariant(ctx context.Context) error {
	return c.step("call call_tool_read", func() (string, []string, error) {
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool_read", Arguments: throughVariant{"notes:delete_note", noteArguments{Name: "groceries"}}})
		if err != nil {
			return "", nil, err
		}
		if !res.IsError {
			return "", nil, errors.New("a note was deleted by a tool that only reads")
		}
		return "refused: " + textOf(res), nil, nil
	})
}

// longResult reads a note that is too long for one answer.
func (c *demoClient) longResult(ctx context.Context) error {
	long := strings.Repeat("All work and no play makes a dull note. ", 750)
	var change changeResult
	err := c.call(ctx, "call_tool_write", throughVariant{"notes:write_note", writeArguments{Name: "long", Text: long}}, &change,
		func() string { return fmt.Sprintf("notes:write_note, %d characters", len(long)) })
	if err != nil {
		return err
	}
	var cut string
	err = c.step("call call_tool_read", func() (string, []string, error) {
		cut, err = c.text(ctx, "call_tool_read", throughVariant{"notes:read_note", noteArguments{Name: "long"}})
		return fmt.Sprintf("notes:read_note, cut to %d characters", len(cut)), nil, err
	})
	if err != nil {
		return err
	}
	return c.step("read_cache", func() (string, []string, error) {
		rest := regexp.MustCompile(`read_cache (\{[^}]*\})`).FindStringSubmatch(cut)
		if rest == nil {
			return "", nil, errors.New("a long result was not cut")
		}
		text, err := c.text(ctx, "read_cache", json.RawMessage(rest[1]))
		return fmt.Sprintf("reads on, %d characters", len(text)), nil, err
	})
}
