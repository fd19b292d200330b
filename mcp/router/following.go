package router

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// releaseMost bounds how long a server is told that its updates are no longer
// wanted; they are passed on to nobody as soon as that begins.
const releaseMost = time.Second

// following are the resources that the client has subscribed to. The zero value
// is ready.
type following struct {
	mu  sync.Mutex
	all map[followed]*wire.Session
}

// followed is one of them.
type followed struct{ server, uri string }

// note remembers what became of a request that has succeeded.
func (f *following) note(method string, a asker, server, uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch method {
	case "resources/subscribe":
		if f.all == nil {
			f.all = map[followed]*wire.Session{}
		}
		f.all[followed{server, uri}] = a.Session
	case "resources/unsubscribe":
		delete(f.all, followed{server, uri})
	}
}

func (f *following) copy() map[followed]*wire.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.all)
}

// Recheck ends the subscriptions to what the client may not read any more: its
// token may have ended, a profile shrunk, a resource been blocked. It costs
// nothing where there are none.
func (r *Router) Recheck(ctx context.Context) {
	all := r.following.copy()
	if len(all) == 0 {
		return
	}
	caller, err := r.options.Callers.Caller(ctx)
	if ctx.Err() != nil {
		return
	}
	snapshot := r.options.Gate.Catalog(ctx)
	for f, session := range all {
		if err == nil && r.mayFollow(snapshot, caller, f) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, releaseMost)
		r.options.Gate.Release(limited, policy.Use{Caller: caller, Session: session, Item: unlisted(f.server, f.uri), Method: "resources/unsubscribe", Params: uriParams(f.uri)})
		cancel()
		r.following.note("resources/unsubscribe", asker{}, f.server, f.uri)
	}
}

// mayFollow reports whether the caller may read the resource as it is offered
// now.
func (r *Router) mayFollow(snapshot *catalog.Snapshot, caller auth.Caller, f followed) bool {
	item := unlisted(f.server, f.uri)
	if server := snapshot.Server(f.server); server != nil {
		if listed := r.searchListed([]*catalog.Server{server}, f.uri); len(listed) > 0 {
			item = listed[0]
		}
	}
	return r.options.Gate.May(caller, item)
}

func uriParams(uri string) []byte {
	return slices.Concat([]byte(`{"uri":`), wire.Quote(uri), []byte(`}`))
}
