// Package auth says who is calling: it turns what a client shows into a
// [Caller].
//
// It refuses to know what callers may do; that is package policy's. A Caller is
// a value, and nothing here has a lifetime.
package auth

import "mcpproxy/mcp/catalog"

// Kind is what sort of caller it is.
type Kind string

// The kinds of callers.
const (
	// Admin is the local user, by the operating system's word.
	Admin Kind = "admin"
)

// Caller is who asks, and how far it may go.
type Caller struct {
	Kind Kind
	// Tier is the highest tier of tools that it may use.
	Tier catalog.Tier
}

// Local is the user who started this process over stdio or typed a command.
func Local() Caller { return Caller{Kind: Admin, Tier: catalog.Destructive} }
