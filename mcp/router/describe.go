package router

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

const (
	describeName = "describe_tool"
	// maxDescribed is how many tools are described at once.
	maxDescribed = 50
)

// described is the answer of describe_tool.
type described struct {
	Definitions []json.RawMessage `json:"definitions"`
	Errors      []notDescribed    `json:"errors"`
}

// notDescribed says why a tool is not.
type notDescribed struct {
	ID    string `json:"id"`
	Error string `json:"error"`
	Meant string `json:"did_you_mean,omitempty"`
}

// describeTool is the tool that gives whole definitions. With served the mode lists
// the tools of the servers, and each is called by its public name.
func (s *Search) describeTool(served bool) Builtin {
	return Builtin{
		Name: describeName,
		Definition: func(auth.Caller) json.RawMessage {
			return face{
				name: describeName, title: "Describe tools", description: "Gives whole definitions with schemas.",
				schema: schema{
					Properties: map[string]property{
						"tool_ids": {Type: "array", Items: &property{Type: "string"}, MinItems: 1, MaxItems: maxDescribed, Description: "server:tool"},
					},
					Required: []string{"tool_ids"},
				},
				readOnly: true, maxResult: s.options.Settings().MaxResult,
			}.define()
		},
		Call: func(ctx context.Context, a asker, raw json.RawMessage) (json.RawMessage, *wire.Error) {
			ids, err := toolIDs(raw)
			if err != nil {
				return textResult(err.Error(), true), nil
			}
			return textResult(string(encode(s.describe(ctx, a, ids, served))), false), nil
		},
	}
}

func toolIDs(raw json.RawMessage) ([]string, error) {
	args, err := parseArguments(raw)
	if err == nil {
		err = args.only("tool_ids")
	}
	if err != nil {
		return nil, err
	}
	ids, err := args.texts("tool_ids")
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return nil, badArgument("argument \"tool_ids\" is missing: a list of names, \"server:tool\"")
	case len(ids) > maxDescribed:
		return nil, badArgument("argument \"tool_ids\" has %d names; %d at a time can be described", len(ids), maxDescribed)
	}
	return ids, nil
}

// describe gives the definitions of the tools that the asker may use; all others
// do not exist. The first is given whatever its length, of the rest what the limit
// of an answer leaves room for.
func (s *Search) describe(ctx context.Context, a asker, ids []string, served bool) described {
	gate, settings := s.options.Gate, s.options.Settings()
	max := catalog.MaxName(a.Session.Client().Name, settings.MaxName)
	reached := func(server string) bool { return gate.Reaches(a.caller, server) }
	lookup := func(offered *catalog.Snapshot, id string) *catalog.Item {
		if item := eitherName(offered, max, id, reached); item != nil && gate.May(a.caller, item) {
			return item
		}
		return nil
	}
	offered := gate.Catalog(ctx)
	answer := described{Definitions: []json.RawMessage{}, Errors: []notDescribed{}}
	var items []*catalog.Item
	for _, id := range ids {
		item := lookup(offered, id)
		if item == nil {
			gate.Settle(ctx)
			offered = gate.Catalog(ctx)
			item = lookup(offered, id)
		}
		if item == nil {
			answer.Errors = append(answer.Errors, notDescribed{shorten(id), "not found, or access denied", s.meant(a.caller, offered, id)})
			continue
		}
		items = append(items, item)
	}
	length := utf8.RuneCount(encode(answer))
	for _, item := range items {
		length += leftOut(item, settings.ResponseLimit).length()
	}
	for i, item := range items {
		d := define(item, gate.Tier(item), nil)
		if served {
			d.CallWith = offered.Names(catalog.Tool, max).Public(item)
		}
		definition, left := encode(d), leftOut(item, settings.ResponseLimit)
		more := utf8.RuneCount(definition) + 1 - left.length()
		if limit := settings.ResponseLimit; limit > 0 && length+more > limit && i > 0 {
			answer.Errors = append(answer.Errors, left)
			continue
		}
		length += more
		answer.Definitions = append(answer.Definitions, definition)
	}
	return answer
}

// leftOut is what stands for a definition that finds no room in an answer.
func leftOut(item *catalog.Item, limit int) notDescribed {
	return notDescribed{ID: fullName(item), Error: fmt.Sprintf("left out, since the answer would be longer than %d characters; ask for it by itself", limit)}
}

// length is the number of characters in an answer.
func (n notDescribed) length() int { return utf8.RuneCount(encode(n)) + 1 }

// meant is the tool that a wrong name is most likely a slip of, among those that
// the caller may use; "" for none.
func (s *Search) meant(caller auth.Caller, offered *catalog.Snapshot, id string) string {
	var names []string
	for _, server := range offered.Servers() {
		for _, tool := range server.Tools {
			if s.options.Gate.May(caller, tool) {
				names = append(names, fullName(tool))
			}
		}
	}
	if prefix, own, ok := strings.Cut(id, catalog.Separator); ok && !strings.Contains(prefix, nameMark) {
		id = prefix + nameMark + own
	}
	return nearest(id, names)
}
