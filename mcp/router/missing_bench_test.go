package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
)

// hiding is a router of an agent that may use one of two servers with so many
// items each.
func hiding(items int) *Router {
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
	return NewDirect(Options{
		Gate:    policy.NewGate(u, rules, policy.Options{}),
		Callers: auth.Holder(func(context.Context) (auth.Caller, error) { return agent, nil }, ""),
		Warn:    func(string) {},
	})
}

// hiddenPairs are pairs of requests: for what is out of scope, and for what does not
// exist, with names of one length.
func hiddenPairs() map[string][3]string {
	name := func(server string) string { return fmt.Sprintf(`{"name":"%s__item7"}`, server) }
	uri := func(server string) string { return fmt.Sprintf(`{"uri":"%s:item7"}`, server) }
	ref := func(server string) string {
		return fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"%s__item7"},"argument":{"name":"a","value":""}}`, server)
	}
	marked := func(server string) string { return fmt.Sprintf(`{"uri":"%s|%s:item7"}`, server, server) }
	return map[string][3]string{
		"tool":       {"tools/call", name("hers"), name("nono")},
		"prompt":     {"prompts/get", name("hers"), name("nono")},
		"completion": {"completion/complete", ref("hers"), ref("nono")},
		"resource":   {"resources/read", uri("hers"), uri("nono")},
		"marked":     {"resources/read", marked("hers"), marked("nono")},
	}
}

// BenchmarkRefusedAgainstMissing measures what it costs to refuse what is out of
// scope, in turns with what does not exist, so that a busy machine burdens both; the
// figures are medians. The ratio is what somebody could tell one from the other by.
func BenchmarkRefusedAgainstMissing(b *testing.B) {
	d, s := hiding(500), session()
	for what, pair := range hiddenPairs() {
		b.Run(what, func(b *testing.B) {
			refused, missing := make([]time.Duration, b.N), make([]time.Duration, b.N)
			ask := func(params string) time.Duration {
				begun := time.Now()
				if _, failure := d.Handle(b.Context(), s, pair[0], json.RawMessage(params)); failure == nil {
					b.Fatal("it was let through")
				}
				return time.Since(begun)
			}
			ask(pair[1]) // makes the names
			for i := range b.N {
				if i%2 == 0 {
					refused[i], missing[i] = ask(pair[1]), ask(pair[2])
				} else {
					missing[i], refused[i] = ask(pair[2]), ask(pair[1])
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
