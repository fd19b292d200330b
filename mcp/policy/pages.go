package policy

import (
	"context"
	"slices"

	"mcpproxy/mcp/catalog"
)

// ProfileServers are the servers of a profile, sorted; none of a profile that does
// not exist.
func (g *Gate) ProfileServers(profile string) []string {
	return slices.Sorted(slices.Values(g.law.Load().Profiles[profile].Servers))
}

// Later returns the item of a name as it is now, for whoever wants to see what it
// gave before: ask May and Refusal. One that its server lists no more is judged by
// the tier that it had.
func (g *Gate) Later(ctx context.Context, ref catalog.Ref, tier catalog.Tier) *catalog.Item {
	if server := g.Catalog(ctx).Server(ref.Server); server != nil {
		items := server.Items(ref.Kind)
		if i := slices.IndexFunc(items, func(it *catalog.Item) bool { return it.Name == ref.Name }); i >= 0 {
			return items[i]
		}
	}
	hints := map[catalog.Tier]string{
		catalog.Read: `{"readOnlyHint":true}`, catalog.Write: `{"destructiveHint":false}`, catalog.Destructive: `{"destructiveHint":true}`,
	}
	return catalog.New(ref, nil, &catalog.Override{Annotations: []byte(hints[tier])})
}
