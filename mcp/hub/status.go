package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"time"
)

// Methods for the command line.
const (
	methodStatus = "hub/status"
	methodStop   = "hub/stop"
)

// Status asks the hub at the other end of a connection (Connect) what it does.
func Status(ctx context.Context, conn net.Conn) (Report, error) {
	raw, err := call(ctx, conn, methodStatus)
	if err != nil {
		return Report{}, fmt.Errorf("ask the hub for its status: %w", err)
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return Report{}, fmt.Errorf("read the status of the hub: %w", err)
	}
	return r, nil
}

// Stop ends the hub at the other end of a connection (Connect); it returns when
// all servers have been stopped.
func Stop(ctx context.Context, conn net.Conn) error {
	if _, err := call(ctx, conn, methodStop); err != nil {
		return fmt.Errorf("stop the hub: %w", err)
	}
	return nil
}

// Report is what a hub tells of itself.
type Report struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	Build string `json:"build"`
	// Since is when it started.
	Since   time.Time      `json:"since"`
	Clients []ClientReport `json:"clients"`
	Servers []ServerReport `json:"servers"`
}

// ClientReport is one instance that uses the hub.
type ClientReport struct {
	Instance string `json:"instance"`
	// Name is the client's own.
	Name string `json:"name"`
	// Servers are the names of the servers that it uses, sorted.
	Servers []string `json:"servers"`
}

// ServerReport is one process of the hub.
type ServerReport struct {
	Name string `json:"name"`
	// PID is 0 while it does not run.
	PID int `json:"pid"`
	// Users is the number of sessions.
	Users int `json:"users"`
}

// report describes the hub at this moment, in a fixed order.
func (h *hub) report() Report {
	pids := h.set.Processes()
	r := Report{
		ID: h.options.ID, PID: h.row.PID, Build: h.options.Build, Since: h.since.UTC(),
		Clients: []ClientReport{}, Servers: []ServerReport{},
	}
	servers := map[string][]string{} // by instance
	names := map[string]string{}
	h.mu.Lock()
	for _, p := range h.processes {
		r.Servers = append(r.Servers, ServerReport{Name: p.name, PID: pids[p.id], Users: len(p.sessions)})
		for c := range p.sessions {
			servers[c.instance] = append(servers[c.instance], p.name)
			names[c.instance] = c.name
		}
	}
	h.mu.Unlock()
	for instance, used := range servers {
		slices.Sort(used)
		r.Clients = append(r.Clients, ClientReport{Instance: instance, Name: names[instance], Servers: used})
	}
	slices.SortFunc(r.Clients, func(a, b ClientReport) int { return cmp.Compare(a.Instance, b.Instance) })
	slices.SortFunc(r.Servers, func(a, b ServerReport) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
	return r
}
