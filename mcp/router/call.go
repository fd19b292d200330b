package router

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// callTool answers tools/call.
func (d *Direct) callTool(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "tools/call: parameter \"name\" is missing or no text")
	}
	item, refusal := d.find(ctx, a, catalog.Tool, name)
	if refusal != nil {
		return ownFailure(refusal)
	}
	d.warm.Store(true)
	return toolResult(d.options.Gate.Do(ctx, a.toolUse(item, params)))
}

// Start implements wire.Starter for tool calls, once the catalog is in memory.
func (d *Direct) Start(s *wire.Session, id json.RawMessage, method string, params json.RawMessage, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	if method != "tools/call" || !d.warm.Load() {
		return nil, false
	}
	caller, ok := d.options.Callers.Present()
	if !ok {
		return nil, false
	}
	name, _ := wire.String(wire.Member(params, "name"))
	item := d.options.Gate.Loaded().Names(catalog.Tool, d.maxName(s)).Lookup(name)
	if item == nil {
		return nil, false
	}
	return d.options.Gate.Start(asker{s, caller, id}.toolUse(item, params), func(result json.RawMessage, failure *wire.Error) {
		done(toolResult(result, failure))
	})
}

// toolUse is the call of a tool with what the server is to see of it: its own
// name, and arguments also where there are none.
func (a asker) toolUse(item *catalog.Item, params json.RawMessage) policy.Use {
	params = wire.SetMember(params, wire.Quote(item.Name), "name")
	for key := range wire.Members(params) {
		if key != "name" && strings.EqualFold(key, "name") {
			// Decoders that ignore case would take it for the name.
			params = wire.DeleteMember(params, key)
		}
	}
	if wire.IsNull(wire.Member(params, "arguments")) {
		params = wire.SetMember(params, json.RawMessage("{}"), "arguments")
	}
	return a.use(item, "tools/call", params)
}

func toolResult(result json.RawMessage, failure *wire.Error) (json.RawMessage, *wire.Error) {
	if failure != nil {
		return ownFailure(failure)
	}
	return withText(result), nil
}

// find returns the item of a public name if the asker may use it, and records
// where it may not. To an asker who is not told why not, what it may not use does
// not exist, and takes as long to be looked for. Of a server whose lists were
// never read the name is taken apart instead, and the server decides.
func (d *Direct) find(ctx context.Context, a asker, kind catalog.Kind, name string) (*catalog.Item, *wire.Error) {
	gate := d.options.Gate
	offered := gate.Catalog(ctx)
	item, usable := d.lookup(offered, a, kind, name)
	if !usable {
		gate.Settle(ctx)
		offered = gate.Catalog(ctx)
		item, usable = d.lookup(offered, a, kind, name)
	}
	if usable {
		return item, nil
	}
	var refusal *wire.Error
	switch {
	case !gate.Explained(a.caller): // what it is not told is not put into words
	case item != nil:
		refusal = gate.Refusal(a.caller, item)
	default:
		if item, refusal = d.unlisted(offered, kind, name); item != nil && refusal == nil {
			return item, nil
		}
	}
	missing := wire.Errorf(wire.CodeInvalidParams, "%s '%s' not found, or access denied", kind, name)
	if item == nil {
		item = &catalog.Item{Ref: catalog.Ref{Kind: kind, Name: name}}
	}
	if refusal == nil {
		refusal = missing
	}
	gate.Refused(a.use(item, kind.UseMethod(), nil), refusal)
	if !gate.Explained(a.caller) {
		return nil, missing
	}
	return nil, refusal
}

// lookup returns the item of a public name, nil where there is none, and whether
// the asker may use it.
func (d *Direct) lookup(offered *catalog.Snapshot, a asker, kind catalog.Kind, name string) (item *catalog.Item, usable bool) {
	item = offered.Names(kind, d.maxName(a.Session)).Lookup(name)
	return item, item != nil && d.options.Gate.May(a.caller, item)
}

