// Package hub offers a set of running servers to the other instances on this
// machine over a socket, and is such a set on their side. It refuses to know
// modes, callers and what a call means. It holds no code yet.
package hub
