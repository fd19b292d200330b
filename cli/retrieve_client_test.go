//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// retrieving starts an instance in mode retrieve_tools in the folder of others,
// with a client that has said hello.
func retrieving(t *testing.T, dir string, args ...string) *proxy {
	t.Helper()
	p := startProxyIn(t, dir, "", append([]string{"--mode", "retrieve_tools"}, args...)...)
	p.initialize("")
	return p
}

// search is the answer of retrieve_tools; members are more arguments.
func (p *proxy) search(query string, members ...string) json.RawMessage {
	p.t.Helper()
	m := p.tool("retrieve_tools", "{"+strings.Join(append([]string{fmt.Sprintf(`"query":%q`, query)}, members...), ",")+"}")
	answer := json.RawMessage(m.text())
	if refusalOf(m) != "" || !json.Valid(answer) {
		p.t.Fatalf("retrieve_tools %q gave %s", query, m.Raw)
	}
	return answer
}

// foundIn are the names in an answer of retrieve_tools, in order.
func foundIn(answer json.RawMessage) (names []string) {
	var entries []struct{ Name, ID string }
	_ = json.Unmarshal(at(answer, "tools"), &entries) // what is no answer has none
	for _, e := range entries {
		names = append(names, e.Name+e.ID)
	}
	return names
}

// awaitFound searches until all these are found: a server may not say what it
// has within the time that a search waits for it.
func (p *proxy) awaitFound(query string, names ...string) {
	p.t.Helper()
	awaitUntil(p.t, answerTime, fmt.Sprintf("%q are found", names), func() bool {
		found := foundIn(p.search(query, `"limit":100`))
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(found, name) })
	})
}

// through calls a tool through the variant of a tier.
func (p *proxy) through(tier, name, args string) message {
	p.t.Helper()
	return p.tool("call_tool_"+tier, fmt.Sprintf(`{"name":%q,"args":%s}`, name, args))
}

// moonStub is a server with one of everything about the moon, a tool of each
// tier, and the tool long, whose result is cut.
func moonStub(t *testing.T, name string) *upstreamStub {
	t.Helper()
	const look, change, wipe = `"annotations":{"readOnlyHint":true}`, `"annotations":{"destructiveHint":false}`, `"annotations":{"destructiveHint":true}`
	tool := func(name, hints string) string {
		return fmt.Sprintf(`{"name":%q,"description":"About the moon.","inputSchema":{"type":"object"},%s}`, name, hints)
	}
	return newStub(t, name, fmt.Sprintf(`"tools":[%s,%s,%s,%s],"calls":{"long":{"bytes":30000}},"prompts":[{"name":"p","description":"The moon."}],
		"resources":[{"uri":"%s:1","name":"one","description":"The moon."}],"templates":[{"uriTemplate":"%s-t:{n}","name":"t","description":"The moon."}]`,
		tool("r", look), tool("w", change), tool("d", wipe), tool("long", look), name, name))
}

// moonPaths are all ways in mode retrieve_tools to use something of a server of
// moonStub.
func moonPaths(server string) map[string][2]string {
	all := paths(server)
	all["tool"] = [2]string{"tools/call", fmt.Sprintf(`{"name":"describe_tool","arguments":{"tool_ids":["%s:r"]}}`, server)}
	for _, tier := range []string{"read", "write", "destructive"} {
		for _, mark := range []string{":", "__"} {
			all[tier+mark] = [2]string{"tools/call", fmt.Sprintf(`{"name":"call_tool_%s","arguments":{"name":"%s%sr"}}`, tier, server, mark)}
		}
	}
	return all
}

// moonShows is everything that a client of mode retrieve_tools sees.
func moonShows(p *proxy) string {
	p.t.Helper()
	return shows(p) + string(p.call("tools/list", "").Result) +
		string(p.search("moon", `"types":["tool","resource","prompt"],"limit":100,"include_disabled":true,"include_stats":true,"debug":true,"include_session_risk_warning":true`))
}
