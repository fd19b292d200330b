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
func (d *Direct) callTool(ctx context.Context, s *wire.Session, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "tools/call: parameter \"name\" is missing or no text")
	}
	item, refusal := d.find(ctx, s, catalog.Tool, name)
	if refusal != nil {
		return ownFailure(refusal)
	}
	d.warm.Store(true)
	return toolResult(d.options.Gate.Do(ctx, d.toolUse(s, item, params)))
}

// Start implements wire.Starter for tool calls, once the catalog is in memory.
func (d *Direct) Start(s *wire.Session, method string, params json.RawMessage, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	if method != "tools/call" || !d.warm.Load() {
		return nil, false
	}
	name, _ := wire.String(wire.Member(params, "name"))
	item := d.options.Gate.Loaded().Names(catalog.Tool, d.maxName(s)).Lookup(name)
	if item == nil {
		return nil, false
	}
	return d.options.Gate.Start(d.toolUse(s, item, params), func(result json.RawMessage, failure *wire.Error) {
		done(toolResult(result, failure))
	})
}

// toolUse is the call of a tool with what the server is to see of it: its own
// name, and arguments also where there are none.
func (d *Direct) toolUse(s *wire.Session, item *catalog.Item, params json.RawMessage) policy.Use {
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
	return policy.Use{Caller: d.options.Caller, Session: s, Item: item, Method: "tools/call", Params: params}
}

func toolResult(result json.RawMessage, failure *wire.Error) (json.RawMessage, *wire.Error) {
	if failure != nil {
		return ownFailure(failure)
	}
	return withText(result), nil
}

// find returns the item of a public name. Of a server whose lists were never
// read the name is taken apart instead, and the server decides.
func (d *Direct) find(ctx context.Context, s *wire.Session, kind catalog.Kind, name string) (*catalog.Item, *wire.Error) {
	gate := d.options.Gate
	missing := wire.Errorf(wire.CodeInvalidParams, "%s '%s' not found, or access denied", kind, name)
	item := gate.Catalog(ctx).Names(kind, d.maxName(s)).Lookup(name)
	if item == nil {
		gate.Settle(ctx)
		item = gate.Catalog(ctx).Names(kind, d.maxName(s)).Lookup(name)
	}
	if item != nil {
		if !gate.May(d.options.Caller, item) {
			return nil, missing
		}
		return item, nil
	}
	prefix, own, ok := catalog.SplitPublic(name)
	if !ok || own == "" {
		return nil, missing
	}
	for _, server := range gate.Catalog(ctx).Servers() {
		if server.Prefix == prefix && !server.Known {
			return &catalog.Item{Ref: catalog.Ref{Server: server.Name, Kind: kind, Name: own}}, nil
		}
	}
	if refusal := gate.Explain(prefix); refusal != nil {
		return nil, refusal
	}
	return nil, missing
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
func (d *Direct) getPrompt(ctx context.Context, s *wire.Session, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "prompts/get: parameter \"name\" is missing or no text")
	}
	item, refusal := d.find(ctx, s, catalog.Prompt, name)
	if refusal != nil {
		return nil, refusal
	}
	params = wire.SetMember(params, wire.Quote(item.Name), "name")
	return d.options.Gate.Do(ctx, policy.Use{Caller: d.options.Caller, Session: s, Item: item, Method: "prompts/get", Params: params})
}

// complete answers completion/complete for a prompt or a resource template.
func (d *Direct) complete(ctx context.Context, s *wire.Session, params json.RawMessage) (json.RawMessage, *wire.Error) {
	var item *catalog.Item
	var refusal *wire.Error
	switch kind, _ := wire.String(wire.Member(params, "ref", "type")); kind {
	case "ref/prompt":
		name, _ := wire.String(wire.Member(params, "ref", "name"))
		if item, refusal = d.find(ctx, s, catalog.Prompt, name); refusal == nil {
			params = wire.SetMember(params, wire.Quote(item.Name), "ref", "name")
		}
	case "ref/resource":
		uri, _ := wire.String(wire.Member(params, "ref", "uri"))
		if item, uri, refusal = d.locate(ctx, uri); refusal == nil {
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
	return d.options.Gate.Do(ctx, policy.Use{Caller: d.options.Caller, Session: s, Item: item, Method: "completion/complete", Params: params})
}
