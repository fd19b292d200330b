// Command mcpproxy stands between MCP clients and many MCP servers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mcpproxy/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Main(ctx, cli.ProcessEnv())
	stop()
	os.Exit(code)
}
