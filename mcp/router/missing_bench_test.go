package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// hiding are the routers of direct mode and of retrieve_tools, of an agent that may use one of two servers with so many
// items each.
func hiding(items int) [2]*Router {
	u := &upstreams{}
	var servers []*catalog.Server
	for _, name := range []string{"mine", "hers"} {
		s := &catalog.Server{Name: name, Prefix: name, Known: true, HasResources: true, Completions: true}
		for _, kind := range catalog.Kinds() {
			var all []*catalog.Item
			for i := range items {
				own := fmt.Sprintf("item%d", i)
				if kind == catalog.Resource || kind == catalog.Template {
					own = fmt.Sprintf("%s:item%d", name, i)
				}
				all = append(all, catalog.New(catalog.Ref{Server: name, Kind: kind, Name: own}, fmt.Appendf(nil, `{"name":%q}`, own), nil))
			}
			s.SetItems(kind, all)
		}
		servers = append(servers, s)
	}
	// A second server in reach, so that a URI that nobody lists is not taken
	// for one of the only server.
	servers = append(servers, &catalog.Server{Name: "also", Prefix: "also", Known: true, HasResources: true})
	u.set(servers...)
	rules := policy.Rules{Servers: map[string]policy.Rule{"mine": {}, "hers": {}, "also": {}}}
	agent := auth.Caller{Kind: auth.Agent, Token: "t", Tier: catalog.Destructive, Servers: []string{"mine", "also"}}
	options := Options{
		Gate:    policy.NewGate(u, rules, policy.Options{}),
		Callers: auth.Holder(func(context.Context) (auth.Caller, error) { return agent, nil }, ""),
		Warn:    func(string) {},
	}
	options.Search = NewSearch(SearchOptions{Gate: options.Gate, Settings: func() Settings { return Settings{} }})
	return [2]*Router{NewDirect(options), NewRetrieve(options)}
}

// hiddenPairs are pairs of requests: for what is out of scope, and for what does not
// exist, with names of one length.
func hiddenPairs() map[string]hidden {
	name := func(server string) string { return fmt.Sprintf(`{"name":"%s__item7"}`, server) }
	uri := func(server string) string { return fmt.Sprintf(`{"uri":"%s:item7"}`, server) }
	ref := func(server string) string {
		return fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"%s__item7"},"argument":{"name":"a","value":""}}`, server)
	}
	marked := func(server string) string { return fmt.Sprintf(`{"uri":"%s|%s:item7"}`, server, server) }
	through := func(tool, args string) func(string) string {
		return func(server string) string {
			return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, fmt.Sprintf(args, server))
		}
	}
	variant, described := through("call_tool_read", `{"name":"%s:item7"}`), through("describe_tool", `{"tool_ids":["%s:item7"]}`)
	return map[string]hidden{
		"tool":       {false, "tools/call", name("hers"), name("zork")},
		"prompt":     {false, "prompts/get", name("hers"), name("zork")},
		"completion": {false, "completion/complete", ref("hers"), ref("zork")},
		"resource":   {false, "resources/read", uri("hers"), uri("zork")},
		"marked":     {false, "resources/read", marked("hers"), marked("zork")},
		"variant":    {true, "tools/call", variant("hers"), variant("zork")},
		"describe":   {true, "tools/call", described("hers"), described("zork")},
	}
}

// hidden is a pair of requests: for what is out of scope, and for what is not there.
type hidden struct {
	retrieve         bool // by mode retrieve_tools
	method           string
	refused, missing string
}

// ask is the answer to a request, which must be a refusal.
func (h hidden) ask(tb testing.TB, routers [2]*Router, s *wire.Session, params string) string {
	r := routers[0]
	if h.retrieve {
		r = routers[1]
	}
	result, failure := r.Handle(tb.Context(), s, h.method, json.RawMessage(params))
	if failure == nil && !bytes.Contains(result, []byte("not found, or access denied")) {
		tb.Fatalf("%s was let through: %s", params, result)
	}
	if failure == nil {
		return string(result)
	}
	return fmt.Sprintf("%d %s %s %s", failure.Code, failure.Message, failure.Data, failure.Raw)
}

// BenchmarkRefusedAgainstMissing measures what it costs to refuse what is out of
// scope, in turns with what does not exist, so that a busy machine burdens both; the
// figures are medians. The ratio is what somebody could tell one from the other by.
func BenchmarkRefusedAgainstMissing(b *testing.B) {
	routers, s := hiding(500), session()
	for what, pair := range hiddenPairs() {
		b.Run(what, func(b *testing.B) {
			refused, missing := make([]time.Duration, b.N), make([]time.Duration, b.N)
			ask := func(params string) time.Duration {
				begun := time.Now()
				pair.ask(b, routers, s, params)
				return time.Since(begun)
			}
			ask(pair.refused) // makes the names
			for i := range b.N {
				if i%2 == 0 {
					refused[i], missing[i] = ask(pair.refused), ask(pair.missing)
				} else {
					missing[i], refused[i] = ask(pair.missing), ask(pair.refused)
				}
			}
			slices.Sort(refused)
			slices.Sort(missing)
			r, m := refused[b.N/2], missing[b.N/2]
			b.ReportMetric(float64(r.Nanoseconds()), "refused-ns")
			b.ReportMetric(float64(m.Nanoseconds()), "missing-ns")
			b.ReportMetric(r.Seconds()/m.Seconds(), "refused/missing")
		})
	}
}
