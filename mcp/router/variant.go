package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// maxReason is how many characters the reason of a call may have.
const maxReason = 1000

// variants are the tiers that have a tool to call through.
func variants() []catalog.Tier {
	return []catalog.Tier{catalog.Read, catalog.Write, catalog.Destructive}
}

// variantName is the tool through which tools of a tier are called.
func variantName(tier catalog.Tier) string { return "call_tool_" + tier.String() }

// sensitivities are what a caller can say of the data that it handles.
func sensitivities() []string { return []string{"public", "internal", "private", "unknown"} }

// callVariant is the tool that calls tools of a tier and of the lower ones.
func (r *Router) callVariant(tier catalog.Tier) Builtin {
	description := map[catalog.Tier]string{
		catalog.Read:        "Calls a tool that only reads, one whose call_with is call_tool_read.",
		catalog.Write:       "Calls a tool that may change things but destroys nothing, one whose call_with is call_tool_write.",
		catalog.Destructive: "Calls any tool, also one that may destroy something.",
	}[tier]
	return Builtin{
		Name: variantName(tier),
		Definition: func(auth.Caller) json.RawMessage {
			return face{
				name: variantName(tier), title: "Call a tool: " + tier.String(), description: description,
				schema: schema{
					Properties: map[string]property{
						"name":                    {Type: "string", Description: "server:tool"},
						"args":                    {Type: "object"},
						"args_json":               {Type: "string", Description: "args as text"},
						"intent_data_sensitivity": {Type: "string", Enum: sensitivities()},
						"intent_reason":           {Type: "string"},
					},
					Required: []string{"name"},
				},
				readOnly: tier == catalog.Read, destructive: tier == catalog.Destructive, open: true, maxResult: r.settings().MaxResult,
			}.define()
		},
		Call: func(ctx context.Context, a asker, raw json.RawMessage) (json.RawMessage, *wire.Error) {
			return r.callThrough(ctx, a, tier, raw)
		},
	}
}

// errand is what a caller asks a variant to do.
type errand struct {
	name, intent string
	args         json.RawMessage // an object
}

// callThrough calls a tool through the variant of a tier.
func (r *Router) callThrough(ctx context.Context, a asker, tier catalog.Tier, raw json.RawMessage) (json.RawMessage, *wire.Error) {
	o, err := parseErrand(raw)
	if err != nil {
		r.rejected(a, tier, o, err)
		return textResult(err.Error(), true), nil
	}
	a.variant, a.intent = tier.String(), o.intent
	item, refusal := r.seek(ctx, a, r.called(a, tier, o.name))
	if refusal != nil {
		return textResult(r.helped(ctx, a, o.name, refusal), true), nil
	}
	use := a.use(item, catalog.Tool.UseMethod(), callParams(item.Name, o.args, a.meta))
	use.Validate = true
	use.Check = func(item *catalog.Item) *wire.Error { return r.stillWithin(item, tier) }
	result, failure := toolResult(r.options.Gate.Do(ctx, use))
	if failure != nil {
		return r.variantFailure(item, failure)
	}
	if r.options.Pages != nil {
		result = r.options.Pages.Fit(ctx, a, item, result)
	}
	return result, nil
}

// called is a tool in either notation, which is not of a higher tier than the
// variant.
func (r *Router) called(a asker, tier catalog.Tier, name string) wanted {
	max := r.maxName(a.Session)
	reached := func(server string) bool { return r.options.Gate.Reaches(a.caller, server) }
	w := wanted{
		kind: catalog.Tool, name: name, named: true,
		lookup: func(offered *catalog.Snapshot) *catalog.Item { return eitherName(offered, max, name, reached) },
		check:  func(item *catalog.Item) *wire.Error { return r.aboveVariant(item, tier) },
	}
	for _, mark := range []string{nameMark, catalog.Separator} {
		if prefix, own, ok := strings.Cut(name, mark); ok {
			w.prefix, w.own = prefix, own
			break
		}
	}
	return w
}

// stillWithin is aboveVariant for a tool once its server has been asked. Of one that
// is not among what the server offers nobody knows the tier: only the highest variant
// leaves it to the server.
func (r *Router) stillWithin(item *catalog.Item, tier catalog.Tier) *wire.Error {
	if item.Raw == nil && tier < catalog.Destructive {
		return wire.Errorf(wire.CodeRefused, "server %s has not said that it has a tool %s; %s finds what it has", item.Server, shorten(item.Name), retrieveName)
	}
	return r.aboveVariant(item, tier)
}

// aboveVariant refuses a tool that needs a higher variant, unless the configuration
// lets that pass.
func (r *Router) aboveVariant(item *catalog.Item, tier catalog.Tier) *wire.Error {
	needed := r.options.Gate.Tier(item)
	if needed <= tier {
		return nil
	}
	text := fmt.Sprintf("tool %s of server %s is called with %s, not %s: its annotations make it %s", item.Name, item.Server, variantName(needed), variantName(tier), needed)
	if r.settings().LenientVariants {
		r.options.Warn(text + "; it was let through (intent_declaration.strict_server_validation: false)")
		return nil
	}
	return wire.Errorf(wire.CodeRefused, "%s", text)
}

