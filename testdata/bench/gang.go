package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// gang are sessions that run at the same time.
type gang struct {
	sessions []*session // nil where the target could not be started
	cancel   context.CancelFunc
}

// gather starts all targets together and runs f on the session of each. It
// returns the time from the first start to the return of the last f. After an
// error nothing runs any more; otherwise the gang is to be dismissed or killed.
func (b *bench) gather(ctx context.Context, targets []target, f func(context.Context, *session) error) (*gang, time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	g := &gang{make([]*session, len(targets)), cancel}
	var first error
	var once sync.Once
	fail := func(err error) {
		once.Do(func() {
			if ctx.Err() != nil { // then the end of the stream was our doing
				err = fmt.Errorf("%w (%w)", err, ctx.Err())
			}
			first = err
			cancel() // so that the others do not go on for nothing
		})
	}
	began := time.Now()
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			s, err := b.open(ctx, t)
			if err != nil {
				fail(err)
				return
			}
			g.sessions[i] = s
			if err := f(ctx, s); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	if first != nil {
		g.kill()
	}
	return g, took, first
}

// dismiss ends all sessions at once, as the end of their clients would, and
// returns one of the errors.
func (g *gang) dismiss() error {
	defer g.cancel()
	errs := make([]error, len(g.sessions))
	var all sync.WaitGroup
	for i, s := range g.sessions {
		all.Go(func() { errs[i] = s.close() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// kill ends all sessions, after an error.
func (g *gang) kill() {
	g.cancel()
	for _, s := range g.sessions {
		if s != nil {
			s.kill()
		}
	}
}

// visit is what a client does that uses several servers.
type visit struct {
	tools     int      // wait until so many are listed
	calls     []string // then call these tools
	arguments string   // with these
}

// make shakes hands, lists, and makes all calls at once.
func (v visit) make(ctx context.Context, s *session) error {
	if _, err := s.handshake(); err != nil {
		return err
	}
	// Many clients that ask more often would slow down what they wait for.
	if _, err := s.awaitToolsEvery(ctx, 50*time.Millisecond, v.tools, everyTool); err != nil {
		return err
	}
	for _, name := range v.calls {
		if _, err := s.send("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, v.arguments)); err != nil {
			return s.failed("call", err)
		}
	}
	for range v.calls {
		_, line, err := s.next()
		if err == nil && (!bytes.Contains(line, []byte(`"content":[`)) || bytes.Contains(line, []byte(`"isError":true`))) {
			err = fmt.Errorf("answered with %.300s", line)
		}
		if err != nil {
			return s.failed("call", err)
		}
	}
	return nil
}
