package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// remote is a scripted server over streamable HTTP, with one tool t that tells
// how often it was called.
type remote struct {
	*httptest.Server

	mu       sync.Mutex
	fail     func(method string) (status int) // 0 = answer
	sessions map[string]bool
	calls    int
	log      []remoteRequest
}

// remoteRequest is one POST that the server got.
type remoteRequest struct {
	method string
	at     time.Time
	status int
}

// newRemote starts a server that ends with the test.
func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{sessions: map[string]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// entry is the server's entry in a configuration, with more members.
func (r *remote) entry(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"url":%q%s}`, name, r.URL+"/mcp", more)
}

// script decides from now on what fails, by method and with which status.
func (r *remote) script(fail func(method string) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

// forget drops all sessions.
func (r *remote) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sessions)
}

// requests are the requests of a method so far.
func (r *remote) requests(method string) []remoteRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []remoteRequest
	for _, request := range r.log {
		if request.method == method {
			all = append(all, request)
		}
	}
	return all
}

// ServeHTTP implements http.Handler.
func (r *remote) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	status := http.StatusOK
	if r.fail != nil {
		if failure := r.fail(m.Method); failure != 0 {
			status = failure
		}
	}
	if status == http.StatusOK && m.Method != "initialize" && !r.sessions[request.Header.Get("Mcp-Session-Id")] {
		status = http.StatusNotFound
	}
	r.log = append(r.log, remoteRequest{m.Method, time.Now(), status})
	switch {
	case status != http.StatusOK:
		w.WriteHeader(status)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, r.answer(w, m))
}

func (r *remote) answer(w http.ResponseWriter, m message) string {
	switch m.Method {
	case "initialize":
		id := fmt.Sprintf("session-%d", len(r.log))
		r.sessions[id] = true
		w.Header().Set("Mcp-Session-Id", id)
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"}}`
	case "tools/list":
		return `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		r.calls++
		return fmt.Sprintf(`{"content":[{"type":"text","text":"call %d"}]}`, r.calls)
	}
	return `{}`
}
