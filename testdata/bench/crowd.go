package main

import (
	"context"
	"fmt"
	"slices"
)

// measureCrowd takes the time from the start of many instances with one data
// folder to the last full tools/list, against as many programs that link the
// same as mcpproxy and only say hello. What it takes to move that many lists
// shows in the yardsticks that list. The first list of each is to be complete,
// and none is to say a word on stderr.
func measureCrowd(ctx context.Context, b *bench) error {
	n := b.size.tools
	path, err := b.yardstick(ctx, "linked")
	if err != nil {
		return err
	}
	targets := []target{{name: "linked", argv: []string{path}}}
	for _, name := range []string{"responder", "rawlist"} {
		t, err := b.storing(ctx, name, n)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	targets, err = b.withProduct(targets, func() (target, error) {
		t, err := b.storedAs(ctx, n, true)
		if err != nil {
			return t, err
		}
		return t, b.fill(ctx, t, n) // once more: the reply is kept at the second start
	})
	if err != nil {
		return err
	}
	var took series
	for range b.rounds {
		for _, t := range targets {
			if err := b.crowd(ctx, t, n, &took); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("%d started together, to the last list of %d tools (linked: to initialize)", b.size.crowd, n)
	b.report.add(figure{Name: name, Unit: "ms", Base: "linked", Goal: 1.3, Of: []string{product}}, &took)
	return nil
}

// crowd starts a target many times together and adds the time until all are
// where they should be. What has no tools is there after the handshake.
func (b *bench) crowd(ctx context.Context, t target, n int, took *series) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	t.silent = true
	g, all, err := b.gather(ctx, slices.Repeat([]target{t}, b.size.crowd), func(_ context.Context, s *session) error {
		if _, err := s.handshake(); err != nil || t.name == "linked" {
			return err
		}
		got, err := s.countTools(everyTool)
		if err == nil && got != n {
			err = s.failed("list tools of", fmt.Errorf("the first list has %d of %d", got, n))
		}
		return err
	})
	if err != nil {
		return err
	}
	took.add(t.name, milliseconds(all))
	if err := g.dismiss(); err != nil || !t.hub {
		return err
	}
	return b.awaitGone(ctx)
}
