package main

import (
	"context"
	"fmt"
	"time"
)

// callTools is the number of tools of the upstream that is called.
const callTools = 50

// callLimit bounds one session of calls.
const callLimit = 2 * time.Minute

// callTargets are the upstream, the forwarders and mcpproxy.
func (b *bench) callTargets(ctx context.Context) ([]target, error) {
	targets, err := b.relays(ctx, callTools)
	if err != nil {
		return nil, err
	}
	return b.withProduct(targets, func() (target, error) { return b.stored(ctx, callTools) })
}

// calling runs f, round after round, on a warm session of each of callTargets.
func (b *bench) calling(ctx context.Context, f func(target, *session) error) error {
	targets, err := b.callTargets(ctx)
	if err != nil {
		return err
	}
	return b.callingAll(ctx, targets, f)
}

// callingAll runs f, round after round, on a warm session of every target.
func (b *bench) callingAll(ctx context.Context, targets []target, f func(target, *session) error) error {
	return b.inTurn(ctx, targets, callLimit, func(_ context.Context, t target, s *session) error {
		if err := s.warm(b.size.warm); err != nil {
			return err
		}
		return f(t, s)
	})
}

// warm shakes hands and makes n calls.
func (s *session) warm(n int) error {
	if _, err := s.handshake(); err != nil {
		return err
	}
	for range n {
		if _, err := s.call(0); err != nil {
			return err
		}
	}
	return nil
}

// callParams are the parameters of a call that returns so many kB, or 100 bytes
// for 0.
func (s *session) callParams(kb int) string {
	return fmt.Sprintf(`{"name":"%stool_%04d","arguments":{"query":"quarterly report","kb":%d}}`, s.target.prefix, callTools/2, kb)
}

// call makes one call and returns how long it took.
func (s *session) call(kb int) (time.Duration, error) {
	params := s.callParams(kb)
	began := time.Now()
	line, err := s.request("tools/call", params)
	took := time.Since(began)
	if err == nil {
		err = s.complete(line, kb)
	}
	return took, err
}

// complete checks that an answer is as large as asked for; a shorter one is a
// failure in the guise of a result.
func (s *session) complete(line []byte, kb int) error {
	if len(line) < max(100, kb*1000) {
		return s.failed("call", fmt.Errorf("short answer %.300s", line))
	}
	return nil
}

// callOften makes n calls one after the other and returns how many microseconds
// each took.
func (s *session) callOften(n, kb int) ([]float64, error) {
	took := make([]float64, n)
	for i := range took {
		one, err := s.call(kb)
		if err != nil {
			return nil, err
		}
		took[i] = microseconds(one)
	}
	return took, nil
}

// measureCall takes the times of calls one after the other.
func measureCall(ctx context.Context, b *bench) error {
	var p50, p99 series
	err := b.calling(ctx, func(t target, s *session) error {
		took, err := s.callOften(b.size.calls, 0)
		if err != nil {
			return err
		}
		p50.add(t.name, percentile(took, 0.50))
		p99.add(t.name, percentile(took, 0.99))
		return nil
	})
	b.report.add(figure{Name: "tools/call p50", Unit: "us", Base: "direct", Goal: 2, Of: []string{product}}, &p50)
	b.report.add(figure{Name: "tools/call p99", Unit: "us", Base: "direct", Goal: 2, Of: []string{product}}, &p99)
	return err
}

// measureConcurrency counts calls per second with many under way.
func measureConcurrency(ctx context.Context, b *bench) error {
	var rate series
	err := b.calling(ctx, func(t target, s *session) error {
		perSecond, err := b.rate(s)
		rate.add(t.name, perSecond)
		return err
	})
	name := fmt.Sprintf("calls per second, %d at a time", b.size.outstanding)
	b.report.add(figure{Name: name, Unit: "1/s", Base: "direct", Goal: 0.7, Of: []string{product}, AtLeast: true}, &rate)
	return err
}

// rate is how many calls a second a session makes with many under way.
func (b *bench) rate(s *session) (float64, error) {
	began := time.Now()
	calls, err := s.flood(b.size.outstanding, func(int) bool { return time.Since(began) < b.size.spell })
	return float64(calls) / time.Since(began).Seconds(), err
}

// flood keeps so many calls under way while more says so, given the number of
// answers so far, and returns the number of answers.
func (s *session) flood(outstanding int, more func(answers int) bool) (int, error) {
	params := s.callParams(0)
	for range outstanding {
		if _, err := s.send("tools/call", params); err != nil {
			return 0, s.failed("call", err)
		}
	}
	answers := 0
	for underway := outstanding; underway > 0; {
		_, line, err := s.next()
		if err != nil {
			return answers, s.failed("call", err)
		}
		if err := s.complete(line, 0); err != nil {
			return answers, err
		}
		answers++
		if !more(answers) {
			underway--
		} else if _, err := s.send("tools/call", params); err != nil {
			return answers, s.failed("call", err)
		}
	}
	return answers, nil
}

// measureLarge takes the times of calls with large results.
func measureLarge(ctx context.Context, b *bench) error {
	var p50 series
	err := b.calling(ctx, func(t target, s *session) error {
		took, err := s.callOften(b.size.large, b.size.largeKB)
		if err != nil {
			return err
		}
		p50.add(t.name, percentile(took, 0.50))
		return nil
	})
	name := fmt.Sprintf("tools/call with %d kB, p50", b.size.largeKB)
	b.report.add(figure{Name: name, Unit: "us", Base: "direct", Goal: 1.3, Of: []string{product}}, &p50)
	return err
}
