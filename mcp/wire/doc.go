// Package wire moves raw JSON-RPC messages: it frames them on byte streams,
// splices single members of raw JSON without touching another byte, and holds
// the connection that intercepts routed methods in front of the MCP SDK.
//
// It refuses to know what a tool, a server or a policy is. A [Conn] is owned
// by whoever called [NewConn]; everything it starts has ended when [Conn.Serve]
// returns, except a read that the operating system cannot interrupt.
package wire
