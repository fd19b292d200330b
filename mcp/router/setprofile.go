package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/wire"
)

const setProfileName = "set_profile"

// ProfileChooser is the client of a session, who may choose a profile: see
// auth.Identity. What the client was started with comes before what it chooses.
type ProfileChooser interface {
	Callers
	Choose(profile string)
}

// profiles are those that a caller may choose. One that has none of its servers
// does not exist for an agent.
func (m *Management) profiles(caller auth.Caller) []string {
	all := m.options.Profiles()
	if caller.Kind == auth.Admin {
		return all
	}
	var some []string
	for _, profile := range all {
		limited := caller
		limited.Profile = profile
		if slices.ContainsFunc(m.options.Servers(), func(s string) bool { return m.options.Gate.Reaches(limited, s) }) {
			some = append(some, profile)
		}
	}
	return some
}

func (m *Management) setProfileFace(caller auth.Caller) json.RawMessage {
	if len(m.options.Profiles()) == 0 {
		return nil
	}
	names := m.profiles(caller)
	description := "Limits this session to the servers of one profile of the configuration, until another is set. \"\" sets none. " +
		"Nothing comes into reach that was not before a profile was set. The answer names the servers that are in reach then."
	if len(names) > 0 {
		description += " Profiles: " + within(names, maxDescription-len(description)-len(" Profiles: "))
	}
	return face{
		name: setProfileName, title: "Set the profile", description: description,
		schema: schema{
			Properties: map[string]property{"profile": {Type: "string", Description: "the name of a profile, or \"\""}},
			Required:   []string{"profile"},
		},
		readOnly: true, maxResult: m.options.MaxResult(),
	}.define()
}

// setProfile answers a call of set_profile.
func (m *Management) setProfile(ctx context.Context, a asker, raw json.RawMessage) (json.RawMessage, *wire.Error) {
	r := &request{m: m, who: a, deed: Deed{Caller: a.caller, Session: a.Session, ID: a.id, Tool: setProfileName}}
	var err error
	if r.args, err = parseArguments(raw); err == nil {
		err = r.args.only("profile")
	}
	if err != nil {
		return r.finish(nil, err)
	}
	return r.finish(r.choose(ctx))
}

// reached is what is in reach under a profile.
type reached struct {
	Profile string   `json:"profile"`
	Servers []string `json:"servers"`
	MaxTier string   `json:"max_tier"`
}

func (r *request) choose(ctx context.Context) (any, error) {
	m := r.m
	profile, err := r.args.text("profile")
	if err != nil {
		return nil, err
	}
	names := m.profiles(r.who.caller)
	if profile != "" && !slices.Contains(names, profile) {
		if len(names) == 0 {
			return nil, badArgument("no profile %q: there is none to choose", shorten(profile))
		}
		return nil, badArgument("no profile %q%s; the profiles are %s", shorten(profile), meant(profile, names), strings.Join(names, ", "))
	}
	if pin := r.who.caller.Pin; pin != "" && pin != profile {
		return nil, &Forbidden{fmt.Sprintf("the profile of this agent token is fixed to %s", pin)}
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	m.options.Who.Choose(profile)
	now, err := m.options.Who.Caller(ctx)
	if err != nil {
		return nil, err
	}
	if now.Profile != profile {
		return nil, &Forbidden{fmt.Sprintf("the profile of this session is fixed to %s by the one who started it", now.Profile)}
	}
	answer := reached{Profile: profile, Servers: []string{}, MaxTier: m.options.Gate.MaxTier(now).String()}
	for _, server := range m.options.Servers() {
		if m.options.Gate.Reaches(now, server) && m.options.Gate.Explain(server) == nil {
			answer.Servers = append(answer.Servers, server)
		}
	}
	if profile == "" {
		r.done(ConfigChanged, "the session has no profile any more")
	} else {
		r.done(ConfigChanged, "profile %s is in effect for the session", profile)
	}
	m.options.Changed()
	return answer, nil
}
