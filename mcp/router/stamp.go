package router

import (
	"slices"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
)

// stamp says by whom a result was got, and from where.
type stamp struct {
	Kind auth.Kind `json:"kind"`
	// All and Servers are the scope of the caller's credential.
	All     bool     `json:"all,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Tier is the highest that the caller could use, its profile considered.
	Tier string `json:"tier"`
	Pin  string `json:"pin,omitempty"`
	// Profile is the one that was in effect, with its servers.
	Profile        string   `json:"profile,omitempty"`
	ProfileServers []string `json:"profile_servers,omitempty"`

	// Server, Item and ItemKind are what gave the result, Needed its tier.
	Server   string       `json:"server"`
	Item     string       `json:"item"`
	ItemKind catalog.Kind `json:"item_kind"`
	Needed   string       `json:"needed"`
}

func stampOf(gate *policy.Gate, caller auth.Caller, item *catalog.Item) *stamp {
	s := &stamp{
		Kind: caller.Kind, All: caller.All, Servers: caller.Servers, Tier: gate.MaxTier(caller).String(), Pin: caller.Pin, Profile: caller.Profile,
		Server: item.Server, Item: item.Name, ItemKind: item.Kind, Needed: gate.Tier(item).String(),
	}
	if caller.Profile != "" {
		s.ProfileServers = gate.ProfileServers(caller.Profile)
	}
	return s
}

// isKnown reports whether the stamp is one of this program, and of somebody.
func (s *stamp) isKnown() bool {
	if s == nil || s.Server == "" || s.Item == "" {
		return false
	}
	switch s.Kind {
	case auth.Admin, auth.Agent, auth.Anonymous, auth.Internal:
		return true
	}
	return false
}

// ref is what gave the result.
func (s *stamp) ref() catalog.Ref {
	return catalog.Ref{Server: s.Server, Kind: s.ItemKind, Name: s.Item}
}

// within reports whether a reader can do all that the writer could, so that it might
// have got the result itself. What the program got on its own account is nobody's.
func (s *stamp) within(gate *policy.Gate, reader auth.Caller) bool {
	profile := gate.ProfileServers(reader.Profile)
	kin := s.isKin(reader)
	scope := reader.All || !s.All && subset(s.Servers, reader.Servers)
	tier := catalog.ParseTier(s.Tier) <= gate.MaxTier(reader)
	pin := reader.Pin == "" || reader.Pin == s.Pin
	narrow := reader.Profile == "" || s.Profile != "" && subset(s.ProfileServers, profile)
	return kin && scope && tier && pin && narrow
}

// isKin reports whether a kind of reader reads what a kind of writer got at all.
func (s *stamp) isKin(reader auth.Caller) bool {
	if s.Kind == auth.Internal {
		return false
	}
	switch reader.Kind {
	case auth.Admin:
		// Who is limited to a profile could not have got what an unlimited one got,
		// which the profiles tell.
		return true
	case auth.Agent:
		return s.Kind != auth.Admin
	case auth.Anonymous:
		return s.Kind == auth.Anonymous
	}
	return false
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
