package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// Patch is a change of some keys of a server's entry.
type Patch struct {
	// Make returns the change as a JSON merge patch (RFC 7396): an object, in
	// which null takes a key away and objects are merged into what is there.
	// before is the entry as the file has it; nobody else changes the file
	// meanwhile. nil changes nothing. A string that is what [Server.Masked]
	// shows of the present value stands for that value.
	Make func(before *Server) (json.RawMessage, error)
	// Whole has the objects in the patch replace what is there.
	Whole bool
	// Hold puts the server into quarantine if the patch changes how it is
	// started or reached, see [Server.Fingerprint].
	Hold bool
	// Check judges the result before it is written; it may be nil.
	Check func(before, after *Server) error
}

// Patched is what an entry was and has become. Nothing in it was changed where
// the two are equal.
type Patched struct {
	Before, After Server
	// Reconnects tells that the server is started or reached in another way.
	Reconnects bool
}

// PatchServer changes keys of the entry of a server and leaves everything else
// in the file, comments included, as it is; of two entries of one name the
// first is changed. It fails with ErrServerNotFound when there is none, with the
// errors of the patch's functions, and with an *Error for a patch that is none
// or an entry that could not be used afterwards; a reference that does not
// resolve here and now is no reason to refuse.
func PatchServer(ctx context.Context, path, name string, p Patch) (Patched, error) {
	var result Patched
	err := edit(ctx, path, change{
		what: fmt.Sprintf("change server %q", name),
		splices: func(doc *document) ([]splice, error) {
			result = Patched{}
			next, err := doc.patched(path, name, p, &result)
			if err != nil || bytes.Equal(next.src, doc.src) {
				return nil, err
			}
			return []splice{{0, len(doc.src), string(next.src)}}, nil
		},
	})
	return result, err
}

// patched is the document after a patch, checked.
func (doc *document) patched(path, name string, p Patch, result *Patched) (*document, error) {
	before := doc.server(name)
	if before == nil {
		return nil, ErrServerNotFound
	}
	result.Before = *before
	raw, err := p.Make(before)
	if err != nil {
		return nil, err
	}
	next := doc
	if raw != nil {
		patch, err := parsePatch(path, raw)
		if err != nil {
			return nil, err
		}
		if err := unmask(path, before, patch); err != nil {
			return nil, err
		}
		m := merging{path: path, name: name, whole: p.Whole}
		if next, err = m.merge(doc, nil, patch.Value.(*hujson.Object)); err != nil {
			return nil, err
		}
	}
	after := next.server(name)
	if after == nil {
		return nil, errors.New("the entry would not be found again")
	}
	result.Reconnects = before.Fingerprint() != after.Fingerprint() || unusable(before) && next != doc
	if p.Hold && result.Reconnects && !after.Quarantined {
		splices, err := next.setQuarantined(next.index(name), true)
		if err != nil {
			return nil, err
		}
		if next, err = parseDocument(path, next.apply(splices)); err != nil {
			return nil, err
		}
		if after = next.server(name); after == nil || !after.Quarantined {
			return nil, errors.New("the server could not be held")
		}
	}
	result.After = *after
	if unusable(after) {
		return nil, after.Err
	}
	if p.Check != nil {
		if err := p.Check(before, after); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// unusable reports whether an entry is wrong for more than what is not set here
// and now.
func unusable(s *Server) bool {
	var unresolved *ReferenceError
	return s.Err != nil && !errors.As(s.Err, &unresolved)
}

func parsePatch(path string, raw json.RawMessage) (*hujson.Value, error) {
	wrong := func(rule string) error { return &Error{File: path, Rule: rule} }
	if bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) > maxBrackets {
		return nil, wrong(fmt.Sprintf("the change has more than %d brackets", maxBrackets))
	}
	v, err := hujson.Parse(raw)
	if err != nil {
		return nil, wrong("the change is not valid JSON")
	}
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, wrong("the change is not an object")
	}
	for i := range obj.Members {
		if memberName(&obj.Members[i]) == "name" {
			return nil, wrong("a server keeps its name; remove it and add another")
		}
	}
	return &v, nil
}

// merging makes a patch in a document, one key after the other.
type merging struct {
	path  string // of the file
	name  string // of the server
	whole bool
}

