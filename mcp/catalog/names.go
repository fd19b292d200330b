package catalog

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// Separator stands between the server's prefix and the item's own name. No
// server name contains it, so its first occurrence ends the prefix.
const Separator = "__"

// Limits of public names in bytes.
const (
	DefaultMaxName = 64
	hashLength     = 8
	// MinMaxName leaves room for a start, "_" and the hash.
	MinMaxName = 16
)

// Names maps public names to items and back, for one kind and one length.
type Names struct {
	byPublic map[string]*Item
	public   map[Ref]string
	ordered  []*Item
}

// newNames gives every item a name of its own. Plain names are given first, so
// that a name that had to be made up never takes the plain name of another
// item; within each group the order of the servers decides.
func newNames(servers []*Server, kind Kind, max int) *Names {
	n := &Names{byPublic: map[string]*Item{}, public: map[Ref]string{}}
	var odd []*Item
	prefix := map[string]string{}
	for _, server := range servers {
		prefix[server.Name] = server.Prefix
		for _, item := range server.Items(kind) {
			n.ordered = append(n.ordered, item)
			name := server.Prefix + Separator + item.ownName()
			if !fits(name, max) || n.byPublic[name] != nil {
				odd = append(odd, item)
				continue
			}
			n.set(item, name)
		}
	}
	for _, item := range odd {
		for attempt := 0; ; attempt++ {
			name := mangle(prefix[item.Server], item, max, attempt)
			if n.byPublic[name] == nil {
				n.set(item, name)
				break
			}
		}
	}
	return n
}

func (n *Names) set(item *Item, name string) {
	n.byPublic[name] = item
	n.public[item.Ref] = name
}

// Lookup returns the item of a public name, nil if there is none.
func (n *Names) Lookup(public string) *Item { return n.byPublic[public] }

// Public returns the public name of an item.
func (n *Names) Public(item *Item) string { return n.public[item.Ref] }

// Ordered returns all items in the order of servers and upstream lists.
func (n *Names) Ordered() []*Item { return n.ordered }

func (it *Item) ownName() string {
	if it.Override != nil && it.Override.Name != "" {
		return it.Override.Name
	}
	return it.Name
}

// fits reports whether model APIs take the name as it is.
func fits(name string, max int) bool {
	if len(name) > max {
		return false
	}
	for i := range len(name) {
		if !nameByte(name[i]) || i == 0 && (name[i] == '-' || digit(name[i])) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || c == '_' || c == '-'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// mangle makes a name of legal characters that fits: the start of the plain
// name, "_" and a hash of server and item. It depends on nothing else, so every
// instance finds the same one.
func mangle(prefix string, item *Item, max, attempt int) string {
	seed := item.Server + "\x00" + item.Name
	if attempt > 0 {
		seed += "\x00" + strconv.Itoa(attempt)
	}
	sum := sha256.Sum256([]byte(seed))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashLength]
	start := legal(prefix + Separator + item.ownName())
	if room := max - hashLength - 1; len(start) > room {
		start = start[:room]
	}
	return start + "_" + hash
}

// legal replaces each run of illegal characters by one "_".
func legal(name string) string {
	var b strings.Builder
	gap := false
	for i := range len(name) {
		c := name[i]
		switch {
		case !nameByte(c):
			if !gap {
				b.WriteByte('_')
			}
			gap = true
			continue
		case b.Len() == 0 && (digit(c) || c == '-'):
			b.WriteByte('_')
		}
		gap = false
		b.WriteByte(c)
	}
	return b.String()
}

// SplitPublic splits a name that the catalog does not know at the first
// separator.
func SplitPublic(public string) (prefix, name string, ok bool) {
	return strings.Cut(public, Separator)
}
