package router

import (
	"context"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yosida95/uritemplate/v3"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// serverMark stands between a server's name and a URI where the URI alone would
// be ambiguous: "notes|config://settings". No URI scheme contains it.
const serverMark = "|"

// resource answers the requests that name a resource: read, subscribe,
// unsubscribe.
func (r *Router) resource(ctx context.Context, a asker, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	uri, ok := wire.String(wire.Member(params, "uri"))
	if !ok || uri == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "%s: parameter \"uri\" is missing or no text", method)
	}
	item, plain, refusal := r.locate(ctx, a, uri)
	if refusal != nil {
		return nil, refusal
	}
	if plain != uri {
		params = wire.SetMember(params, wire.Quote(plain), "uri")
	}
	result, failure := r.options.Gate.Do(ctx, a.use(item, method, params))
	if failure == nil {
		r.following.note(method, a, item.Server, plain)
	}
	return result, failure
}

// locate finds whose URI (or URI template) it is, and returns the URI without
// the server mark. In this order: a server named with the mark; the servers
// that list the URI; those with a template that gives it; the only server that
// has resources at all, or that lists others of the same scheme, since URIs
// also come in results without being listed.
func (r *Router) locate(ctx context.Context, a asker, uri string) (*catalog.Item, string, *wire.Error) {
	found, plain := r.search(ctx, a.caller, uri)
	if len(found) == 0 {
		r.options.Gate.Settle(ctx)
		found, plain = r.search(ctx, a.caller, uri)
	}
	// What may not be used is not looked for elsewhere.
	usable := slices.DeleteFunc(slices.Clone(found), func(it *catalog.Item) bool { return !r.options.Gate.May(a.caller, it) })
	switch len(usable) {
	case 1:
		return usable[0], plain, nil
	case 0:
		return nil, "", r.notFound(a, uri, found)
	}
	var servers []string
	for _, it := range usable {
		servers = append(servers, it.Server)
	}
	return nil, "", wire.Errorf(wire.CodeInvalidParams, "resource '%s' is offered by several servers (%s); name one, as in '%s%s%s'",
		uri, strings.Join(servers, ", "), servers[0], serverMark, uri)
}

// notFound is the answer for a URI that is nobody's, or that may not be used, and
// records it.
func (r *Router) notFound(a asker, uri string, refused []*catalog.Item) *wire.Error {
	missing := wire.Errorf(wire.CodeNotFound, "resource '%s' not found, or access denied", uri)
	missing.Data = append(append(json.RawMessage(`{"uri":`), wire.Quote(uri)...), '}')
	item, answer := unlisted("", uri), missing
	if len(refused) > 0 {
		item = refused[0]
		if why := r.options.Gate.Refusal(a.caller, item); why != nil && r.options.Gate.Explained(a.caller) {
			answer = why
		}
	}
	r.options.Gate.Refused(a.use(item, catalog.Resource.UseMethod(), nil), answer)
	return answer
}

func (r *Router) search(ctx context.Context, caller auth.Caller, uri string) (found []*catalog.Item, plain string) {
	var servers []*catalog.Server
	for _, server := range r.options.Gate.Catalog(ctx).Servers() {
		if r.options.Gate.May(caller, unlisted(server.Name, "")) {
			servers = append(servers, server)
		}
	}
	if name, rest, marked := strings.Cut(uri, serverMark); marked {
		if i := slices.IndexFunc(servers, func(s *catalog.Server) bool { return s.Name == name }); i >= 0 {
			servers, uri = servers[i:i+1], rest
			if len(r.searchListed(servers, uri)) == 0 {
				return []*catalog.Item{unlisted(name, uri)}, uri
			}
		}
	}
	if found = r.searchListed(servers, uri); len(found) > 0 {
		return found, uri
	}
	return searchUnlisted(servers, uri), uri
}

