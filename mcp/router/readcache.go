package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

const (
	readCacheName = "read_cache"
	// mostRecords and defaultRecords are how many records a page may have, and has
	// where nobody says.
	mostRecords, defaultRecords = 1000, 50
	// farthest is the largest offset.
	farthest = 1 << 40
	// notFound is all that is told to whoever may not read everything.
	notFound = "cache key not found"
)

// Builtin is the tool read_cache, which reads on in what Fit has cut. It exists for
// every caller; where nothing is cut a mode need not list it.
func (p *Pages) Builtin() Builtin {
	return Builtin{Name: readCacheName, Definition: p.readCacheFace, Call: p.readCache}
}

// readCacheFace is as short as it can be: it is paid for in every context, and whoever
// needs it has the call before it.
func (p *Pages) readCacheFace(auth.Caller) json.RawMessage {
	return fmt.Appendf(nil, `{"name":"read_cache","description":"Reads on in a result that was cut: call it with the key and offset that its notice names.",`+
		`"inputSchema":{"type":"object","properties":{"key":{"type":"string"},"offset":{"type":"integer","minimum":0},`+
		`"limit":{"type":"integer","maximum":%d,"default":%d}},"required":["key"]},`+
		`"annotations":{"title":"Read on","readOnlyHint":true,"destructiveHint":false,"openWorldHint":false},`+
		`"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":%d}}`, mostRecords, defaultRecords, p.options.MaxResult())
}

// pageAsked are the arguments of a call.
type pageAsked struct {
	key           string
	offset, limit int
}

func readArguments(raw json.RawMessage) (q pageAsked, err error) {
	args, err := parseArguments(raw)
	if err == nil {
		err = args.only("key", "offset", "limit")
	}
	if err == nil && !args.has("key") {
		err = badArgument("argument \"key\" is missing")
	}
	if err == nil {
		q.offset, err = args.integer("offset", 0, farthest, 0)
	}
	if err == nil {
		q.limit, err = args.integer("limit", 1, mostRecords, defaultRecords)
	}
	q.key, _ = wire.String(args["key"]) // what is no string is the key of nothing
	return q, err
}

// readCache answers a call of read_cache.
func (p *Pages) readCache(ctx context.Context, a asker, raw json.RawMessage) (json.RawMessage, *wire.Error) {
	began := p.options.Now()
	r := PageRead{Caller: a.caller, Session: a.Session, ID: a.id, Began: began, Request: raw}
	q, err := readArguments(raw)
	if err != nil {
		r.Outcome, r.Error, r.Response = PageMissing, err.Error(), textResult(err.Error(), true)
	} else {
		p.answer(ctx, q, &r)
	}
	r.Duration = p.options.Now().Sub(began)
	p.options.Record(r)
	return r.Response, nil
}

// answer finds what is asked for and fills in r what came of it. What is not for the
// caller takes the same way as what is not there.
func (p *Pages) answer(ctx context.Context, q pageAsked, r *PageRead) {
	db, gate := p.options.Store(), p.options.Gate
	page, found, err := db.Page(ctx, lookupKey(q.key))
	var answer []byte
	if err == nil {
		e := p.entryOf(ctx, page, found)
		item := gate.Later(ctx, e.Stamp.ref(), catalog.ParseTier(e.Stamp.Needed))
		r.Outcome, r.Error = p.judge(r.Caller, page, found, e, item)
		if found && e.Stamp.isKnown() {
			r.Server, r.Item = e.Stamp.Server, e.Stamp.Item
		}
		if r.Outcome == PageSent {
			e.key = q.key
			if answer, err = p.page(ctx, db, e, q); err == nil && answer == nil {
				r.Outcome, r.Error = PageMissing, "it was removed while it was read"
			}
		}
	}
	if err != nil {
		r.Outcome, r.Error = PageFailed, err.Error()
		if ctx.Err() == nil {
			p.options.OnError(err)
		}
	}
	switch {
	case r.Outcome == PageSent:
		r.Response = slices.Concat(json.RawMessage(`{"content":[`), textBlock(answer), json.RawMessage(`]}`))
	case gate.Explained(r.Caller):
		r.Response = textResult(notFound+": "+r.Error, true)
	default:
		r.Response = textResult(notFound, true)
	}
}

// nobody is the head of a page that nobody can read. It is looked at where there is
// none, which so costs as much.
const nobody = `{"stamp":{"kind":"internal","servers":["a","b"],"tier":"destructive","server":"a","item":"a_tool_of_some_server","item_kind":"tool","needed":"read"},"limit":20000,"total":100000,"records":1000,"path":"data.items"}`

// entryOf is what the head of a page says.
func (p *Pages) entryOf(ctx context.Context, page store.Page, found bool) (e keptText) {
	head := page.Head
	if !found {
		head = nobody
	}
	if json.Unmarshal([]byte(head), &e) != nil || e.Stamp == nil {
		e = keptText{Stamp: &stamp{}}
	}
	if found && !e.Stamp.isKnown() {
		key := page.Key
		err := p.options.Store().Later(func(ctx context.Context, tx *store.Tx) error { return tx.DeletePage(ctx, key) })
		if err != nil {
			p.options.OnError(err)
		}
	}
	return e
}

// judge says whether a caller may read a page, and for the log why not. An
// administrator without a profile may read what others got, whoever they are.
func (p *Pages) judge(caller auth.Caller, page store.Page, found bool, e keptText, item *catalog.Item) (PageOutcome, string) {
	gate := p.options.Gate
	now := p.options.Now()
	within := e.Stamp.within(gate, caller) || gate.Explained(caller)
	usable := gate.May(caller, item)
	switch {
	case !found, !now.Before(page.ExpiresAt):
		return PageMissing, "it is unknown, or older than two hours; call the tool again"
	case !e.Stamp.isKnown(), e.Stamp.Kind == auth.Internal:
		return PageForbidden, "nobody may read it; call the tool again"
	case !within:
		return PageForbidden, "another caller got it, who could do more or something else"
	case !usable:
		if gate.Explained(caller) {
			if refusal := gate.Refusal(caller, item); refusal != nil {
				return PageForbidden, refusal.Message
			}
		}
		return PageForbidden, "what it came from cannot be used now"
	}
	return PageSent, ""
}
