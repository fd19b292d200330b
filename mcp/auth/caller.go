// Package auth says who is calling: it turns what a client shows into a
// [Caller], and keeps the agent tokens that clients show.
//
// It refuses to know what callers may do, which is package policy's, and which
// servers and profiles there are. A Caller is a value. [Tokens] use a store
// that somebody else opens and closes.
package auth

import (
	"fmt"
	"slices"

	"mcpproxy/mcp/catalog"
)

// Kind is what sort of caller it is.
type Kind string

// The kinds of callers.
const (
	// Admin is the local user, by the operating system's word, or who has the
	// API key.
	Admin Kind = "admin"
	// Agent is who shows an agent token.
	Agent Kind = "agent"
	// Anonymous is who shows nothing over HTTP.
	Anonymous Kind = "anonymous"
	// Internal is this program on its own account.
	Internal Kind = "internal"
)

// Caller is who asks, and how far it may go. The zero value may use nothing.
// Nothing in it is secret.
type Caller struct {
	Kind Kind
	// Token is the name of the agent's token.
	Token string
	// All says that every server is in scope; else those in Servers are, which
	// are sorted and not to be changed.
	All     bool
	Servers []string
	// Tier is the highest tier of tools that it may use.
	Tier catalog.Tier
	// Pin is the profile that the token is bound to, "" for none.
	Pin string
	// Profile is the profile in effect, "" for none. Authentication leaves it
	// empty.
	Profile string
}

// Local is the user who started this process over stdio or typed a command.
func Local() Caller { return Caller{Kind: Admin, All: true, Tier: catalog.Destructive} }

// InScope reports whether the caller's credential extends to a server. Profiles
// can narrow that further.
func (c Caller) InScope(server string) bool {
	return c.All || slices.Contains(c.Servers, server)
}

// Key names everything about the caller that decides what it may see: callers
// with equal keys see the same.
func (c Caller) Key() string {
	servers := "*"
	if !c.All {
		servers = fmt.Sprintf("%q", c.Servers)
	}
	return fmt.Sprintf("%s %q servers %s tier %s pin %q profile %q", c.Kind, c.Token, servers, c.Tier, c.Pin, c.Profile)
}

// String is Key.
func (c Caller) String() string { return c.Key() }
