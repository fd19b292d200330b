package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/router"
	"mcpproxy/mcp/wire"
)

const (
	// drain is how long calls under way may go on after the client closed
	// stdin. Together with the 4 s in which servers are stopped it stays within
	// the 5 s that clients give a server to leave.
	drain = time.Second

	// The SDK allocates 32 KiB for every value it decodes, so collecting less
	// often pays; the limit keeps a burst of large results in bounds.
	gcPercent   = 400
	memoryLimit = 512 << 20
)

// serveClient serves the client on stdin and stdout until it leaves.
func (a *app) serveClient(ctx context.Context, cfg *config.Config, mode string, who holder) error {
	if cfg.NestedUnder(a.Environ) {
		return hinted("give one of the two another --config", "recursion: this mcpproxy was started by an mcpproxy with the same configuration %s", cfg.Path)
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	// A client that is gone is noticed by a failed write, not by dying of it:
	// servers have to be stopped first.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	if stdout, ok := a.Stdout.(*os.File); ok {
		wire.Widen(stdout)
	}
	var c *core
	greeted := make(chan struct{})
	conn := wire.NewConn(a.Stdin, a.Stdout, wire.ConnOptions{
		Drain:   drain,
		Garbage: a.clientGarbage,
		Greeted: func() { c.set.Load(); close(greeted) },
	})
	c = a.compose(ctx, cfg, audience{conn.Session(), mode, who})
	defer c.close(ctx)
	caller, err := c.who.Caller(ctx)
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.router.Run(runCtx, conn.Session()) })
	beside.Go(func() { a.attend(runCtx, c, conn.Session(), greeted) })
	beside.Go(func() { a.review(runCtx, c, greeted) })
	beside.Go(func() { a.reload(runCtx, c) })
	defer beside.Wait()
	defer stop()
	return conn.Serve(runCtx, c.router, lifecycleServer(c, caller))
}

// lifecycleServer answers initialize, ping and the like; all else is routed
// before it gets there.
func lifecycleServer(c *core, caller auth.Caller) *mcp.Server {
	cfg := c.cfg.Load()
	briefing := router.Briefing{Mode: c.mode, Operator: cfg.Instructions, Profile: caller.Profile, Tier: c.gate.MaxTier(caller)}
	if cfg.AdvertiseUpstreamServers {
		briefing.Servers = slices.DeleteFunc(c.set.Names(), func(name string) bool { return !c.gate.Reaches(caller, name) })
	}
	if c.mode == modeRetrieve && cfg.DisableManagement {
		briefing.Off = []string{"upstream_servers", "quarantine_security"}
	}
	return mcp.NewServer(
		&mcp.Implementation{Name: "mcpproxy", Title: "mcpproxy", Version: buildOf().Version},
		&mcp.ServerOptions{
			Instructions:              router.Instructions(briefing),
			Logger:                    slog.New(slog.DiscardHandler),
			SupportedProtocolVersions: protocolVersions(),
			Capabilities: &mcp.ServerCapabilities{
				Tools:       &mcp.ToolCapabilities{ListChanged: true},
				Prompts:     &mcp.PromptCapabilities{ListChanged: true},
				Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
				Completions: &mcp.CompletionCapabilities{},
				//lint:ignore SA1019 clients of the protocol versions above are told so
				Logging: &mcp.LoggingCapabilities{},
			},
		})
}

// protocolVersions are the versions of MCP that clients are offered, the newest
// first.
func protocolVersions() []string {
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// clientGarbage tells of a line of the client that is no message.
func (a *app) clientGarbage(g wire.Garbage) {
	if bytes.HasPrefix(bytes.ToLower(g.Line), []byte("content-length:")) {
		a.warn("the client sends Content-Length headers; newline-delimited JSON is expected: one message per line, without headers")
		return
	}
	a.warn("input that is no message: " + g.Why.Error())
}
