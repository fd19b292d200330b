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
func (r *Router) callTool(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "tools/call: parameter \"name\" is missing or no text")
	}
	if b := r.builtins.find(a.caller, name); b != nil {
		a.meta = wire.Member(params, "_meta")
		return b.Call(ctx, a, wire.Member(params, "arguments"))
	}
	if !r.served {
		return nil, r.unknownTool(a, name)
	}
	item, refusal := r.find(ctx, a, catalog.Tool, name)
	if refusal != nil {
		return ownFailure(refusal)
	}
	r.warm.Store(true)
	result, failure := toolResult(r.options.Gate.Do(ctx, a.toolUse(item, params)))
	if failure == nil && r.options.Pages != nil && r.settings().DirectTruncate {
		result = r.options.Pages.Fit(ctx, a, item, result)
	}
	return result, failure
}

// unknownTool is the error for a tool that the mode does not have, and records
// that it was asked for.
func (r *Router) unknownTool(a asker, name string) *wire.Error {
	name = clipped(name, maxEcho)
	missing := wire.Errorf(wire.CodeInvalidParams, "tool '%s' not found, or access denied; tools of servers are found with retrieve_tools and called through call_tool_read, call_tool_write or call_tool_destructive", name)
	r.options.Gate.Refused(a.use(&catalog.Item{Ref: catalog.Ref{Kind: catalog.Tool, Name: name}}, catalog.Tool.UseMethod(), nil), missing)
	return missing
}

// Start implements wire.Starter for tool calls, once the catalog is in memory.
func (r *Router) Start(s *wire.Session, id json.RawMessage, method string, params json.RawMessage, done func(json.RawMessage, *wire.Error)) (cancel func(cause error), started bool) {
	if method != "tools/call" || !r.served || !r.warm.Load() || r.settings().DirectTruncate {
		return nil, false
	}
	caller, ok := r.options.Callers.Present()
	if !ok {
		return nil, false
	}
	name, _ := wire.String(wire.Member(params, "name"))
	if r.builtins.find(caller, name) != nil {
		return nil, false
	}
	item := r.options.Gate.Loaded().Names(catalog.Tool, r.maxName(s)).Lookup(name)
	if item == nil {
		return nil, false
	}
	return r.options.Gate.Start(asker{Session: s, caller: caller, id: id, mode: r.options.Mode}.toolUse(item, params), func(result json.RawMessage, failure *wire.Error) {
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

// ownFailure turns a failure of ours into a result, which is what a model gets
// to see; errors of the server, and unknown names, stay errors.
func ownFailure(e *wire.Error) (json.RawMessage, *wire.Error) {
	if e.Raw != nil {
		return nil, e
	}
	switch e.Code {
	case wire.CodeUnavailable, wire.CodeTimeout, wire.CodeRefused, wire.CodeBusy:
		return textResult(e.Message, true), nil
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
func (r *Router) getPrompt(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	name, ok := wire.String(wire.Member(params, "name"))
	if !ok || name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "prompts/get: parameter \"name\" is missing or no text")
	}
	item, refusal := r.find(ctx, a, catalog.Prompt, name)
	if refusal != nil {
		return nil, refusal
	}
	params = wire.SetMember(params, wire.Quote(item.Name), "name")
	return r.options.Gate.Do(ctx, a.use(item, item.Kind.UseMethod(), params))
}

// complete answers completion/complete for a prompt or a resource template.
func (r *Router) complete(ctx context.Context, a asker, params json.RawMessage) (json.RawMessage, *wire.Error) {
	var item *catalog.Item
	var refusal *wire.Error
	switch kind, _ := wire.String(wire.Member(params, "ref", "type")); kind {
	case "ref/prompt":
		name, _ := wire.String(wire.Member(params, "ref", "name"))
		if item, refusal = r.find(ctx, a, catalog.Prompt, name); refusal == nil {
			params = wire.SetMember(params, wire.Quote(item.Name), "ref", "name")
		}
	case "ref/resource":
		uri, _ := wire.String(wire.Member(params, "ref", "uri"))
		if item, uri, refusal = r.locate(ctx, a, uri); refusal == nil {
			params = wire.SetMember(params, wire.Quote(uri), "ref", "uri")
		}
	default:
		return nil, wire.Errorf(wire.CodeInvalidParams, "completion/complete: ref.type %q is none of ref/prompt, ref/resource", kind)
	}
	if refusal != nil {
		return nil, refusal
	}
	if server := r.options.Gate.Catalog(ctx).Server(item.Server); server != nil && server.Known && !server.Completions {
		return json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil
	}
	return r.options.Gate.Do(ctx, a.use(item, "completion/complete", params))
}