// helped is the text of a refusal; where nothing of that name is there, with what
// can be done about it.
func (r *Router) helped(ctx context.Context, a asker, name string, refusal *wire.Error) string {
	if refusal.Code != wire.CodeInvalidParams {
		return refusal.Message
	}
	text := refusal.Message + "; " + retrieveName + " finds tools by what they do"
	if r.options.Search != nil {
		if meant := r.options.Search.meant(a.caller, r.options.Gate.Catalog(ctx), name); meant != "" {
			text += fmt.Sprintf(", did you mean %q?", meant)
		}
	}
	return text
}

// rejected records a call of which the arguments are wrong.
func (r *Router) rejected(a asker, tier catalog.Tier, o errand, err error) {
	a.variant, a.intent = tier.String(), o.intent
	item := &catalog.Item{Ref: catalog.Ref{Kind: catalog.Tool, Name: shorten(o.name)}}
	r.options.Gate.Rejected(a.use(item, catalog.Tool.UseMethod(), nil), err.Error())
}

// variantFailure is a failure as the result of a variant: the client's request was
// right, so what is wrong with the call is for the model to read. An error of the
// server stays one. A schema that is longer than an answer may be is not shown whole.
func (r *Router) variantFailure(item *catalog.Item, failure *wire.Error) (json.RawMessage, *wire.Error) {
	if failure.Raw != nil {
		return nil, failure
	}
	text := failure.Message
	if limit := r.settings().ResponseLimit; limit > 0 && utf8.RuneCountInString(text) > max(limit, tersely) {
		rest := fmt.Sprintf(` (cut, %s {"tool_ids": [%s]} gives the schema)`, describeName, wire.Quote(fullName(item)))
		text = clipped(text, max(limit, tersely)-utf8.RuneCountInString(rest)-1) + rest
	}
	return textResult(text, true), nil
}

// parseErrand reads the arguments of a variant, in the order of the contract: name,
// intent, arguments.
func parseErrand(raw json.RawMessage) (o errand, err error) {
	args, err := parseArguments(raw)
	if err != nil {
		return o, err
	}
	if o.name, err = args.text("name"); err != nil {
		return o, err
	}
	if strings.TrimSpace(o.name) == "" {
		return o, badArgument("argument \"name\" is blank: it is a tool as retrieve_tools names it, \"server:tool\"")
	}
	if o.intent, err = intentOf(args); err != nil {
		return o, err
	}
	if o.args, err = argsOf(args); err != nil {
		return o, err
	}
	return o, args.only("name", "args", "args_json", "intent_data_sensitivity", "intent_reason")
}

// intentOf is what a caller says a call is for.
func intentOf(args arguments) (string, error) {
	var parts []string
	if args.has("intent_data_sensitivity") {
		word, err := args.oneOf("intent_data_sensitivity", sensitivities())
		if err != nil {
			return "", err
		}
		parts = append(parts, word)
	}
	if args.has("intent_reason") {
		reason, err := args.text("intent_reason")
		if err != nil {
			return "", err
		}
		if n := utf8.RuneCountInString(reason); n > maxReason {
			return "", badArgument("argument \"intent_reason\" has %d characters; it may have %d", n, maxReason)
		}
		parts = append(parts, reason)
	}
	return strings.Join(parts, ": "), nil
}

// argsOf are the arguments for the tool, an object also where there are none.
func argsOf(args arguments) (json.RawMessage, error) {
	var forms []json.RawMessage
	for _, form := range []struct{ name, wrong string }{
		{"args", `argument "args" must be an object, as in {"args": {"path": "a.txt"}}`},
		{"args_json", `argument "args_json" must be the text of a JSON object`},
	} {
		raw := args[form.name]
		// Some models write the object as text, also in args.
		text, written := wire.String(raw)
		switch {
		case !args.has(form.name), written && strings.TrimSpace(text) == "":
			continue
		case written:
			raw = json.RawMessage(text)
		case form.name == "args_json":
			raw = nil
		}
		if !isObject(raw) {
			return nil, badArgument("%s", form.wrong)
		}
		forms = append(forms, raw)
	}
	switch {
	case len(forms) == 0:
		return json.RawMessage(`{}`), nil
	case len(forms) == 2 && !bytes.Equal(catalog.Normal(forms[0]), catalog.Normal(forms[1])):
		return nil, badArgument("arguments \"args\" and \"args_json\" differ: give one of them")
	}
	return forms[0], nil
}

func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) && json.Valid(raw)
}

// callParams are the params of a tools/call, with the _meta of the client.
func callParams(name string, args, meta json.RawMessage) json.RawMessage {
	params := slices.Concat([]byte(`{"name":`), wire.Quote(name), []byte(`,"arguments":`), args)
	if !wire.IsNull(meta) {
		params = slices.Concat(params, []byte(`,"_meta":`), meta)
	}
	return append(params, '}')
}
