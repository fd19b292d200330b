package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// manyTools is how many tools the strictest known clients take; what they do
// with more is drop them without a word.
const manyTools = 128

// Options say what a router works with.
type Options struct {
	Gate    *policy.Gate
	Callers Callers
	// MaxName returns the longest public name in bytes, 0 = by client; nil is the
	// same.
	MaxName func() int
	// Lists keeps rendered replies between starts; may be nil.
	Lists Lists
	// Warn is told of what a person should know; it must not block.
	Warn func(text string)
}

// Lists keeps list replies under keys that name what they were rendered from.
type Lists interface {
	// Get returns the reply of a key, nil if there is none.
	Get(ctx context.Context, key string) json.RawMessage
	// Put keeps a reply; it never blocks.
	Put(key string, body json.RawMessage)
}

// Direct is the mode in which every tool of every server is listed as
// server__tool, next to all resources, templates and prompts. It serves one
// session.
type Direct struct {
	options Options
	shown   *shown
	uris    uris

	following following
	warm      atomic.Bool // the catalog is in memory

	mu       sync.Mutex
	rendered map[catalog.Kind]rendered
	crowded  bool
}

// rendered is a list reply and what it was made of.
type rendered struct {
	from *catalog.Snapshot
	view string // policy.Gate.View
	max  int
	body json.RawMessage
}

// NewDirect returns the router of direct mode.
func NewDirect(options Options) *Direct {
	return &Direct{options: options, shown: newShown(), rendered: map[catalog.Kind]rendered{}}
}

// Routes implements wire.Router.
func (d *Direct) Routes(method string) bool {
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
func (d *Direct) Handle(ctx context.Context, s *wire.Session, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	a, refusal := d.asker(ctx, s)
	if refusal != nil {
		if method == "tools/call" {
			return ownFailure(refusal)
		}
		return nil, refusal
	}
	switch method {
	case "tools/list":
		return d.list(ctx, a, catalog.Tool), nil
	case "prompts/list":
		return d.list(ctx, a, catalog.Prompt), nil
	case "resources/list":
		return d.list(ctx, a, catalog.Resource), nil
	case "resources/templates/list":
		return d.list(ctx, a, catalog.Template), nil
	case "tools/call":
		return d.callTool(ctx, a, params)
	case "prompts/get":
		return d.getPrompt(ctx, a, params)
	case "completion/complete":
		return d.complete(ctx, a, params)
	case "logging/setLevel":
		return d.setLevel(s, params)
	}
	return d.resource(ctx, a, method, params)
}

// Notified implements wire.Router.
func (d *Direct) Notified(_ *wire.Session, method string, params json.RawMessage) {
	d.options.Gate.Notified(method, params)
}

// list answers a list request and remembers what the client was shown.
func (d *Direct) list(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	d.options.Gate.Settle(ctx)
	before := d.shown.changes.Load()
	body := d.stored(ctx, a, kind)
	d.shown.remember(kind, body)
	if d.shown.changes.Load() != before {
		// That change may have been compared with what the client knew before.
		d.shown.look()
	}
	return body
}

// stored takes the reply from an earlier start where nothing has changed since;
// the catalog itself is then not needed yet.
func (d *Direct) stored(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	stamp := d.options.Gate.Stamp(ctx, a.caller)
	if stamp == "" || d.options.Lists == nil {
		return d.render(ctx, a, kind)
	}
	key := fmt.Sprintf("direct/%d/%s/%d/%s", catalog.RenderVersion, kind, d.maxName(a.Session), stamp)
	if body := d.options.Lists.Get(ctx, key); body != nil {
		return body
	}
	body := d.render(ctx, a, kind)
	if d.options.Gate.Stamp(ctx, a.caller) == stamp {
		d.options.Lists.Put(key, body) // unless a server said something new meanwhile
	}
	return body
}

// render makes the reply to a list request; it is made once per snapshot and
// view of it.
func (d *Direct) render(ctx context.Context, a asker, kind catalog.Kind) json.RawMessage {
	snapshot := d.options.Gate.Catalog(ctx)
	max, view := d.maxName(a.Session), d.options.Gate.View(a.caller)
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.rendered[kind]; r.from == snapshot && r.view == view && r.max == max {
		return r.body
	}
	body := append(append(json.RawMessage(`{"`), kind.ListMember()...), `":[`...)
	names := snapshot.Names(kind, max)
	count := 0
	for _, item := range names.Ordered() {
		if !d.options.Gate.May(a.caller, item) {
			continue
		}
		if count > 0 {
			body = append(body, ',')
		}
		body = append(body, define(item, names)...)
		count++
	}
	body = append(body, `]}`...)
	d.rendered[kind] = rendered{snapshot, view, max, body}
	if kind == catalog.Tool && count > manyTools && !d.crowded {
		d.crowded = true
		d.options.Warn(fmt.Sprintf("%d tools are listed, and some clients drop those above %d without a word; "+
			"fewer servers, or another --mode, would show fewer", count, manyTools))
	}
	return body
}

func define(item *catalog.Item, names *catalog.Names) json.RawMessage {
	switch item.Kind {
	case catalog.Tool:
		return catalog.RenderTool(item, names.Public(item))
	case catalog.Prompt:
		return catalog.RenderPrompt(item, names.Public(item))
	}
	return item.Raw
}

func (d *Direct) maxName(s *wire.Session) int {
	longest := 0
	if d.options.MaxName != nil {
		longest = d.options.MaxName()
	}
	return catalog.MaxName(s.Client().Name, longest)
}

func (d *Direct) setLevel(s *wire.Session, params json.RawMessage) (json.RawMessage, *wire.Error) {
	level, _ := wire.String(wire.Member(params, "level"))
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	if !slices.Contains(levels, level) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "logging/setLevel: level %q is none of %v", level, levels)
	}
	s.SetLogLevel(level)
	d.options.Gate.SetLevel(level)
	return json.RawMessage("{}"), nil
}
