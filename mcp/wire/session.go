package wire

import (
	"context"
	"encoding/json"
	"sync"
)

// Peer reaches the client of a session.
type Peer interface {
	// Notify sends a notification; it never blocks.
	Notify(method string, params json.RawMessage)
	// Call sends a request and waits for its answer. When ctx ends before, the
	// client is told that the request is cancelled.
	Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *Error)
}

// ClientInfo is what a client said of itself in initialize.
type ClientInfo struct {
	Name         string
	Version      string
	Protocol     string
	Capabilities json.RawMessage
}

// Session is one downstream client.
type Session struct {
	Peer
	id string

	mu       sync.Mutex
	client   ClientInfo
	logLevel string
}

// NewSession returns the session of the client behind peer.
func NewSession(id string, peer Peer) *Session { return &Session{Peer: peer, id: id} }

// ID is unique in this process.
func (s *Session) ID() string { return s.id }

// Client returns what the client said of itself; zero before initialize.
func (s *Session) Client() ClientInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// SetClient records what the client said of itself.
func (s *Session) SetClient(c ClientInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
}

// Has reports whether the client announced a capability, for example
// "sampling".
func (s *Session) Has(capability string) bool {
	return !IsNull(Member(s.Client().Capabilities, capability))
}

// LogLevel is the least severe level that the client asked for, "" if it did
// not ask.
func (s *Session) LogLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logLevel
}

// SetLogLevel records the client's wish.
func (s *Session) SetLogLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logLevel = level
}
