// Package script keeps the scenario and the event log of a stub server for the
// test that tells it what to do.
package script

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/testdata/stub"
)

// lifetime is how long a stub lives if nobody ends it.
const lifetime = 2 * time.Minute

// Script is what one server is told.
type Script struct {
	Name string
	File string // the scenario
	Log  string // the events

	t *testing.T
}

// New writes the scenario of a server, with these members, for example
// `"protocol":"2025-03-26","tools":[...]`; none is a well-behaved server with the
// built-in tools.
func New(t *testing.T, name, members string) *Script {
	t.Helper()
	dir := t.TempDir()
	s := &Script{Name: name, File: filepath.Join(dir, "scenario.json"), Log: filepath.Join(dir, "events"), t: t}
	s.Write(members)
	return s
}

// Write replaces the scenario, for the next start of the server.
func (s *Script) Write(members string) {
	s.t.Helper()
	if members != "" {
		members = "," + members
	}
	text := fmt.Sprintf(`{"name":%q,"log":%q,"lifetime_ms":%d%s}`, s.Name, s.Log, lifetime.Milliseconds(), members)
	if err := os.WriteFile(s.File, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Events are the events of a kind so far, in order.
func (s *Script) Events(kind string) []stub.Event {
	s.t.Helper()
	all, err := stub.ReadLog(s.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	var found []stub.Event
	for _, e := range all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// Texts are the texts of Events.
func (s *Script) Texts(kind string) []string {
	s.t.Helper()
	var texts []string
	for _, e := range s.Events(kind) {
		texts = append(texts, e.Text)
	}
	return texts
}

// Await waits so long for an event that matches.
func (s *Script) Await(limit time.Duration, match func(stub.Event) bool) stub.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	e, err := stub.Await(ctx, s.Log, match)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}