// merge makes the patch of the object that stands at a path in the entry.
func (m merging) merge(doc *document, at []string, patch *hujson.Object) (*document, error) {
	for i := range patch.Members {
		member := &patch.Members[i]
		key, value := memberName(member), &member.Value
		if len(at) == 0 {
			var err error
			if key, doc, err = m.word(doc, key, value); err != nil {
				return nil, err
			}
		}
		// A copy: at may be the path of several keys.
		below := append(append([]string{}, at...), key)
		inner, isObject := value.Value.(*hujson.Object)
		var err error
		switch {
		case value.Value.Kind() == 'n':
			doc, err = m.remove(doc, at, key)
		case isObject && !m.whole && isObjectAt(doc.at(m.name, below)):
			doc, err = m.merge(doc, below, inner)
		default:
			doc, err = m.set(doc, at, key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// word is the key under which an entry has what the key of a patch is about:
// other programs have other words for some. Where it has both the other one goes.
func (m merging) word(doc *document, key string, value *hujson.Value) (string, *document, error) {
	entry := doc.at(m.name, nil)
	obj, ok := entry.Value.(*hujson.Object)
	if !ok {
		return "", nil, doc.server(m.name).Err
	}
	other := map[string]string{"working_dir": "cwd", "protocol": "type", "enabled": "disabled"}[key]
	if other == "" || find(obj, other) == nil {
		return key, doc, nil
	}
	if other != "disabled" && find(obj, key) == nil && value.Value.Kind() != 'n' {
		return other, doc, nil
	}
	doc, err := m.remove(doc, nil, other)
	return key, doc, err
}

// remove takes a key away, however often it stands there.
func (m merging) remove(doc *document, at []string, key string) (*document, error) {
	for {
		v := doc.at(m.name, at)
		if !isObjectAt(v) {
			return doc, nil
		}
		place := -1
		obj := v.Value.(*hujson.Object)
		for i := range obj.Members {
			if memberName(&obj.Members[i]) == key {
				place = i
			}
		}
		if place < 0 {
			return doc, nil
		}
		var err error
		if doc, err = m.apply(doc, doc.removeItem(v, place)); err != nil {
			return nil, err
		}
	}
}

// set gives a key a value.
func (m merging) set(doc *document, at []string, key string, value *hujson.Value) (*document, error) {
	plain := value.Clone()
	dropNulls(&plain)
	v := doc.at(m.name, at)
	member := find(v.Value.(*hujson.Object), key)
	switch {
	case member == nil:
		text := string(hujson.String(key)) + ": "
		return m.apply(doc, doc.insert(v, func(l layout) string { return text + l.print(plain.Value) }))
	case same(&member.Value, &plain):
		return doc, nil
	}
	below := append(append([]string{}, at...), key)
	if kept := keeps(&member.Value, &plain); kept != nil {
		return m.setList(doc, below, kept, &plain)
	}
	l := layout{unit: doc.unit, lines: bytes.IndexByte(doc.src[v.StartOffset:v.EndOffset], '\n') >= 0}
	l.indent, _ = doc.indent(member.Name.StartOffset)
	return m.apply(doc, []splice{{member.Value.StartOffset, member.Value.EndOffset, doc.lines(l.print(plain.Value))}})
}

// mostItems is up to how many elements lists are changed element by element.
const mostItems = 200

// keeps reports for each element of a list whether it stays when the list becomes
// another one that has it in the same order; nil where nothing would stay.
func keeps(old, new *hujson.Value) []bool {
	a, ok := old.Value.(*hujson.Array)
	b, also := new.Value.(*hujson.Array)
	if !ok || !also || len(a.Elements)+len(b.Elements) > mostItems {
		return nil
	}
	kept, n := make([]bool, len(a.Elements)), 0
	for i := range a.Elements {
		if n < len(b.Elements) && same(&a.Elements[i], &b.Elements[n]) {
			kept[i] = true
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return kept
}

// setList changes a list element by element, so that the comments in it stay.
func (m merging) setList(doc *document, at []string, kept []bool, value *hujson.Value) (*document, error) {
	stay := 0
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i] {
			stay++
			continue
		}
		var err error
		if doc, err = m.apply(doc, doc.removeItem(doc.at(m.name, at), i)); err != nil {
			return nil, err
		}
	}
	for _, e := range value.Value.(*hujson.Array).Elements[stay:] {
		var err error
		if doc, err = m.apply(doc, doc.insert(doc.at(m.name, at), func(l layout) string { return l.print(e.Value) })); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

func (m merging) apply(doc *document, splices []splice) (*document, error) {
	next, err := parseDocument(m.path, doc.apply(splices))
	if err == nil && next.index(m.name) < 0 {
		err = errors.New("the entry would not be found again")
	}
	return next, err
}

// at is the value at a path in the entry of a server, nil where there is none.
func (doc *document) at(name string, path []string) *hujson.Value {
	v := doc.entryAt(doc.index(name))
	for _, key := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		member := find(obj, key)
		if member == nil {
			return nil
		}
		v = &member.Value
	}
	return v
}

func isObjectAt(v *hujson.Value) bool {
	if v == nil {
		return false
	}
	_, ok := v.Value.(*hujson.Object)
	return ok
}

// same reports whether two values say the same in the same order.
func same(a, b *hujson.Value) bool {
	x, y := a.Clone(), b.Clone()
	x.Minimize()
	y.Minimize()
	return bytes.Equal(x.Pack(), y.Pack())
}

// dropNulls takes away members that are null: there is nothing for them to take
// away.
func dropNulls(v *hujson.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	var members []hujson.ObjectMember
	for _, m := range obj.Members {
		if m.Value.Value.Kind() != 'n' {
			dropNulls(&m.Value)
			members = append(members, m)
		}
	}
	obj.Members = members
}

// unmask puts into a patch what its masks stand for. A mask of something else is
// an error: it would become the value.
func unmask(path string, before *Server, patch *hujson.Value) error {
	real, shown := before.texts(), new(before.Masked()).texts()
	var first error
	var walk func(field string, v *hujson.Value)
	walk = func(field string, v *hujson.Value) {
		switch t := v.Value.(type) {
		case *hujson.Object:
			for i := range t.Members {
				name := memberName(&t.Members[i])
				switch {
				case field != "":
					name = field + "." + name
				case name == "cwd":
					name = "working_dir"
				}
				walk(name, &t.Members[i].Value)
			}
		case *hujson.Array:
			for i := range t.Elements {
				walk(fmt.Sprintf("%s[%d]", field, i), &t.Elements[i])
			}
		case hujson.Literal:
			if t.Kind() != '"' || !strings.Contains(t.String(), hidden) || t.String() == real[field] || !connects(field) {
				return
			}
			if value, ok := real[field]; ok && shown[field] == t.String() {
				v.Value = hujson.String(value)
			} else if first == nil {
				first = &Error{File: path, Key: field, Rule: hidden + " stands for a secret that is not there; leave the key out to keep its value"}
			}
		}
	}
	walk("", patch)
	return first
}

// connects reports whether a field is one of those that are masked.
func connects(field string) bool {
	kind := field[:len(field)-len(strings.TrimLeft(field, "abcdefghijklmnopqrstuvwxyz_"))]
	switch kind {
	case "command", "args", "env", "working_dir", "url", "headers", "oauth", "isolation":
		return true
	}
	return false
}

// texts are the strings that have to do with starting or reaching the server, by
// their fields.
func (s *Server) texts() map[string]string {
	texts := map[string]string{}
	// The function returns no error, and the copy is not needed.
	_, _ = s.expand(func(field, value string) (string, error) {
		texts[field] = value
		return value, nil
	})
	return texts
}

// References are the references in the strings of the server, as written, by
// field. The elements of a list are one field: "args", "env.TOKEN".
func (s *Server) References() map[string][]string {
	found := map[string][]string{}
	_, _ = s.expand(func(field, value string) (string, error) {
		if strings.HasSuffix(field, "]") {
			field = field[:strings.LastIndexByte(field, '[')]
		}
		for p := range pieces(value) {
			if p.ref != nil {
				found[field] = append(found[field], p.text)
			}
		}
		return value, nil
	})
	return found
}

// Secrets are the secrets that stand in the entry themselves, see Masked: values
// under six bytes and those that refer to something else are left out.
func (s *Server) Secrets() []string {
	var literal []string
	for _, part := range s.secretParts() {
		refers := false
		for p := range pieces(part) {
			refers = refers || p.ref != nil
		}
		if !refers {
			literal = append(literal, part)
		}
	}
	return secrets(literal)
}
