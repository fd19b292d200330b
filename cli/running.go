package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"mcpproxy/store"
)

// The kinds of processes in the store's table of instances.
const (
	clientKind = "client"
	hubKind    = "hub"
)

// running is what of a server runs on this machine now.
type running struct {
	pids   []int
	users  int   // clients
	memory int64 // resident, in bytes, of the processes themselves; 0 where the system does not tell
}

// pidText is the pids with blanks between them.
func (r running) pidText() string { return strings.Trim(fmt.Sprint(r.pids), "[]") }

// presences are the instances and hubs that were seen a moment ago.
func (a *app) presences(ctx context.Context, db *store.DB) ([]store.Instance, error) {
	all, err := db.Instances(ctx)
	if err != nil {
		return nil, err
	}
	var present []store.Instance
	for _, i := range all {
		if a.Now().Sub(i.SeenAt) < absence && processExists(i.PID) {
			present = append(present, i)
		}
	}
	return present, nil
}

// runningServers are the processes of the instances that are present, by name
// and fingerprint.
func runningServers(ctx context.Context, db *store.DB, present []store.Instance) (map[[2]string]running, error) {
	processes, err := db.Processes(ctx)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for _, i := range present {
		alive[i.ID] = true
	}
	found := map[[2]string]running{}
	for _, p := range processes {
		if !alive[p.Instance] || !processExists(p.PID) {
			continue
		}
		key := [2]string{p.Name, p.Fingerprint}
		r := found[key]
		r.pids = append(r.pids, p.PID)
		r.users += p.Users
		r.memory += residentMemory(p.PID)
		found[key] = r
	}
	return found, nil
}

// residentMemory reads the resident memory of a process in bytes.
func residentMemory(pid int) int64 {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0 // it has ended, or this is not Linux
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes a number
	return pages * int64(os.Getpagesize())
}

// hubStatus is the hub as status shows it, from what it wrote to the store.
type hubStatus struct {
	PID     int         `json:"pid"`
	Since   time.Time   `json:"since"`
	Build   string      `json:"build"`
	Current bool        `json:"current"` // of the same build as this command
	Clients []hubClient `json:"clients"`
}

// hubClient is an instance that the hub serves.
type hubClient struct {
	Name  string    `json:"name"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// hubsOf puts together the hubs that are present; there are several only while
// one of an older build drains.
func (a *app) hubsOf(present []store.Instance) []hubStatus {
	hubs := []hubStatus{}
	for _, i := range present {
		if i.Kind != hubKind {
			continue
		}
		h := hubStatus{PID: i.PID, Since: i.StartedAt.UTC(), Build: i.Build, Current: i.Build == a.self().build, Clients: []hubClient{}}
		for _, c := range present {
			if c.Hub == i.ID {
				h.Clients = append(h.Clients, hubClient{Name: clientName(c), PID: c.PID, Since: c.StartedAt.UTC()})
			}
		}
		hubs = append(hubs, h)
	}
	return hubs
}

// clientsOf are the instances that serve a client.
func clientsOf(present []store.Instance) []hubClient {
	clients := []hubClient{}
	for _, i := range present {
		if i.Kind == clientKind {
			clients = append(clients, hubClient{Name: clientName(i), PID: i.PID, Since: i.StartedAt.UTC()})
		}
	}
	return clients
}

// clientName is what a client calls itself.
func clientName(i store.Instance) string {
	switch {
	case i.Client == "":
		return "a client without a name"
	case i.ClientVersion == "":
		return i.Client
	}
	return i.Client + " " + i.ClientVersion
}
