// Rawlist links what mcpproxy links and answers tools/list with the bytes of a
// file, through a go-sdk server that knows no tools. It is the shortest way to a
// long list that a program of this size has.
//
//	rawlist FILE
//
// FILE holds the raw result of tools/list.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/cli"
)

// storedList is a result of tools/list that marshals to bytes made before.
type storedList struct {
	mcp.ListToolsResult
	raw json.RawMessage
}

// MarshalJSON returns the stored bytes.
func (l *storedList) MarshalJSON() ([]byte, error) { return l.raw, nil }

func main() {
	if len(os.Args) != 2 {
		// Naming cli.Main keeps the linker from dropping what it reaches.
		fmt.Fprintf(os.Stderr, "usage: rawlist FILE (holds %T)\n", cli.Main)
		os.Exit(2)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "rawlist", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/list" {
				return next(ctx, method, req)
			}
			raw, err := os.ReadFile(os.Args[1])
			if err != nil {
				return nil, err
			}
			return &storedList{raw: raw}, nil
		}
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "rawlist:", err)
		os.Exit(1)
	}
}
