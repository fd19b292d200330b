// Package hub lets the instances on a machine share one set of running servers.
// One process, the hub, keeps them and serves a unix socket ([Run]); an instance
// finds the hub of its build, or has one started, and gets a connection for each
// session with one server ([Dialer]). The package refuses to know modes, callers
// and what a call means.
//
// Who the hub is is decided by a lease in the store. It is held in the name of
// the hub from before the process exists until its last server is gone, so there
// are never two that start servers, except while one that lost its lease without
// noticing (it was stopped, the machine slept) still has sessions.
//
// On the socket each line is a JSON-RPC message. The methods beside MCP's own:
//
//	ping        answered at once; a hub that is about to end answers with an error
//	hub/open    upstream.OpenParams -> upstream.OpenResult; from then on the
//	            connection is a session with that server, and all of MCP but the
//	            lifecycle goes to it and comes from it
//	hub/status  -> Report
//	hub/stop    -> {} once all servers have been stopped; the hub then ends
//
// and the notifications notifications/hub/leave {"replaced": true}: the entry of
// this session's server has changed, so its process need not be kept for later;
// and notifications/hub/adjust: upstream.Times of the server as they are now. The
// hub itself sends notifications/hub/hello: what the session's server, started
// again, has answered to initialize, if that has changed.
//
// An error that is not the server's own has {"hub": true} in its data, and beside
// it {"died": true} where the server ended while it worked on a request. The hub
// never makes a tools/call a second time: that is for the instance to decide.
//
// Both ends refuse a peer of another user.
package hub

import "errors"

var (
	// ErrNone tells that there is no hub and that none can be had; servers are
	// then private. The reason is wrapped beside it.
	ErrNone = errors.New("no hub")
	// ErrTaken is returned by Run when another process is the hub.
	ErrTaken = errors.New("another process is the hub")
)

// errPlatform is the reason where the system does not tell whose process is at
// the other end of a socket.
var errPlatform = errors.New("this system has no sockets that tell who is at their other end")

// Kind is what a hub calls itself in the store's instances.
const Kind = "hub"

// leaseName is the lease that a hub of a build holds. Builds do not serve each
// other: what they say on the socket may differ.
func leaseName(build string) string { return Kind + "/" + build }
