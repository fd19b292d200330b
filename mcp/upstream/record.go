package upstream

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// record writes the state for other instances and later starts; it never waits
// for the store.
func (s *server) record() {
	s.mu.Lock()
	if s.viaHub {
		s.mu.Unlock()
		return // the hub does
	}
	if s.hosted == nil {
		s.users = 1
	}
	process := store.Process{Instance: s.set.options.Instance, ID: s.id, Key: s.key(), PID: s.pid(), Users: s.users, StartedAt: s.started}
	row := store.Server{
		Key: s.key(), State: string(s.state), Failures: s.failures,
		AttemptedAt: s.attempted, NextAttemptAt: s.next, Era: "legacy",
	}
	if s.err != nil {
		row.LastError = s.log.clean(s.err.Error())
	}
	if s.modern {
		row.Era = "modern"
	}
	if h := s.hello; h != nil {
		row.Protocol, row.Capabilities, row.ServerInfo, row.Instructions = h.protocol, h.capabilities, h.serverInfo, h.instructions
		row.ConnectedAt = s.started
	}
	s.mu.Unlock()
	s.set.save(func(ctx context.Context, tx *store.Tx) error {
		err := tx.PutServer(ctx, row)
		switch {
		case err != nil || process.Instance == "":
			return err
		case process.PID == 0:
			return tx.RemoveProcess(ctx, process.Instance, process.ID)
		}
		return tx.PutProcess(ctx, process)
	})
}

// pid is that of the running child, 0 where there is none; it is called with the
// lock held.
func (s *server) pid() int {
	if s.conn == nil || !s.conn.alive() {
		return 0
	}
	if l, ok := s.conn.link.(*stdioLink); ok {
		return l.cmd.Process.Pid
	}
	return 0
}

func (s *server) key() store.Key {
	return store.Key{Name: s.name, Fingerprint: s.fingerprint, Audience: s.audience()}
}

// audience names what is announced to upstreams, for the store.
func audience(capabilities json.RawMessage) string {
	var names []string
	for name, value := range wire.Members(capabilities) {
		if !wire.IsNull(value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// recordProcess writes that a child was started, before it has said anything.
func (s *server) recordProcess(pid int) {
	s.mu.Lock()
	process := store.Process{Instance: s.set.options.Instance, ID: s.id, Key: s.key(), PID: pid, Users: s.users, StartedAt: s.set.options.Now()}
	s.mu.Unlock()
	if process.Instance != "" {
		s.set.save(func(ctx context.Context, tx *store.Tx) error { return tx.PutProcess(ctx, process) })
	}
}
