package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcpproxy/testdata/stub"
)

// upstreamStub is a scripted server in the configuration of a test; see
// testdata/stub for what can be told. It runs as the command mcpstub, which is
// this test binary again.
type upstreamStub struct {
	t    *testing.T
	name string
	log  string // its event log
	file string // its scenario
	more string // more members of its configuration entry, with a comma in front
}

// newStub makes a server that does what the members of the scenario say, for
// example `"protocol":"2025-03-26","tools":[...]`; none is a well-behaved server
// with the built-in tools.
func newStub(t *testing.T, name, members string) *upstreamStub {
	t.Helper()
	dir := t.TempDir()
	s := &upstreamStub{t: t, name: name, log: filepath.Join(dir, "events"), file: filepath.Join(dir, "scenario.json")}
	s.script(members)
	return s
}

// script replaces the scenario, for the next start of the server.
func (s *upstreamStub) script(members string) {
	s.t.Helper()
	if members != "" {
		members = "," + members
	}
	text := fmt.Sprintf(`{"name":%q,"log":%q,"lifetime_ms":120000%s}`, s.name, s.log, members)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// with adds members to the server's entry in the configuration.
func (s *upstreamStub) with(members string) *upstreamStub {
	s.more = "," + members
	return s
}

// trusted has everything that the server adds or changes approved as it comes.
func (s *upstreamStub) trusted() *upstreamStub { return s.with(`"auto_approve_tool_changes":true`) }

// entry is the server's entry in a configuration of the list form.
func (s *upstreamStub) entry() string {
	return fmt.Sprintf(`{"name":%q,"command":"mcpstub","args":["stub",%q]%s}`, s.name, s.file, s.more)
}

// configOf is a configuration with these servers.
func configOf(stubs ...*upstreamStub) string { return configWith("", stubs...) }

// configWith is a configuration with more members, each with a comma behind.
func configWith(members string, stubs ...*upstreamStub) string {
	if allShared() {
		// Each of many tests waits for its hub to leave.
		return strings.Replace(sharedConfig(members, stubs...), hubIdle.String(), "300ms", 1)
	}
	return privateConfig(members, stubs...)
}

// privateConfig is a configuration whose servers are not shared.
func privateConfig(members string, stubs ...*upstreamStub) string {
	var entries []string
	for _, s := range stubs {
		entries = append(entries, s.entry())
	}
	return `{` + members + `"share_upstreams":false,"mcpServers":[` + strings.Join(entries, ",") + `]}`
}

// events are the texts of the events of a kind, in order.
func (s *upstreamStub) events(kind string) []string {
	s.t.Helper()
	all, err := stub.ReadLog(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	var texts []string
	for _, e := range all {
		if e.Kind == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// received are the messages with this method that the server got, in order.
func (s *upstreamStub) received(method string) []message {
	s.t.Helper()
	var all []message
	for _, line := range s.events("recv") {
		if m := parse(line); m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

func parse(line string) message {
	m := message{Raw: json.RawMessage(line)}
	_ = json.Unmarshal(m.Raw, &m) // what is no message has no method
	return m
}

// await waits for an event that matches.
func (s *upstreamStub) await(match func(stub.Event) bool) stub.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerTime)
	defer cancel()
	e, err := stub.Await(ctx, s.log, match)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// awaitMessage waits for a message with this method and returns the first.
func (s *upstreamStub) awaitMessage(method string) message {
	s.t.Helper()
	return parse(s.await(func(e stub.Event) bool { return e.Kind == "recv" && parse(e.Text).Method == method }).Text)
}

// at is the raw value at a path in raw JSON, nil when there is none; a
// number in the path is an index.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		if i, err := strconv.Atoi(name); err == nil && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			var elements []json.RawMessage
			if json.Unmarshal(raw, &elements) != nil || i >= len(elements) {
				return nil
			}
			raw = elements[i]
			continue
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members[name] == nil {
			return nil
		}
		raw = members[name]
	}
	return raw
}

// stringAt is the string at a path in raw JSON, "" when there is none.
func stringAt(raw json.RawMessage, path ...string) string {
	var s string
	_ = json.Unmarshal(at(raw, path...), &s)
	return s
}
