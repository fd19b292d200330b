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

// server is an entry of mcpproxy's configuration.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// configuration is what mcpproxy is started with: private servers, so that
// everything measured is one process and its children.
type configuration struct {
	MCPServers     map[string]server `json:"mcpServers"`
	ShareUpstreams bool              `json:"share_upstreams"`
}

// configure writes a configuration file and returns its path.
func (b *bench) configure(name string, servers map[string]server) (string, error) {
	text, err := json.MarshalIndent(configuration{MCPServers: servers}, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, name+".json")
	return file, os.WriteFile(file, text, 0o600)
}

// onData is mcpproxy with a configuration file and a data folder.
func (b *bench) onData(file, data string) target {
	return target{name: product, prefix: prefix,
		argv: []string{b.product, "--config", file, "--data-dir", data, "--mode", "direct"}}
}

// stored is mcpproxy in front of one upstream with n tools, all of which are in
// its store already.
func (b *bench) stored(ctx context.Context, n int) (target, error) {
	up, err := b.direct(ctx, n)
	if err != nil {
		return target{}, err
	}
	name := fmt.Sprintf("stored-%d", n)
	file, err := b.configure(name, map[string]server{"up": {up.argv[0], up.argv[1:]}})
	if err != nil {
		return target{}, err
	}
	data := filepath.Join(b.dir, name+"-data")
	if _, err := os.Stat(data); err == nil {
		return b.onData(file, data), nil // of an earlier measurement
	}
	t := b.onData(file, data)
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
