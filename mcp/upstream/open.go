package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
)

// open connects and does the handshake.
func (s *server) open(ctx context.Context) (*conn, *hello, error) {
	resolved, err := s.resolve()
	if err != nil {
		return nil, nil, err
	}
	if resolved.Isolation != nil && resolved.Isolation.Enabled {
		return nil, nil, errIsolation
	}
	s.log.mask(resolved.Secrets)
	if s.shared && s.set.options.Hub != nil && portable(resolved) {
		s.alone.Store(false)
		s.mu.Lock()
		s.viaHub = true
		s.mu.Unlock()
		if c, h, err := s.openShared(ctx, resolved); c != nil || err != nil {
			return c, h, err
		}
	}
	if s.shared {
		// It is this client's own after all.
		s.alone.Store(true)
		s.mu.Lock()
		s.viaHub = false
		s.mu.Unlock()
		if resolved, err = s.resolve(); err != nil {
			return nil, nil, err
		}
	}
	if resolved.URL != "" {
		return s.openHTTP(ctx, resolved)
	}
	leave, err := s.set.cold.enter(ctx, resolved.Command, resolved.Args)
	if err != nil {
		return nil, nil, err
	}
	c, h, err := s.openChild(ctx, resolved)
	leave(err == nil)
	return c, h, err
}

func (s *server) openHTTP(ctx context.Context, resolved config.Resolved) (*conn, *hello, error) {
	c := newConn(s.set.ctx, s.name, s.owner(), s)
	var err error
	c.link, err = dialHTTP(ctx, httpOptions{
		URL: resolved.URL, Protocol: s.spec().Protocol, Headers: resolved.Headers,
		Environ: s.set.options.Env.Environ, Secrets: resolved.Secrets, MaxFrame: s.set.options.MaxFrame,
		Report: func(text string) { s.log.line("http", []byte(text)) },
	}, c.receive)
	return s.greeted(ctx, c, err)
}

func (s *server) openChild(ctx context.Context, resolved config.Resolved) (*conn, *hello, error) {
	c := newConn(s.set.ctx, s.name, s.owner(), s)
	var err error
	c.link, err = startStdio(stdioOptions{
		Command: resolved.Command, Args: resolved.Args, Env: resolved.Env, Dir: resolved.Dir,
		MaxFrame: s.set.options.MaxFrame, Log: s.log,
		Spawner: s.set.spawner, Guard: s.set.guard, Garbage: c.garbage,
	}, c.receive)
	if l, ok := c.link.(*stdioLink); ok && err == nil {
		// Before it has answered: whoever comes after a hub that was killed has to
		// know of it.
		s.recordProcess(l.cmd.Process.Pid)
	}
	defer s.set.guard.settled()
	return s.greeted(ctx, c, err)
}

// greeted is the end of open: the handshake, or the end of the connection.
// failed tells that there is no link.
func (s *server) greeted(ctx context.Context, c *conn, failed error) (*conn, *hello, error) {
	if failed != nil {
		c.cancel()
		return nil, nil, failed
	}
	h, err := s.handshake(ctx, c)
	if err != nil {
		closeErr := c.close(context.WithoutCancel(ctx))
		return nil, nil, errors.Join(err, closeErr)
	}
	return c, h, nil
}

// resolve finds the values of all references.
func (s *server) resolve() (config.Resolved, error) {
	if s.hosted != nil {
		return s.hosted.resolved(), nil
	}
	if s.shared && !s.alone.Load() {
		return s.spec().ResolveShared(s.set.options.Env)
	}
	return s.spec().Resolve(s.set.options.Env)
}

// owner is the session that all which the server says of itself goes to; a
// hosted server has several.
func (s *server) owner() *wire.Session {
	if s.hosted != nil {
		return nil
	}
	return s.set.options.Session
}

// announced are the capabilities that the server sees: the client's, and of
// those for a shared one only what can be brought back to the client whose call
// caused it.
func (s *server) announced() json.RawMessage {
	if s.hosted != nil {
		return s.hosted.Announced
	}
	none := json.RawMessage("{}")
	if s.set.options.Session == nil {
		return none
	}
	theirs := s.set.options.Session.Client().Capabilities
	if len(theirs) == 0 || theirs[0] != '{' {
		return none
	}
	if !s.shared || s.alone.Load() {
		return theirs
	}
	for _, capability := range []string{"sampling", "elicitation"} {
		if value := wire.Member(theirs, capability); !wire.IsNull(value) {
			none = wire.SetMember(none, value, capability)
		}
	}
	return none
}

func (s *server) audience() string { return audience(s.announced()) }

func (s *server) handshake(ctx context.Context, c *conn) (*hello, error) {
	h, err := c.initialize(ctx, s.set.options.Version, s.announced())
	if err == nil {
		return h, nil
	}
	if errors.Is(err, errDied) && !c.alive() {
		return nil, c.link.Err()
	}
	if refused := new(wire.Error); errors.As(err, &refused) {
		if s.probeModern(ctx, c) {
			s.mu.Lock()
			s.modern = true
			s.mu.Unlock()
			return nil, errModern
		}
		return nil, fmt.Errorf("initialize: %w", refused)
	}
	return nil, s.detailed(err)
}

// detailed adds what the server wrote to stderr to an error that has no other
// explanation.
func (s *server) detailed(err error) error {
	if tail := s.log.tail(); tail != "" {
		return fmt.Errorf("%w; last on its stderr: %s", err, tail)
	}
	return err
}

// eraProbe is how long an upstream that refused initialize may take to answer
// server/discover.
const eraProbe = 2 * time.Second

// probeModern asks whether an upstream that refused initialize speaks the
// revision that has no initialize.
func (s *server) probeModern(ctx context.Context, c *conn) bool {
	ctx, cancel := context.WithTimeout(ctx, eraProbe)
	defer cancel()
	result, err := c.request(ctx, nil, "server/discover", json.RawMessage(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcpproxy","version":"probe"}}}`), 0)
	return err == nil && wire.Member(result, "supportedVersions") != nil
}
