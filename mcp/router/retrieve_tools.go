package router

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpproxy/index"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

const retrieveName = "retrieve_tools"

// retrieveTools is the tool that searches.
func (s *Search) retrieveTools() Builtin {
	return Builtin{
		Name: retrieveName,
		Definition: func(caller auth.Caller) json.RawMessage {
			settings := s.options.Settings()
			description := "Finds tools by what they do. Say product or domain, verb and object, one need per search (\"github create issue\"); a tool's name works too. " +
				"Call what you choose with the tool named in its call_with."
			if names := reachable(s.options.Gate, caller, settings); len(names) > 0 && !settings.Anonymous {
				const servers = " Servers: "
				description += servers + within(names, maxDescription-len(description)-len(servers))
			}
			flag := property{Type: "boolean"}
			texts := property{Type: "array", Items: &property{Type: "string"}}
			return face{
				name: retrieveName, title: "Find tools", description: description,
				schema: schema{
					Properties: map[string]property{
						"query":   {Type: "string"},
						"limit":   {Type: "integer", Minimum: new(1), Maximum: new(index.MaxLimit), Default: settings.ToolsLimit},
						"detail":  {Type: "string", Enum: details(), Description: "compact: signatures for schemas", Default: details()[detailOf(settings.Compact)]},
						"servers": texts,
						"types":   {Type: "array", Items: &property{Type: "string", Enum: typeNames()}},

						"read_only_only": flag, "exclude_destructive": flag, "exclude_open_world": flag,
						"include_stats": flag, "include_disabled": flag, "include_session_risk_warning": flag, "debug": flag,
						"explain_tool": {Type: "string", Description: "name of a tool whose rank is explained"},
					},
					Required: []string{"query"},
				},
				readOnly: true, maxResult: settings.MaxResult,
			}.define()
		},
		Call: func(ctx context.Context, a asker, args json.RawMessage) (json.RawMessage, *wire.Error) {
			q, err := s.query(args)
			if err != nil {
				return textResult(err.Error(), true), nil
			}
			q.MaxName = catalog.MaxName(a.Session.Client().Name, s.options.Settings().MaxName)
			answer, err := s.Find(ctx, a.caller, q)
			if err != nil {
				return textResult("the search failed: "+err.Error(), true), nil
			}
			return textResult(string(encode(answer)), false), nil
		},
	}
}

// maxDescription bounds the descriptions of our tools in bytes: some clients cut
// them at 2,048.
const maxDescription = 1990

// reachable are the servers that a caller can use, in the order of the
// configuration.
func reachable(gate *policy.Gate, caller auth.Caller, settings Settings) (names []string) {
	for _, server := range settings.Servers {
		if gate.Reaches(caller, server) && gate.Explain(server) == nil {
			names = append(names, server)
		}
	}
	return names
}

func details() []string { return []string{"full", "compact"} }

func detailOf(compacted bool) int {
	if compacted {
		return 1
	}
	return 0
}

// typeNames are the kinds of items as a search names them: templates come with
// the resources.
func typeNames() []string { return []string{"tool", "resource", "prompt"} }

// query reads the arguments of a search.
func (s *Search) query(raw json.RawMessage) (Query, error) {
	settings := s.options.Settings()
	q := Query{Limit: settings.ToolsLimit, Compact: settings.Compact}
	args, err := parseArguments(raw)
	if err != nil {
		return q, err
	}
	flags := map[string]*bool{
		"read_only_only": &q.ReadOnly, "exclude_destructive": &q.NotDestructive, "exclude_open_world": &q.ClosedWorld,
		"include_stats": &q.Stats, "include_disabled": &q.Disabled, "include_session_risk_warning": &q.Risk, "debug": &q.Debug,
	}
	known := append([]string{"query", "limit", "detail", "servers", "types", "explain_tool"}, slices.Sorted(maps.Keys(flags))...)
	if err := args.only(known...); err != nil {
		return q, err
	}
	if q.Text, err = args.anyText("query"); err != nil {
		return q, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return q, badArgument("argument \"query\" is blank: say what the tool is to do, as in \"github create issue\"")
	}
	if q.Limit, err = args.clamped("limit", 1, index.MaxLimit, q.Limit); err != nil {
		return q, err
	}
	if args.has("detail") {
		detail, err := args.oneOf("detail", details())
		if err != nil {
			return q, err
		}
		q.Compact = detail == details()[1]
	}
	if q.Servers, err = args.texts("servers"); err != nil {
		return q, err
	}
	types, err := args.texts("types")
	if err != nil {
		return q, err
	}
	for _, name := range types {
		kinds, ok := kindsOf(name)
		if !ok {
			return q, badArgument("types: %q is none of %s%s", shorten(name), strings.Join(typeNames(), ", "), meant(name, typeNames()))
		}
		q.Kinds = append(q.Kinds, kinds...)
	}
	if args.has("explain_tool") {
		if q.Explain, err = args.text("explain_tool"); err != nil {
			return q, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if *flags[name], err = args.flag(name); err != nil {
			return q, err
		}
	}
	return q, nil
}

// kindsOf are the kinds of items that a type of a search names.
func kindsOf(name string) ([]catalog.Kind, bool) {
	switch name {
	case "tool":
		return []catalog.Kind{catalog.Tool}, true
	case "resource":
		return []catalog.Kind{catalog.Resource, catalog.Template}, true
	case "prompt":
		return []catalog.Kind{catalog.Prompt}, true
	}
	return nil, false
}
