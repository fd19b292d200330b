package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// startLimit bounds one start, with everything that is asked of it.
const startLimit = time.Minute

// measureStart takes the time from process start to the answer to initialize,
// of a bare responder, of a program that links the same as mcpproxy, and of
// mcpproxy with tools in its store.
func measureStart(ctx context.Context, b *bench) error {
	bare, err := b.storing(ctx, "responder", b.size.tools)
	if err != nil {
		return err
	}
	path, err := b.yardstick(ctx, "linked")
	if err != nil {
		return err
	}
	linked := target{name: "linked", argv: []string{path}}
	targets, err := b.withProduct([]target{bare, linked}, func() (target, error) { return b.stored(ctx, b.size.tools) })
	if err != nil {
		return err
	}
	var took series
	err = b.inTurn(ctx, targets, startLimit, func(_ context.Context, t target, s *session) error {
		init, err := s.handshake()
		took.add(t.name, milliseconds(init))
		return err
	})
	b.report.add(figure{Name: "start to initialize", Unit: "ms", Base: "linked", Goal: 1.25, Of: []string{product}}, &took)
	return err
}

// measureList takes the time from process start to the complete tools/list, of
// programs that have it stored and of programs that ask an upstream.
func measureList(ctx context.Context, b *bench) error {
	n := b.size.tools
	var targets []target
	for _, name := range []string{"responder", "rawlist"} {
		t, err := b.storing(ctx, name, n)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	live, err := b.relays(ctx, n)
	if err != nil {
		return err
	}
	targets, err = b.withProduct(append(targets, live...), func() (target, error) { return b.stored(ctx, n) })
	if err != nil {
		return err
	}
	var took series
	err = b.inTurn(ctx, targets, startLimit, func(ctx context.Context, t target, s *session) error {
		if _, err := s.handshake(); err != nil {
			return err
		}
		list, err := s.awaitTools(ctx, n, everyTool)
		took.add(t.name, milliseconds(list))
		return err
	})
	b.report.add(figure{Name: "start to full tools/list", Unit: "ms", Base: "rawlist", Goal: 1.5, Of: []string{product}}, &took)
	return err
}

// relays are the upstream with n tools, and the two forwarders in front of it.
func (b *bench) relays(ctx context.Context, n int) ([]target, error) {
	direct, err := b.direct(ctx, n)
	if err != nil {
		return nil, err
	}
	forward, err := b.through(ctx, "forward", n)
	if err != nil {
		return nil, err
	}
	typed, err := b.through(ctx, "sdkforward", n)
	return []target{direct, forward, typed}, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// toolMark stands once in every tool of the upstream.
const toolMark = `"inputSchema":`

// everyTool counts the tools in an answer to tools/list without decoding it.
func everyTool(line []byte) int { return bytes.Count(line, []byte(toolMark)) }

// countTools asks for all pages of tools/list and adds up what count makes of
// them.
func (s *session) countTools(count func(line []byte) int) (int, error) {
	total, params := 0, ""
	for {
		line, err := s.request("tools/list", params)
		if err != nil {
			return 0, err
		}
		total += count(line)
		if !bytes.Contains(line, []byte(`"nextCursor":`)) {
			return total, nil
		}
		var page struct {
			Result struct{ NextCursor json.RawMessage }
		}
		if err := json.Unmarshal(line, &page); err != nil {
			return 0, err
		}
		params = fmt.Sprintf(`{"cursor":%s}`, page.Result.NextCursor)
	}
}

// awaitTools lists every 5 ms until there are n tools, and returns the time from
// the start of the process to the complete list.
func (s *session) awaitTools(ctx context.Context, n int, count func(line []byte) int) (time.Duration, error) {
	return s.awaitToolsEvery(ctx, 5*time.Millisecond, n, count)
}

// awaitToolsEvery is awaitTools with another pause between two lists.
func (s *session) awaitToolsEvery(ctx context.Context, pause time.Duration, n int, count func(line []byte) int) (time.Duration, error) {
	for {
		got, err := s.countTools(count)
		if err != nil {
			return 0, err
		}
		if got >= n {
			return time.Since(s.began), nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, s.failed("list tools of", fmt.Errorf("%d of %d: %w", got, n, ctx.Err()))
		}
	}
}
