package router

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// Options say what a router works with.
type Options struct {
	// Mode is how activity names the mode.
	Mode    string
	Gate    *policy.Gate
	Callers Callers
	// Settings are those in force now; nil is the zero Settings.
	Settings func() Settings
	// Lists keeps rendered replies between starts; may be nil.
	Lists Lists
	// Warn is told of what a person should know; it must not block.
	Warn func(text string)
	// Search is behind retrieve_tools and describe_tool, Pages behind read_cache,
	// Management behind the tools about servers and profiles. A mode goes without
	// what is nil.
	Search     *Search
	Pages      *Pages
	Management *Management
}

// Settings are what the configuration says of the modes; it may change while a
// session lasts.
type Settings struct {
	// MaxName is the longest public name in bytes, 0 = by client.
	MaxName int
	// MaxResult is how many characters clients are told that a result of ours may
	// have.
	MaxResult int
	// Deferred has direct mode list signatures in place of schemas.
	Deferred bool
	// DirectTruncate has direct mode cut long results too.
	DirectTruncate bool
	// ToolsLimit is how many tools a search returns unless it is told otherwise,
	// Compact whether as signatures.
	ToolsLimit int
	Compact    bool
	// ResponseLimit is the most characters of an answer, 0 = no limit.
	ResponseLimit int
	// LenientVariants lets a tool be called through the variant of a lower tier.
	LenientVariants bool
	// Servers are the names of all servers in the order of the configuration,
	// Anonymous has them named to nobody.
	Servers   []string
	Anonymous bool
}

// Lists keeps list replies under keys that name what they were rendered from.
type Lists interface {
	// Get returns the reply of a key, nil if there is none.
	Get(ctx context.Context, key string) json.RawMessage
	// Put keeps a reply; it never blocks.
	Put(key string, body json.RawMessage)
}

// Router answers the requests of one session: in every mode all resources,
// templates and prompts of the servers, and the tools that the mode shows.
type Router struct {
	options  Options
	settings func() Settings
	// builtins are the tools of this program that the mode has. served tells
	// whether the tools of the servers are listed and called by their public names.
	builtins builtins
	served   bool

	shown *shown
	uris  uris

	following following
	warm      atomic.Bool // the catalog is in memory

	mu       sync.Mutex
	rendered map[catalog.Kind]rendered
	crowded  bool
}

func newRouter(options Options) *Router {
	r := &Router{options: options, settings: options.Settings, shown: newShown(), rendered: map[catalog.Kind]rendered{}}
	if r.settings == nil {
		r.settings = func() Settings { return Settings{} }
	}
	return r
}

// Routes implements wire.Router.
func (r *Router) Routes(method string) bool {
	switch method {
	case "tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe",
		"completion/complete", "logging/setLevel":
		return true
	}
	return false
}

// Handle implements wire.Router.
func (r *Router) Handle(ctx context.Context, s *wire.Session, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	a, refusal := r.asker(ctx, s)
	if refusal != nil {
		if method == "tools/call" {
			return ownFailure(refusal)
		}
		return nil, refusal
	}
	switch method {
	case "tools/list":
		return r.list(ctx, a, catalog.Tool), nil
	case "prompts/list":
		return r.list(ctx, a, catalog.Prompt), nil
	case "resources/list":
		return r.list(ctx, a, catalog.Resource), nil
	case "resources/templates/list":
		return r.list(ctx, a, catalog.Template), nil
	case "tools/call":
		return r.callTool(ctx, a, params)
	case "prompts/get":
		return r.getPrompt(ctx, a, params)
	case "completion/complete":
		return r.complete(ctx, a, params)
	case "logging/setLevel":
		return r.setLevel(s, params)
	}
	return r.resource(ctx, a, method, params)
}

// Notified implements wire.Router.
func (r *Router) Notified(_ *wire.Session, method string, params json.RawMessage) {
	r.options.Gate.Notified(method, params)
}

// maxName is how long a public name may be for the client of a session.
func (r *Router) maxName(s *wire.Session) int {
	return catalog.MaxName(s.Client().Name, r.settings().MaxName)
}

func (r *Router) setLevel(s *wire.Session, params json.RawMessage) (json.RawMessage, *wire.Error) {
	level, _ := wire.String(wire.Member(params, "level"))
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	if !slices.Contains(levels, level) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "logging/setLevel: level %q is none of %v", level, levels)
	}
	s.SetLogLevel(level)
	r.options.Gate.SetLevel(level)
	return json.RawMessage("{}"), nil
}
