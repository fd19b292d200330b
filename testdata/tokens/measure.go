package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// entriesAsked is how many compact entries a search of a session asks for.
const entriesAsked = 10

// modes are those whose surface is measured, with what the configuration says.
var modes = []struct{ name, mode, members string }{
	{"direct", "direct", ``},
	{"direct, deferred", "direct", `"direct_tool_response_mode":"deferred",`},
	{"retrieve_tools", "retrieve_tools", ``},
	{"retrieve_tools, management on", "retrieve_tools", `"disable_management":false,`},
	{"code_execution", "code_execution", ``},
	{"proxy", "proxy", ``},
}

// surface is what a mode costs before anything is asked.
type surface struct {
	mode                string
	tools               int
	tokens, instruction int
}

// figures are what was measured of one set of tools.
type figures struct {
	set      toolSet
	surfaces []surface
	// absent are the modes that the program does not have.
	absent []string
	// full and compact are answers of the default limit, ten those of ten compact
	// entries, entries their member "tools", schema the reads of one definition.
	full, compact, ten, entries, schema sample
}

func (f figures) surface(mode string) surface {
	for _, s := range f.surfaces {
		if s.mode == mode {
			return s
		}
	}
	return surface{}
}

// measurement is the program with one set of tools behind it.
type measurement struct {
	dir, product, self string
	count              counter
	set                toolSet
}

func (m *measurement) run(ctx context.Context, queries []string) (figures, error) {
	f := figures{set: m.set}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return f, err
	}
	if err := m.fill(ctx); err != nil {
		return f, fmt.Errorf("fill the store: %w", err)
	}
	for _, mode := range modes {
		s, err := m.surface(ctx, mode.name, mode.mode, mode.members)
		if err != nil {
			f.absent = append(f.absent, mode.name)
			continue
		}
		f.surfaces = append(f.surfaces, s)
	}
	return f, m.search(ctx, &f, queries)
}

// configure writes a configuration with a stub for each server.
func (m *measurement) configure(members string) (string, error) {
	servers := map[string]any{}
	for i, server := range m.set.servers {
		scenario := filepath.Join(m.dir, fmt.Sprintf("%d.json", i))
		text, err := json.Marshal(map[string]any{
			"name": server.name, "instructions": server.instructions, "tools": server.tools,
			"lifetime_ms": limit.Milliseconds(),
		})
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(scenario, text, 0o600); err != nil {
			return "", err
		}
		servers[server.name] = map[string]any{"command": m.self, "args": []string{"stub", scenario}}
	}
	text, err := json.Marshal(servers)
	if err != nil {
		return "", err
	}
	file := filepath.Join(m.dir, "config.json")
	text = fmt.Appendf(nil, `{%s"share_upstreams":false,"mcpServers":%s}`, members, text)
	return file, os.WriteFile(file, text, 0o600)
}

func (m *measurement) open(ctx context.Context, mode, members string) (*session, error) {
	file, err := m.configure(members)
	if err != nil {
		return nil, err
	}
	return open(ctx, m.dir, m.product, "--config", file, "--data-dir", filepath.Join(m.dir, "data"), "--mode", mode)
}

// with runs do in a session and ends the session.
func (m *measurement) with(ctx context.Context, mode, members string, do func(*session) error) error {
	s, err := m.open(ctx, mode, members)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.close())
}

// list returns the result of tools/list and how many tools it has.
func list(s *session) (json.RawMessage, int, error) {
	raw, err := s.request("tools/list", "{}")
	if err != nil {
		return nil, 0, err
	}
	var result struct{ Tools []json.RawMessage }
	err = json.Unmarshal(raw, &result)
	return raw, len(result.Tools), err
}

// fill lets the program find all tools, so that the next start has them in its
// store.
func (m *measurement) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return m.with(ctx, "direct", "", func(s *session) error {
		for {
			_, n, err := list(s)
			if err != nil || n == m.set.tools {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%d of %d tools are listed: %w", n, m.set.tools, ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

func (m *measurement) surface(ctx context.Context, name, mode, members string) (surface, error) {
	out := surface{mode: name}
	err := m.with(ctx, mode, members, func(s *session) error {
		raw, n, err := list(s)
		if err != nil {
			return err
		}
		out.tools = n
		if out.tokens, err = m.count.tokens(string(raw)); err != nil {
			return err
		}
		out.instruction, err = m.count.tokens(s.hello.Instructions)
		return err
	})
	return out, err
}

// search asks all queries.
func (m *measurement) search(ctx context.Context, f *figures, queries []string) error {
	return m.with(ctx, "retrieve_tools", "", func(s *session) error {
		for _, query := range queries {
			if err := m.ask(s, f, query); err != nil {
				return fmt.Errorf("%q: %w", query, err)
			}
		}
		return nil
	})
}

func (m *measurement) ask(s *session, f *figures, query string) error {
	for _, kind := range []struct {
		arguments map[string]any
		into      *sample
	}{
		{map[string]any{"query": query, "detail": "full"}, &f.full},
		{map[string]any{"query": query, "detail": "compact"}, &f.compact},
	} {
		text, err := s.call("retrieve_tools", kind.arguments)
		if err != nil {
			return err
		}
		if err := m.add(kind.into, text); err != nil {
			return err
		}
	}
	text, err := s.call("retrieve_tools", map[string]any{"query": query, "detail": "compact", "limit": entriesAsked})
	if err != nil {
		return err
	}
	var answer struct{ Tools json.RawMessage }
	var entries []struct{ ID string }
	if err := errors.Join(json.Unmarshal([]byte(text), &answer), json.Unmarshal(answer.Tools, &entries)); err != nil {
		return err
	}
	if err := m.add(&f.ten, text); err != nil || len(entries) == 0 {
		return err
	}
	if len(entries) == entriesAsked {
		if err := m.add(&f.entries, string(answer.Tools)); err != nil {
			return err
		}
	}
	text, err = s.call("describe_tool", map[string]any{"tool_ids": []string{entries[0].ID}})
	if err != nil {
		return err
	}
	return m.add(&f.schema, text)
}

func (m *measurement) add(to *sample, text string) error {
	n, err := m.count.tokens(text)
	*to = append(*to, n)
	return err
}
