package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/catalog"
)

// demoFirstStart uses all that the server offers, through direct mode.
func demoFirstStart(ctx context.Context, c *demoClient) error {
	for _, step := range []func(context.Context) error{
		c.firstList, c.readTools, c.writeTools, c.slowTools, c.resources, c.prompts,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// firstList lists the tools of a server that has to be started first. On a slow
// machine that takes longer than a list waits, and the client is told later.
func (c *demoClient) firstList(ctx context.Context) error {
	n, err := c.listTools(ctx, "the server was started for it")
	if err != nil || n > 0 {
		return err
	}
	// A call waits as long as the server takes, and tells if it does not start.
	err = c.call(ctx, "notes__list_notes", nil, new(notesResult), func() string { return "the server takes longer to start than a list waits" })
	if err != nil {
		return err
	}
	err = c.step("tools/list_changed", func() (string, []string, error) {
		select {
		case <-c.changed:
			return "now it has started", nil, nil
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	_, err = c.listTools(ctx, "from the server")
	return err
}

// demoSecondStart lists without the server, and then needs it.
func demoSecondStart(ctx context.Context, c *demoClient) error {
	before, _ := c.stage.starts()
	if _, err := c.listTools(ctx, "from the store"); err != nil {
		return err
	}
	if started, _ := c.stage.starts(); started != before {
		return errors.New("the server was started for a list that is stored")
	}
	err := c.call(ctx, "notes__list_notes", nil, new(notesResult), func() string { return "the server was started for this call" })
	if started, _ := c.stage.starts(); err == nil && started != before+1 {
		err = errors.New("the server was not started for a call")
	}
	return err
}

// listTools lists the tools with their tiers and returns how many there are.
// source tells where the list comes from.
func (c *demoClient) listTools(ctx context.Context, source string) (n int, err error) {
	err = c.step("tools/list", func() (string, []string, error) {
		list, err := c.ListTools(ctx, nil)
		if err != nil {
			return "", nil, err
		}
		n = len(list.Tools)
		size := c.replied.Load()
		byTier := map[catalog.Tier][]string{}
		for _, tool := range list.Tools {
			raw, err := json.Marshal(tool)
			if err != nil {
				return "", nil, err
			}
			tier := catalog.New(catalog.Ref{}, raw, nil).Tier(catalog.Destructive)
			byTier[tier] = append(byTier[tier], tool.Name)
		}
		var more []string
		for _, tier := range []catalog.Tier{catalog.Read, catalog.Write, catalog.Destructive} {
			if names := byTier[tier]; len(names) > 0 {
				more = append(more, fmt.Sprintf("%s: %s", tier, strings.Join(names, ", ")))
			}
		}
		// Four bytes a token is the usual rule of thumb.
		return fmt.Sprintf("%d tools, %d bytes, about %d tokens; %s", n, size, size/4, source), more, nil
	})
	return n, err
}

func (c *demoClient) readTools(ctx context.Context) error {
	var list notesResult
	var found searchResult
	return errors.Join(
		c.call(ctx, "notes__list_notes", nil, &list, func() string {
			var names []string
			for _, n := range list.Notes {
				names = append(names, n.Name)
			}
			return strings.Join(names, ", ")
		}),
		c.call(ctx, "notes__search_notes", searchArguments{Query: "milk"}, &found, func() string {
			var lines []string
			for _, m := range found.Matches {
				lines = append(lines, fmt.Sprintf("%s:%d: %s", m.Name, m.Line, m.Text))
			}
			return strings.Join(lines, ", ")
		}))
}

func (c *demoClient) writeTools(ctx context.Context) error {
	var change changeResult
	return errors.Join(
		c.call(ctx, "notes__write_note", writeArguments{Name: "ideas", Text: "# Ideas\nLess is more.\n"}, &change, func() string { return "wrote " + change.URI }),
		c.call(ctx, "notes__delete_note", noteArguments{Name: "travel"}, &change, func() string { return "deleted " + change.URI }))
}

// slowTools need the client while they run: for progress, and for an answer.
func (c *demoClient) slowTools(ctx context.Context) error {
	var counted countResult
	var progress []string
	var late error
	err := c.call(ctx, "notes__count", countArguments{To: 3, DelayMS: 20}, &counted, func() string {
		progress, late = c.awaitProgress(ctx, counted.Counted)
		return "progress " + strings.Join(progress, ", ")
	})
	if err = errors.Join(err, late); err != nil {
		return err
	}
	var answer askResult
	return c.call(ctx, "notes__ask", askArguments{Question: "Which milk?"}, &answer, func() string {
		return fmt.Sprintf("asked the client \"Which milk?\", it answered %q", answer.Answer)
	})
}

func (c *demoClient) resources(ctx context.Context) error {
	read := func(name, uri string) error {
		return c.step(name, func() (string, []string, error) {
			res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				return "", nil, err
			}
			var parts []string
			for _, content := range res.Contents {
				first, _, _ := strings.Cut(content.Text, "\n")
				parts = append(parts, fmt.Sprintf("%s, %d bytes: %s", content.URI, len(content.Text), first))
			}
			return strings.Join(parts, "; "), nil, nil
		})
	}
	return errors.Join(
		read("read a resource", notesIndexURI),
		c.step("list templates", func() (string, []string, error) {
			list, err := c.ListResourceTemplates(ctx, nil)
			if err != nil {
				return "", nil, err
			}
			var templates []string
			for _, template := range list.ResourceTemplates {
				templates = append(templates, template.URITemplate)
			}
			return strings.Join(templates, ", "), nil, nil
		}),
		read("read by template", noteURI("groceries")))
}

func (c *demoClient) prompts(ctx context.Context) error {
	return c.step("get a prompt", func() (string, []string, error) {
		args := map[string]string{"name": "groceries"}
		prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "notes__summarize_notes", Arguments: args})
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("notes__summarize_notes, %d messages", len(prompt.Messages)), nil, nil
	})
}
