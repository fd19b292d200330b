package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// demoClient is an MCP client of the SDK, connected to one mcpproxy.
type demoClient struct {
	*mcp.ClientSession
	stage    *demoStage
	part     *demoPart
	replied  atomic.Int64  // bytes of the last result
	progress chan string   // one text for each progress notification
	changed  chan struct{} // holds one: the list of tools has changed
}

// connect starts mcpproxy and initializes the session.
func (c *demoClient) connect(ctx context.Context, cmd *exec.Cmd) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpproxy-demo", Version: buildOf().Version}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "oat milk", "urgent": false}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			select {
			case c.progress <- fmt.Sprintf("%g/%g", req.Params.Progress, req.Params.Total):
			default: // more than a step waits for
			}
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
	})
	return c.step("initialize", func() (string, []string, error) {
		transport := &countingTransport{Transport: &mcp.CommandTransport{Command: cmd}, last: &c.replied}
		session, err := client.Connect(ctx, transport, nil)
		if err != nil {
			return "", nil, err
		}
		c.ClientSession = session
		hello := session.InitializeResult()
		return fmt.Sprintf("%s %s, protocol %s", hello.ServerInfo.Name, hello.ServerInfo.Version, hello.ProtocolVersion), nil, nil
	})
}

// leave ends the session: the client closes stdin and waits for mcpproxy.
func (c *demoClient) leave() error {
	return c.step("leave", func() (string, []string, error) {
		if err := c.Close(); err != nil {
			return "", nil, err
		}
		if started, ended := c.stage.starts(); ended != started {
			return "", nil, fmt.Errorf("the server was started %d times and ended %d times", started, ended)
		}
		return "mcpproxy has ended, and the server before it", nil, nil
	})
}

// step does one thing, measures it and adds it to the transcript: its result in
// a line, and more lines where they help.
func (c *demoClient) step(name string, do func() (result string, more []string, err error)) error {
	began := c.stage.a.Now()
	result, more, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.stage.add(c.part, began, demoStep{Step: name, Result: result, More: more})
}

// call calls a tool, decodes its structured result into out and describes it
// with say.
func (c *demoClient) call(ctx context.Context, tool string, args, out any, say func() string) error {
	return c.step("call "+tool, func() (string, []string, error) {
		params := &mcp.CallToolParams{Name: tool, Arguments: args}
		params.SetProgressToken("demo")
		res, err := c.CallTool(ctx, params)
		if err != nil {
			return "", nil, err
		}
		if res.IsError {
			return "", nil, errors.New(textOf(res))
		}
		raw, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(raw, out)
		}
		if err != nil {
			return "", nil, fmt.Errorf("read the result: %w", err)
		}
		return say(), nil, nil
	})
}

// textOf joins the texts of a result.
func textOf(res *mcp.CallToolResult) string {
	var texts []string
	for _, block := range res.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// awaitProgress returns the texts of n progress notifications. They come in
// order, but the answer to the call may overtake the last of them.
func (c *demoClient) awaitProgress(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var texts []string
	for range n {
		select {
		case text := <-c.progress:
			texts = append(texts, text)
		case <-ctx.Done():
			return texts, fmt.Errorf("%d of %d progress notifications came: %w", len(texts), n, ctx.Err())
		}
	}
	return texts, nil
}

// countingTransport remembers the size of the last result that came.
type countingTransport struct {
	mcp.Transport
	last *atomic.Int64
}

// Connect implements mcp.Transport.
func (t *countingTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countingConn{conn, t.last}, nil
}

type countingConn struct {
	mcp.Connection
	last *atomic.Int64
}

// Read implements mcp.Connection.
func (c *countingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if response, ok := m.(*jsonrpc.Response); ok && err == nil {
		c.last.Store(int64(len(response.Result)))
	}
	return m, err
}
