package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// prefix is what mcpproxy and the forwarders put in front of the tools of the
// server "up".
const prefix = "up__"

// yardstick builds a program of testdata/yardstick, once, and returns its path.
func (b *bench) yardstick(ctx context.Context, name string) (string, error) {
	path := filepath.Join(b.dir, "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "mcpproxy/testdata/yardstick/"+name)
	cmd.WaitDelay = 2 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// direct is the upstream itself, with n tools.
func (b *bench) direct(ctx context.Context, n int) (target, error) {
	path, err := b.yardstick(ctx, "upstream")
	return target{name: "direct", argv: []string{path, "-n", strconv.Itoa(n)}}, err
}

// through is a forwarder in front of the upstream.
func (b *bench) through(ctx context.Context, forwarder string, n int) (target, error) {
	up, err := b.direct(ctx, n)
	if err != nil {
		return target{}, err
	}
	path, err := b.yardstick(ctx, forwarder)
	return target{name: forwarder, argv: append([]string{path, "-prefix", prefix}, up.argv...), prefix: prefix}, err
}

// storing is a yardstick that lists from a file, given the tools of the
// upstream.
func (b *bench) storing(ctx context.Context, name string, n int) (target, error) {
	path, err := b.yardstick(ctx, name)
	if err != nil {
		return target{}, err
	}
	file := filepath.Join(b.dir, fmt.Sprintf("tools-%d.json", n))
	if _, err := os.Stat(file); err != nil {
		if err := b.saveList(ctx, file, n); err != nil {
			return target{}, err
		}
	}
	return target{name: name, argv: []string{path, file}}, nil
}

// saveList writes the upstream's result of tools/list to a file.
func (b *bench) saveList(ctx context.Context, file string, n int) error {
	up, err := b.direct(ctx, n)
	if err != nil {
		return err
	}
	return b.with(ctx, up, time.Minute, func(ctx context.Context, s *session) error {
		if _, err := s.handshake(); err != nil {
			return err
		}
		line, err := s.request("tools/list", "")
		if err != nil {
			return err
		}
		var m struct{ Result json.RawMessage }
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		return os.WriteFile(file, m.Result, 0o600)
	})
}

// with runs f on a session and ends it and all that it started. An error of f
// wins over one of the end.
func (b *bench) with(ctx context.Context, t target, limit time.Duration, f func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := b.open(ctx, t)
	if err != nil {
		return err
	}
	if err := f(ctx, s); err != nil {
		if ctx.Err() != nil { // then the end of the stream was our doing
			err = fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		s.kill()
		return err
	}
	if err := s.close(); err != nil || !t.hub {
		return err
	}
	return b.awaitGone(ctx)
}

// inTurn runs f on every target, round after round.
func (b *bench) inTurn(ctx context.Context, targets []target, limit time.Duration, f func(context.Context, target, *session) error) error {
	for range b.rounds {
		for _, t := range targets {
			err := b.with(ctx, t, limit, func(ctx context.Context, s *session) error { return f(ctx, t, s) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}
