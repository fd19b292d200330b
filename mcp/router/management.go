package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// Admin describes and changes the configured servers, for somebody who speaks
// over MCP: a model that reads text of strangers. An Admin lets nothing be
// widened, whatever it is asked: it fails with a *Forbidden then. Its other
// errors are for the caller too. Secrets are masked in all it returns.
type Admin interface {
	// Servers are all servers in the order of the configuration. None is started
	// or asked.
	Servers(ctx context.Context) ([]ServerState, error)
	// Add adds a server, held.
	Add(ctx context.Context, name string, entry json.RawMessage) (ServerState, error)
	// Change changes the keys of an entry that patch names, a JSON merge patch;
	// with whole its objects replace what is there. A server that is then started
	// or reached in another way is held with the same save.
	Change(ctx context.Context, name string, patch json.RawMessage, whole bool) (ServerChange, error)
	// Remove takes a server out of the configuration.
	Remove(ctx context.Context, name string) error
	// SetEnabled switches a server on or off.
	SetEnabled(ctx context.Context, name string, enabled bool) (ServerState, error)
	// Hold puts a server into quarantine.
	Hold(ctx context.Context, name string) (ServerState, error)
	// Restart has whoever runs the server start it again; Refresh besides has its
	// lists read where it does not run.
	Restart(ctx context.Context, name string) error
	Refresh(ctx context.Context, name string) error
	// Log is the end of what a server wrote to its stderr, the last line last.
	Log(ctx context.Context, name string, lines int) ([]string, error)
	// Items is what is known of what a server offers, and how it stands with the
	// one who reviews. Nothing is started for it; of a held server it is what was
	// once looked at.
	Items(ctx context.Context, name string) ([]ReviewItem, error)
	// Block forbids an item, on behalf of who.
	Block(ctx context.Context, ref catalog.Ref, who string) error
	// DisableTool has a tool listed and called no more.
	DisableTool(ctx context.Context, server, tool string) error
}

// Forbidden is why something cannot be done over MCP, and how a person does it.
type Forbidden struct{ Text string }

// Error is the text.
func (e *Forbidden) Error() string { return e.Text }

// ServerState is a server as it is shown, without secrets.
type ServerState struct {
	Name          string   `json:"name"`
	State         string   `json:"state"` // as in list --json
	Error         string   `json:"error,omitempty"`
	Target        string   `json:"target,omitempty"`
	Enabled       bool     `json:"enabled"`
	Quarantined   bool     `json:"quarantined"`
	Tools         *int     `json:"tools,omitempty"`   // nil where that is not known
	Env           []string `json:"env,omitempty"`     // the names alone
	Headers       []string `json:"headers,omitempty"` // the names alone
	Tags          []string `json:"tags,omitempty"`
	EnabledTools  []string `json:"enabled_tools,omitempty"`
	DisabledTools []string `json:"disabled_tools,omitempty"`
}

// ServerChange is what became of an entry.
type ServerChange struct {
	State ServerState
	// Keys are those that are not what they were.
	Keys []string
	// Held tells that the change has put the server into quarantine.
	Held bool
}

// ReviewItem is one form of an item.
type ReviewItem struct {
	Ref        catalog.Ref
	Status     policy.Status
	Offered    bool
	Disabled   bool // by enabled_tools or disabled_tools
	Hash       string
	Definition json.RawMessage
}

// Deed is something that was done or refused through a built-in tool.
type Deed struct {
	Caller    auth.Caller
	Session   *wire.Session
	ID        json.RawMessage // of the request
	Tool      string
	Operation string
	Server    string
	Item      string
	Kind      DeedKind
	Note      string // what was done
	Error     string // why it was not
}

// DeedKind is what a deed is about.
type DeedKind int

// The kinds of deeds.
const (
	ConfigChanged     DeedKind = iota + 1
	QuarantineChanged          // something was held, blocked or disabled
	DeedForbidden              // the caller may not
	DeedFailed                 // it was asked for wrongly, or could not be done
)

// ManagementOptions say what the built-in tools about servers and profiles work
// with. All functions are called from several goroutines; nil ones are as if
// they returned nothing.
type ManagementOptions struct {
	Admin Admin
	Gate  *policy.Gate
	// Who is the client of the session; its profile is what set_profile sets.
	Who ProfileChooser
	// Enabled tells whether servers are managed over MCP (disable_management:
	// false), ReadOnly whether they are only listed (read_only_mode).
	Enabled, ReadOnly func() bool
	// Servers and Profiles are the names in the order of the configuration.
	Servers, Profiles func() []string
	// MaxResult is max_result_size_chars.
	MaxResult func() int
	// Mask takes secrets out of an answer, which is JSON and stays so.
	Mask func(answer json.RawMessage) json.RawMessage
	// Record keeps what was done and refused; it must not block.
	Record func(Deed)
	// Changed is called when the caller may see something else than before, other
	// than by a change of the configuration.
	Changed func()
}

// Management is the built-in tools upstream_servers, quarantine_security and
// set_profile of one session.
type Management struct {
	options ManagementOptions
	turn    sync.Mutex // of set_profile, which asks what its choice has led to
}

