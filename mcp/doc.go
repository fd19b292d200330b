// Package mcp holds no code: it is the map of the packages beneath it. In code
// the identifier mcp always means the SDK.
//
// A request of a client takes this way, and its answer takes it back:
//
//	client
//	  │ one JSON-RPC message a line on stdin
//	wire/conn.go       a connection of the SDK's server; the SDK answers the
//	  │                lifecycle, everything routed goes on as raw JSON
//	router/router.go   the mode: what is listed (router/direct.go), or searched and
//	  │                called through a tier (router/retrieve.go), and which item
//	  │                of which server a name stands for (router/find.go)
//	policy/gate.go     whether this caller may do this to this item; the only
//	  │                way from a router to a server
//	upstream/set.go    the connection to each configured server, started on
//	  │                first use, restarted when it has died
//	  │ stdio, streamable HTTP or SSE; for a shared server (upstream/hublink.go)
//	  │ the socket of
//	hub/run.go         the process that runs the shared servers: sessions of all
//	  │                instances (hub/client.go) over one upstream.Set
//	  │ stdio
//	server
//
// What a server says goes the same way in the other direction: progress, log
// messages, list changes, and requests such as sampling and elicitation.
//
// Beside the way stand
//
//	config    the file a person edits: which servers there are
//	catalog   what the servers offer and how clients see it named
//	index     (top level) ranks what the catalog holds for a search
//	store     (top level) the file that instances share: the last known
//	          catalog, so that a list needs no running server; cut results,
//	          approvals, tokens, activity
//	cli       (top level) the command line, which wires all of them together
//
// Nothing on the way decodes a definition, an argument or a result into a
// struct: the members that must change are spliced into the raw JSON
// (wire/splice.go). That is why odd values of one server reach the client as
// they are, and cannot harm another server.
package mcp
