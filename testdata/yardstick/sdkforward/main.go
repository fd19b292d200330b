// Sdkforward is the proxy that the typed API of the go-sdk suggests: a client of
// one upstream, a server with one AddTool for each of its tools, and nothing
// else. It loses what the typed structs do not hold.
//
//	sdkforward [-prefix up__] COMMAND [ARG...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	prefix := flag.String("prefix", "up__", "what tool names start with on this side")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: sdkforward [-prefix up__] COMMAND [ARG...]")
		os.Exit(2)
	}
	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	cmd.Stderr = os.Stderr
	if err := forward(context.Background(), *prefix, cmd); err != nil {
		fmt.Fprintln(os.Stderr, "sdkforward:", err)
		os.Exit(1)
	}
}

// forward connects to the upstream, lists it, and serves stdin until it ends.
func forward(ctx context.Context, prefix string, cmd *exec.Cmd) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "sdkforward", Version: "1"}, nil)
	upstream, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer upstream.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "sdkforward", Version: "1"}, nil)
	for tool, err := range upstream.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		name := tool.Name
		ours := *tool
		ours.Name = prefix + name
		server.AddTool(&ours, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return upstream.CallTool(ctx, &mcp.CallToolParams{
				Meta: req.Params.Meta, Name: name, Arguments: req.Params.Arguments,
			})
		})
	}
	return server.Run(ctx, &mcp.StdioTransport{})
}
