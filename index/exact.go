package index

import (
	"context"
	"strings"

	"mcpproxy/mcp/catalog"
)

// How exactly a query is the name of an item.
const (
	sameLetters = 1 + iota // name, or server and name, but for case, spaces and separators
	sameName               // name but for case
	sameID                 // server:name or server__name but for case
)

// exactness says how exactly a text names an item, 0 = not.
func exactness(text string, it *catalog.Item, server Server) int {
	names := []string{it.Ref.Name}
	if it.Override != nil && it.Override.Name != "" {
		names = append(names, it.Override.Name)
	}
	level := 0
	for _, name := range names {
		for _, prefix := range []string{it.Server, server.Prefix} {
			if prefix == "" {
				continue
			}
			if strings.EqualFold(text, prefix+":"+name) || strings.EqualFold(text, prefix+catalog.Separator+name) {
				return sameID
			}
			if k := key(text); k != "" && (k == key(name) || k == key(prefix)+key(name)) {
				level = max(level, sameLetters)
			}
		}
		if strings.EqualFold(text, name) {
			level = max(level, sameName)
		}
	}
	return level
}

// raiseExact puts the items that the query names before all others, the more
// exactly the higher. It returns how exactly each is named.
func (s *scratch) raiseExact(ctx context.Context, l *lookup, text string, servers map[string]Server) (map[uint32]int, error) {
	k := key(text)
	if k == "" || len(text) > 2*maxHead {
		return nil, nil
	}
	top := 0.0
	for _, item := range s.items {
		top = max(top, s.total[item])
	}
	levels := map[uint32]int{}
	err := l.each(ctx, keyField, k, false, func(p posting) bool {
		it := l.filter.items[p.item]
		if level := exactness(text, it, servers[it.Server]); level > 0 && l.filter.passes(p.item) {
			s.see(p.item)
			s.total[p.item] += float64(level) * (top + 1)
			levels[p.item] = level
		}
		return true
	})
	return levels, err
}
