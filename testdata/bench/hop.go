package main

import (
	"context"
	"fmt"
	"slices"
)

// sharing is the name of mcpproxy with shared servers where product is that with
// private ones.
const sharing = product + " shared"

// measureHop takes the times of calls through the hub, next to calls to the
// upstream itself and to a private one.
func measureHop(ctx context.Context, b *bench) error {
	if b.product == "" {
		return nil // no yardstick has a hub
	}
	direct, err := b.direct(ctx, callTools)
	if err != nil {
		return err
	}
	private, err := b.storedAs(ctx, callTools, false)
	if err != nil {
		return err
	}
	shared, err := b.storedAs(ctx, callTools, true)
	if err != nil {
		return err
	}
	shared.name = sharing
	once, err := b.through(ctx, "forward", callTools)
	if err != nil {
		return err
	}
	// The way through the hub has one process more, as has this.
	twice := once
	twice.name = "forward forward"
	twice.argv = slices.Concat(once.argv[:3], once.argv[:2], []string{""}, once.argv[3:])
	var p50, p99, large, rate series
	err = b.callingAll(ctx, []target{direct, once, private, twice, shared}, func(t target, s *session) error {
		small, err := s.callOften(b.size.calls, 0)
		if err != nil {
			return err
		}
		big, err := s.callOften(b.size.large, b.size.largeKB)
		if err != nil {
			return err
		}
		perSecond, err := b.rate(s)
		if err != nil {
			return err
		}
		p50.add(t.name, percentile(small, 0.50))
		p99.add(t.name, percentile(small, 0.99))
		large.add(t.name, percentile(big, 0.50))
		rate.add(t.name, perSecond)
		return nil
	})
	if err != nil {
		return err
	}
	b.report.add(figure{Name: "tools/call p50 through the hub", Unit: "us", Base: "direct", Goal: 2.6, Of: []string{sharing}}, &p50)
	b.report.add(figure{Name: "tools/call p50 through the hub, to private", Unit: "us", Base: product, Goal: 1.4, Of: []string{sharing}}, &p50)
	b.report.add(figure{Name: "tools/call p99 through the hub", Unit: "us", Base: "direct"}, &p99)
	b.report.add(figure{Name: "tools/call p99 through the hub, to private", Unit: "us", Base: product}, &p99)
	b.report.add(figure{Name: fmt.Sprintf("tools/call with %d kB through the hub, p50", b.size.largeKB), Unit: "us", Base: product}, &large)
	b.report.add(figure{Name: fmt.Sprintf("calls per second through the hub, %d at a time", b.size.outstanding), Unit: "1/s", Base: product}, &rate)
	return nil
}