// searchListed returns at most one item per server.
func (r *Router) searchListed(servers []*catalog.Server, uri string) []*catalog.Item {
	var exact, spelled, byTemplate []*catalog.Item
	for _, server := range servers {
		same := func(it *catalog.Item) bool { return it.Name == uri }
		otherwise := func(it *catalog.Item) bool { return r.uris.same(it.Name, uri) }
		if i := slices.IndexFunc(server.Resources, same); i >= 0 {
			exact = append(exact, server.Resources[i])
		} else if i := slices.IndexFunc(server.Templates, same); i >= 0 {
			exact = append(exact, server.Templates[i])
		} else if i := slices.IndexFunc(server.Resources, otherwise); i >= 0 {
			spelled = append(spelled, server.Resources[i])
		} else if i := slices.IndexFunc(server.Templates, func(it *catalog.Item) bool { return r.uris.match(it.Name, uri) }); i >= 0 {
			byTemplate = append(byTemplate, server.Templates[i])
		}
	}
	switch {
	case len(exact) > 0:
		return exact
	case len(spelled) > 0:
		return spelled
	}
	return byTemplate
}

func searchUnlisted(servers []*catalog.Server, uri string) []*catalog.Item {
	var able, sameScheme []*catalog.Item
	scheme, _, _ := strings.Cut(uri, ":")
	for _, server := range servers {
		if !server.HasResources {
			continue
		}
		able = append(able, unlisted(server.Name, uri))
		if lists(server, scheme+":") {
			sameScheme = append(sameScheme, unlisted(server.Name, uri))
		}
	}
	if len(able) == 1 {
		return able
	}
	if len(sameScheme) == 1 {
		return sameScheme
	}
	return nil
}

func lists(server *catalog.Server, prefix string) bool {
	begins := func(it *catalog.Item) bool { return strings.HasPrefix(it.Name, prefix) }
	return slices.ContainsFunc(server.Resources, begins) || slices.ContainsFunc(server.Templates, begins)
}

// unlisted is a resource of which only the URI is known.
func unlisted(server, uri string) *catalog.Item {
	return &catalog.Item{Ref: catalog.Ref{Server: server, Kind: catalog.Resource, Name: uri}}
}

// uris remembers compiled URI templates (RFC 6570), and the plain form of URIs.
type uris struct {
	mu       sync.Mutex
	compiled map[string]*regexp.Regexp // nil for a template that is none
	plain    map[string]string
}

// maxPlain bounds the plain forms that are remembered.
const maxPlain = 1 << 17

// same reports whether two URIs differ in their spelling alone: a server may take
// them for one, so what is held under one of them must not be read under the
// other.
func (u *uris) same(a, b string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.plainOf(a) == u.plainOf(b)
}

func (u *uris) plainOf(uri string) string {
	plain, known := u.plain[uri]
	if !known {
		if u.plain == nil || len(u.plain) >= maxPlain {
			u.plain = map[string]string{}
		}
		plain = plainURI(uri)
		u.plain[uri] = plain
	}
	return plain
}

// plainURI is a URI without escapes, with scheme and host in lower case and
// without dots and doubled slashes in its path.
func plainURI(uri string) string {
	if text, err := url.PathUnescape(uri); err == nil {
		uri = text
	}
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return uri
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		host, file, _ := strings.Cut(authority, "/")
		rest = "//" + strings.ToLower(host) + path.Clean("/"+file)
	}
	return strings.ToLower(scheme) + ":" + rest
}

// match reports whether the template can give the URI.
func (u *uris) match(template, uri string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	re, known := u.compiled[template]
	if !known {
		if u.compiled == nil {
			u.compiled = map[string]*regexp.Regexp{}
		}
		re = compile(template)
		u.compiled[template] = re
	}
	return re != nil && re.MatchString(uri)
}

// compile returns nil for a template that is none, and for one so large that
// its expression cannot be compiled, at which the library panics.
func compile(template string) (re *regexp.Regexp) {
	defer func() {
		if recover() != nil {
			re = nil
		}
	}()
	t, err := uritemplate.New(template)
	if err != nil {
		return nil
	}
	return t.Regexp()
}
