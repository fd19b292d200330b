package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"mcpproxy/mcp/catalog"
)

// layout is the form of what is indexed and of the folder. It is part of every
// generation, so that another build of the program never reads a folder whose
// words were split in another way.
const layout = "2"

// Server is what the search knows of a server besides its items.
type Server struct {
	// Prefix stands in front of the public names of its items, "" = its name.
	Prefix string
	// Description is what the server says of itself: title, description,
	// instructions. Its start is searched with little weight.
	Description string
}

// Source is the set of items to be searched. Items may come in any order; an
// item must not occur twice. Servers may lack servers.
type Source struct {
	Items   []*catalog.Item
	Servers map[string]Server
}

// FromSnapshot is the Source of all items of a snapshot; descriptions are those
// of the servers by name, nil where there are none.
func FromSnapshot(s *catalog.Snapshot, descriptions map[string]string) Source {
	source := Source{Servers: map[string]Server{}}
	for _, server := range s.Servers() {
		source.Servers[server.Name] = Server{server.Prefix, descriptions[server.Name]}
		for _, kind := range catalog.Kinds() {
			source.Items = append(source.Items, server.Items(kind)...)
		}
	}
	return source
}

// Name is the name under which results are ordered and shown: server:name.
func Name(it *catalog.Item) string { return it.Server + ":" + it.Ref.Name }

// ordered returns the items by name, then kind: the order of equal scores.
func (s Source) ordered() []*catalog.Item {
	type named struct {
		name string
		item *catalog.Item
	}
	list := make([]named, len(s.Items))
	for i, it := range s.Items {
		list[i] = named{Name(it), it}
	}
	slices.SortStableFunc(list, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.item.Kind, b.item.Kind),
			cmp.Compare(a.item.Server, b.item.Server))
	})
	items := make([]*catalog.Item, len(list))
	for i := range list {
		items[i] = list[i].item
	}
	return items
}

// Generation names all that is indexed of a Source, in hexadecimal: equal
// sources have equal generations in every process, other sources others.
func (s Source) Generation() string { return s.generation(s.ordered()) }

func (s Source) generation(items []*catalog.Item) string {
	sum := sha256.New()
	b := frame(nil, layout)
	last := ""
	for i, it := range items {
		if i == 0 || it.Server != last {
			server := s.Servers[it.Server]
			b = frame(b, "server", it.Server, server.Prefix, server.Description)
			last = it.Server
		}
		b = frame(b, it.Server, string(it.Kind), it.Ref.Name, it.Hash())
		if o := it.Override; o != nil {
			b = frame(b, "override", o.Name, o.Description)
		}
		_, _ = sum.Write(b)
		b = b[:0]
	}
	_, _ = sum.Write(b)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// frame appends texts such that no two lists of texts look alike.
func frame(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(strconv.AppendInt(b, int64(len(text)), 10), ':')
		b = append(b, text...)
	}
	return b
}
