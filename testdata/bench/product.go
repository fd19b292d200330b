package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// product is the name of mcpproxy in tables.
const product = "mcpproxy"

// hubIdle is the hub_idle_timeout of all that is measured.
const hubIdle = time.Second

// server is an entry of mcpproxy's configuration.
type server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// configuration is what mcpproxy is started with. With private servers
// everything measured is one process and its children.
type configuration struct {
	MCPServers     map[string]server `json:"mcpServers"`
	ShareUpstreams bool              `json:"share_upstreams"`
	HubIdleTimeout string            `json:"hub_idle_timeout"`
}

// configure writes a configuration file and returns its path.
func (b *bench) configure(name string, servers map[string]server, shared bool) (string, error) {
	text, err := json.MarshalIndent(configuration{servers, shared, hubIdle.String()}, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, name+".json")
	return file, os.WriteFile(file, text, 0o600)
}

// onData is mcpproxy with a configuration file and a data folder; shared says
// what the file does.
func (b *bench) onData(file, data string, shared bool) target {
	return target{name: product, prefix: prefix, hub: shared,
		argv: []string{b.product, "--config", file, "--data-dir", data, "--mode", "direct"}}
}

// stored is mcpproxy in front of one upstream with n tools, all of which are in
// its store already.
func (b *bench) stored(ctx context.Context, n int) (target, error) {
	return b.storedAs(ctx, n, b.shared)
}

// storedAs is stored with a server that is shared or private.
func (b *bench) storedAs(ctx context.Context, n int, shared bool) (target, error) {
	up, err := b.direct(ctx, n)
	if err != nil {
		return target{}, err
	}
	name := fmt.Sprintf("stored-%d", n)
	if shared {
		name += "-shared"
	}
	return b.filled(ctx, name, map[string]server{"up": {Command: up.argv[0], Args: up.argv[1:]}}, n, shared)
}

// filled is mcpproxy in front of servers which together have n tools, all of
// which are in its store already. What has the same name is the same.
func (b *bench) filled(ctx context.Context, name string, servers map[string]server, n int, shared bool) (target, error) {
	file, err := b.configure(name, servers, shared)
	if err != nil {
		return target{}, err
	}
	data := filepath.Join(b.dir, name+"-data")
	t := b.onData(file, data, shared)
	if _, err := os.Stat(data); err == nil {
		return t, nil // of an earlier measurement
	}
	return t, b.fill(ctx, t, n)
}

// fill starts mcpproxy until it lists n tools, so that the next start has them
// in its store.
func (b *bench) fill(ctx context.Context, t target, n int) error {
	err := b.with(ctx, t, time.Minute, func(ctx context.Context, s *session) error {
		if _, err := s.handshake(); err != nil {
			return err
		}
		_, err := s.awaitTools(ctx, n, everyTool)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	return nil
}

// withProduct adds mcpproxy, made by make, to the targets, if it is measured.
func (b *bench) withProduct(targets []target, make func() (target, error)) ([]target, error) {
	if b.product == "" {
		return targets, nil
	}
	t, err := make()
	return append(targets, t), err
}