// unlisted returns an item of which only the name is known, of a server that has
// listed nothing yet, or why its server has not; nil, nil where no server could
// have it.
func (d *Direct) unlisted(offered *catalog.Snapshot, kind catalog.Kind, name string) (*catalog.Item, *wire.Error) {
	prefix, own, ok := catalog.SplitPublic(name)
	if !ok || own == "" {
		return nil, nil
	}
	for _, server := range offered.Servers() {
		if server.Prefix == prefix && !server.Known {
			return &catalog.Item{Ref: catalog.Ref{Server: server.Name, Kind: kind, Name: own}}, nil
		}
	}
	return nil, d.options.Gate.Explain(prefix)
}

// ownFailure turns a failure of ours into a result, which is what a model gets
// to see; errors of the server, and unknown names, stay errors.
func ownFailure(e *wire.Error) (json.RawMessage, *wire.Error) {
	if e.Raw != nil {
		return nil, e
	}
	switch e.Code {
	case wire.CodeUnavailable, wire.CodeTimeout, wire.CodeRefused, wire.CodeBusy:
		text := wire.Quote(e.Message)
		return append(append(json.RawMessage(`{"content":[{"type":"text","text":`), text...), `}],"isError":true}`...), nil
	}
	return nil, e
}

// withText puts the JSON of a structured result in front as text where there is
// no content, since clients that know no structured results would show nothing.
func withText(result json.RawMessage) json.RawMessage {
	content := wire.ValueStart(result, "content")
	if content != nil && !bytes.HasPrefix(content, []byte("null")) && !emptyArray(content) {
		return result
	}
	structured := wire.Member(result, "structuredContent")
	if wire.IsNull(structured) {
		return result
	}
	// Of duplicates the last counts.
	if last := wire.Member(result, "content"); !wire.IsNull(last) && !emptyArray(last) {
		return result
	}
	block := append(append(json.RawMessage(`[{"type":"text","text":`), wire.Quote(string(structured))...), `}]`...)
	return wire.SetMember(result, block, "content")
}

// emptyArray reports whether an array without elements begins there.
func emptyArray(raw json.RawMessage) bool {
	rest, ok := bytes.CutPrefix(raw, []byte("["))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("]"))
}

// getPrompt answers prompts/get.
func (d *Direct) getPrompt(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "prompts/get: parameter \"name\" is missing or no text")
	}
	item, refusal := d.find(ctx, a, catalog.Prompt, name)
	if refusal != nil {
		return nil, refusal
	}
	params = wire.SetMember(params, wire.Quote(item.Name), "name")
	return d.options.Gate.Do(ctx, a.use(item, item.Kind.UseMethod(), params))
}

// complete answers completion/complete for a prompt or a resource template.
func (d *Direct) complete(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	var item *catalog.Item
	var refusal *wire.Error
	switch kind, _ := wire.String(wire.Member(params, "ref", "type")); kind {
	case "ref/prompt":
		name, _ := wire.String(wire.Member(params, "ref", "name"))
		if item, refusal = d.find(ctx, a, catalog.Prompt, name); refusal == nil {
			params = wire.SetMember(params, wire.Quote(item.Name), "ref", "name")
		}
	case "ref/resource":
		uri, _ := wire.String(wire.Member(params, "ref", "uri"))
		if item, uri, refusal = d.locate(ctx, a, uri); refusal == nil {
			params = wire.SetMember(params, wire.Quote(uri), "ref", "uri")
		}
	default:
		return nil, wire.Errorf(wire.CodeInvalidParams, "completion/complete: ref.type %q is none of ref/prompt, ref/resource", kind)
	}
	if refusal != nil {
		return nil, refusal
	}
	if server := d.options.Gate.Catalog(ctx).Server(item.Server); server != nil && server.Known && !server.Completions {
		return json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil
	}
	return d.options.Gate.Do(ctx, a.use(item, "completion/complete", params))
}
