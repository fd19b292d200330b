package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/upstream"
	"mcpproxy/mcp/wire"
)

// toolsCallCmd calls one tool.
type toolsCallCmd struct {
	Tool string `arg:"" help:"the tool: SERVER:TOOL" placeholder:"SERVER:TOOL"`
	Args string `help:"the arguments: a JSON object, @FILE with one, or - to read it from stdin" placeholder:"JSON|@FILE|-" default:"{}"`
}

// Help implements kong.HelpProvider.
func (*toolsCallCmd) Help() string {
	return `Texts of the result are printed as they are, other content is named on stderr; --json prints the whole result as the server sent it. The exit code is 1 if the tool reports a failure, 5 if the server is unavailable. Ctrl-C cancels the call at the server.

    mcpproxy tools call notes:read_note --args '{"name": "groceries"}'
    jq -n '{query: "milk"}' | mcpproxy tools call notes:search_notes --args - --json`
}

// run calls the tool by the way that every mode takes.
func (c *toolsCallCmd) run(ctx context.Context, a *app) error {
	args, err := c.arguments(a)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	at, err := addressOf(cfg, c.Tool)
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	item, err := core.find(ctx, at, true)
	if err != nil {
		return err
	}
	watcher := newWatcher(a, item.Server)
	result, failure := core.call(ctx, item, args, watcher)
	watcher.end()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failure != nil:
		return failure
	}
	return a.printResult(item, result)
}

// call calls a tool for the user who typed the command.
func (c *core) call(ctx context.Context, item *catalog.Item, args json.RawMessage, w *watcher) (json.RawMessage, error) {
	params := wire.SetMember(json.RawMessage("{}"), wire.Quote(item.Name), "name")
	params = wire.SetMember(params, args, "arguments")
	if w.watched() {
		params = wire.SetMember(params, wire.Quote("call"), "_meta", "progressToken")
	}
	result, failure := c.gate.Do(ctx, policy.Use{
		Caller: auth.Local(), Session: wire.NewSession("command", w), Item: item, Method: "tools/call", Params: params,
	})
	if failure != nil {
		return nil, failure
	}
	return result, nil
}

// arguments reads the arguments of the call from where --args says.
func (c *toolsCallCmd) arguments(a *app) (json.RawMessage, error) {
	text, from := []byte(c.Args), "--args"
	var err error
	if file, ok := strings.CutPrefix(c.Args, "@"); ok {
		from = a.path(file)
		text, err = os.ReadFile(from)
	} else if c.Args == "-" {
		from = "stdin"
		text, err = io.ReadAll(a.Stdin)
	}
	if err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	var line bytes.Buffer // a message to a server is one line
	if err := json.Compact(&line, text); err != nil {
		return nil, misuse(`mcpproxy tools call `+clean(c.Tool)+` --args '{"name": "value"}'`, "%s is no JSON: %v", from, err)
	}
	if !bytes.HasPrefix(line.Bytes(), []byte("{")) {
		return nil, misuse(`mcpproxy tools call `+clean(c.Tool)+` --args '{"name": "value"}'`, "%s is no JSON object", from)
	}
	return line.Bytes(), nil
}

// printResult prints what a tool answered. A result with isError is a failure.
func (a *app) printResult(item *catalog.Item, result json.RawMessage) error {
	var err error
	switch {
	case a.JSON && a.IsTerminal(Stdout):
		err = a.print(string(cleanJSON(result)) + "\n")
	case a.JSON:
		err = a.print(string(result) + "\n")
	default:
		err = a.printContent(result)
	}
	if err == nil && string(wire.Member(result, "isError")) == "true" {
		err = fmt.Errorf("the tool %s:%s reports a failure", item.Server, item.Name)
	}
	return err
}

// printContent prints the texts of a result, each ended by a newline; a
// structured result where there is no content.
func (a *app) printContent(result json.RawMessage) error {
	var texts, others []string
	for block := range wire.Elements(wire.Member(result, "content")) {
		text, other := contentOf(block)
		if other != "" {
			others = append(others, other)
			continue
		}
		texts = append(texts, text)
	}
	if structured := wire.Member(result, "structuredContent"); len(texts)+len(others) == 0 && !wire.IsNull(structured) {
		texts = append(texts, string(structured))
	}
	var out strings.Builder
	for _, text := range texts {
		if a.IsTerminal(Stdout) {
			text = cleanText(strings.ReplaceAll(text, "\r\n", "\n"))
		}
		out.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			out.WriteByte('\n')
		}
	}
	if err := a.print(out.String()); err != nil {
		return err
	}
	for _, other := range others {
		a.note("not shown: %s; --json prints it", other)
	}
	return nil
}

// contentOf is the text of a content block, or the description of a block that
// has none.
func contentOf(block json.RawMessage) (text, other string) {
	word := func(path ...string) string {
		s, _ := wire.String(wire.Member(block, path...))
		return s
	}
	switch kind := word("type"); kind {
	case "text":
		return word("text"), ""
	case "resource_link":
		return word("uri"), ""
	case "resource":
		if text := wire.Member(block, "resource", "text"); text != nil {
			return word("resource", "text"), ""
		}
		return "", strings.TrimSpace("resource " + word("resource", "uri") + " " + word("resource", "mimeType"))
	case "image", "audio":
		return "", fmt.Sprintf("%s %s, %d bytes of base64", kind, word("mimeType"), len(word("data")))
	default:
		return "", fmt.Sprintf("content of type %q", kind)
	}
}

// unreachable is the error for a server that could not be started.
func unreachable(s upstream.Status) error {
	code := exitUnavailable
	if s.State == upstream.NeedsLogin {
		code = exitLogin
	}
	return &failure{code: code, err: errors.New("server " + s.Name + " cannot be reached: " + s.Reason), hint: "mcpproxy logs " + s.Name}
}
