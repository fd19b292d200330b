// Package upstream holds one connection per configured server and the [Set] of
// them: it starts children, speaks HTTP, does the handshake, fetches lists,
// translates ids, progress tokens and cancellations, and restarts what died.
//
// It refuses to know modes, public names and who may call what. A Set is owned
// by whoever called [Open]; after [Set.Close] no process and no goroutine of
// it is left.
package upstream
