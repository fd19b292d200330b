// Linked links what mcpproxy links and serves initialize with a bare go-sdk
// server over stdio, opening nothing. The start of mcpproxy is measured against
// it: what mcpproxy takes longer, it does itself.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/cli"
)

func main() {
	if len(os.Args) > 1 {
		// A blank import would let the linker drop everything but package
		// initialisation; a use that never happens keeps the whole program.
		fmt.Fprintf(os.Stderr, "usage: linked (takes no arguments; holds %T)\n", cli.Main)
		os.Exit(2)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "linked", Version: "1"}, nil)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "linked:", err)
		os.Exit(1)
	}
}
