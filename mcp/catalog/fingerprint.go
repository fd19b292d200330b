package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"mcpproxy/mcp/wire"
)

// sums are the hashes of an item, made when they are first asked for.
type sums struct {
	raw, normal string
}

// Hash is the SHA-256 of the raw definition in hexadecimal.
func (it *Item) Hash() string {
	if s := it.sums.Load(); s != nil {
		return s.raw
	}
	sum := sha256.Sum256(it.Raw)
	s := &sums{raw: hex.EncodeToString(sum[:])}
	it.sums.Store(s)
	return s.raw
}

// Fingerprint names the definition as a person would have to review it: the
// SHA-256 of all that it says, in hexadecimal. The order of the members of
// objects, white space, and how numbers and texts are written do not matter;
// any other difference does. What a resource tells of its content of the moment
// (size, annotations.lastModified) is no part of its definition.
func (it *Item) Fingerprint() string {
	raw := it.Hash()
	if s := it.sums.Load(); s.normal != "" {
		return s.normal
	}
	sum := sha256.Sum256(it.Normal())
	s := &sums{raw: raw, normal: hex.EncodeToString(sum[:])}
	it.sums.Store(s)
	return s.normal
}

// Normal is the definition in the one form that Fingerprint hashes, as JSON.
func (it *Item) Normal() json.RawMessage {
	raw := it.Raw
	if it.Kind == Resource || it.Kind == Template {
		raw = wire.DeleteMember(raw, "size")
		if notes := wire.Member(raw, "annotations"); wire.Member(notes, "lastModified") != nil {
			if notes = wire.DeleteMember(notes, "lastModified"); !isEmpty(notes) {
				raw = wire.SetMember(raw, notes, "annotations")
			} else {
				raw = wire.DeleteMember(raw, "annotations")
			}
		}
	}
	return Normal(raw)
}

// isEmpty reports whether an object has no members.
func isEmpty(obj json.RawMessage) bool {
	for range wire.Members(obj) {
		return false
	}
	return true
}