// NewManagement returns the built-in tools that a mode composes.
func NewManagement(options ManagementOptions) *Management {
	never, none := func() bool { return false }, func() []string { return nil }
	o := &options
	for _, f := range []*func() bool{&o.Enabled, &o.ReadOnly} {
		if *f == nil {
			*f = never
		}
	}
	for _, f := range []*func() []string{&o.Servers, &o.Profiles} {
		if *f == nil {
			*f = none
		}
	}
	if o.MaxResult == nil {
		o.MaxResult = func() int { return 0 }
	}
	if o.Mask == nil {
		o.Mask = func(answer json.RawMessage) json.RawMessage { return answer }
	}
	if o.Record == nil {
		o.Record = func(Deed) {}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	return &Management{options: options}
}

// Builtins are the tools, in the order in which they are listed.
func (m *Management) Builtins() []Builtin {
	return []Builtin{
		{setProfileName, m.setProfileFace, m.setProfile},
		{serversName, m.serversFace, m.manageServers},
		{quarantineName, m.quarantineFace, m.manageQuarantine},
	}
}

// rank is how far a caller may manage servers.
type rank int

const (
	stranger rank = iota // not at all
	onlooker             // list and tail, in its scope
	manager
)

// rank is that of a caller. Who is limited to a profile is no administrator.
func (m *Management) rank(caller auth.Caller) rank {
	switch {
	case !m.options.Enabled():
		return stranger
	case caller.Kind == auth.Admin && caller.Profile == "":
		return manager
	case caller.Kind == auth.Admin, caller.Kind == auth.Agent:
		return onlooker
	}
	return stranger
}

// request is one call of a management tool.
type request struct {
	m    *Management
	who  asker
	rank rank
	args arguments
	deed Deed
}

// begin checks what holds for every operation: that there is one, that it may
// be done by this caller and now, and that it has no other arguments.
func (m *Management) begin(a asker, tool string, raw json.RawMessage, all, open []string) (*request, error) {
	r := &request{m: m, who: a, rank: m.rank(a.caller), deed: Deed{Caller: a.caller, Session: a.Session, ID: a.id, Tool: tool}}
	var err error
	if r.args, err = parseArguments(raw); err != nil {
		return r, err
	}
	if name, ok := wire.String(r.args["name"]); ok {
		r.deed.Server = shorten(name)
	}
	operation, err := r.args.oneOf("operation", all)
	if err != nil {
		return r, err
	}
	r.deed.Operation = operation
	for _, o := range open {
		if o == operation {
			return r, nil
		}
	}
	if r.rank == stranger {
		return r, &Forbidden{"servers are not managed over MCP"}
	}
	if m.options.ReadOnly() {
		return r, &Forbidden{fmt.Sprintf("operation %s is not possible while read_only_mode is on in the configuration; %s list is", operation, serversName)}
	}
	may := ""
	if len(open) > 0 {
		may = "; there are " + strings.Join(open, ", ")
	}
	return r, &Forbidden{fmt.Sprintf("operation %s is for administrators, not for an %s%s", operation, callerWords(a.caller), may)}
}

func callerWords(caller auth.Caller) string {
	if caller.Kind == auth.Agent {
		return "agent token"
	}
	return "administrator limited to a profile"
}

// finish is the result of a call, and records what was not done.
func (r *request) finish(answer any, err error) (json.RawMessage, *wire.Error) {
	if err == nil {
		return textResult(string(r.m.options.Mask(encode(answer))), false), nil
	}
	text, _ := wire.String(r.m.options.Mask(wire.Quote(err.Error())))
	text = strings.ToValidUTF8(text, "\ufffd")
	r.deed.Kind, r.deed.Error, r.deed.Note = DeedFailed, text, ""
	if forbidden := new(Forbidden); errors.As(err, &forbidden) {
		r.deed.Kind = DeedForbidden
	}
	r.m.options.Record(r.deed)
	return textResult(text, true), nil
}

// done records what was done.
func (r *request) done(kind DeedKind, format string, args ...any) {
	deed := r.deed
	deed.Kind, deed.Note = kind, fmt.Sprintf(format, args...)
	r.m.options.Record(deed)
	if kind == QuarantineChanged {
		r.m.options.Changed()
	}
}

// server is the name of an existing server that is in the caller's scope.
func (r *request) server() (string, error) {
	name, err := r.args.text("name")
	if err != nil {
		return "", err
	}
	var names []string
	for _, n := range r.m.options.Servers() {
		if r.m.options.Gate.Reaches(r.who.caller, n) {
			names = append(names, n)
		}
	}
	for _, n := range names {
		if n == name {
			return name, nil
		}
	}
	if r.rank < manager {
		return "", &Forbidden{fmt.Sprintf("server '%s' not found, or access denied", shorten(name))}
	}
	if len(names) == 0 {
		return "", badArgument("no server %q: none is configured", shorten(name))
	}
	return "", badArgument("no server %q%s; operation list of %s names them", shorten(name), meant(name, names), serversName)
}

// on is on whose behalf something is decided, for the record.
func (r *request) on() string {
	client := ""
	if r.who.Session != nil {
		client = r.who.Session.Client().Name
	}
	if client == "" {
		return "a client over MCP"
	}
	return "MCP client " + visible(client, 60)
}
