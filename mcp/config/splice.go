package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// splice replaces the bytes from..to of a file.
type splice struct {
	from, to int
	text     string
}

// apply returns the file with all splices made. They must not overlap; those at
// one place are made in the order given. A byte order mark is put back, so that
// the result can be parsed as a whole file.
func (doc *document) apply(splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	if doc.mark {
		out = append(out, byteOrderMark...)
	}
	at := 0
	for _, s := range splices {
		out = append(out, doc.src[at:s.from]...)
		out = append(out, s.text...)
		at = s.to
	}
	return append(out, doc.src[at:]...)
}

// item is one element of a list or one member of an object.
type item struct {
	start, end int // without the comma
	comma      int // -1: none follows
}

func items(v *hujson.Value) []item {
	var list []item
	add := func(start int, v *hujson.Value, last bool) {
		comma := v.EndOffset + len(v.AfterExtra)
		if last && v.AfterExtra == nil { // the parser's sign for "no comma at the end"
			comma = -1
		}
		list = append(list, item{start, v.EndOffset, comma})
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		for i := range t.Members {
			add(t.Members[i].Name.StartOffset, &t.Members[i].Value, i == len(t.Members)-1)
		}
	case *hujson.Array:
		for i := range t.Elements {
			add(t.Elements[i].StartOffset, &t.Elements[i], i == len(t.Elements)-1)
		}
	}
	return list
}

// indent is the white space at the start of the line on which offset stands; ok
// tells that nothing else stands before offset.
func (doc *document) indent(offset int) (space string, ok bool) {
	line := doc.src[bytes.LastIndexByte(doc.src[:offset], '\n')+1:]
	n := len(line) - len(bytes.TrimLeft(line, " \t"))
	return string(line[:n]), offset <= len(doc.src)-len(line)+n
}

// insert puts one more item at the end of a list or object, in the way the
// others stand there: on lines of their own or all on one line, with or without
// a comma at the end. render makes its text; on is false for one line.
func (doc *document) insert(v *hujson.Value, render func(l layout) string) []splice {
	all := items(v)
	closing := v.EndOffset - 1
	end := len(bytes.TrimRight(doc.src[:closing], " \t\r\n")) // behind the last comment
	outer, _ := doc.indent(v.StartOffset)
	l := layout{indent: outer + doc.unit, unit: doc.unit, lines: true}
	if len(all) == 0 {
		text := doc.newline + l.indent + doc.lines(render(l)) + doc.newline + outer
		return []splice{{end, closing, text}}
	}
	l.lines = bytes.IndexByte(doc.src[v.StartOffset:closing], '\n') >= 0
	if indent, ok := doc.indent(all[0].start); ok {
		l.indent = indent
	}
	text := ", "
	if l.lines {
		text = doc.newline + l.indent
	}
	text += doc.lines(render(l))
	last := all[len(all)-1]
	switch {
	case last.comma >= 0 && l.lines:
		return []splice{{end, end, text + ","}}
	case last.comma >= 0:
		return []splice{{last.comma, last.comma, text}}
	case l.lines:
		return []splice{{last.end, last.end, ","}, {end, end, text}}
	default:
		return []splice{{end, end, text}}
	}
}

// lines gives text the line ends of the file.
func (doc *document) lines(text string) string {
	return strings.ReplaceAll(text, "\n", doc.newline)
}

// remove deletes server i, see removeItem.
func (doc *document) remove(i int) []splice { return doc.removeItem(doc.list, i) }

// removeItem deletes item i of a list or object, its comma, and its lines where
// nothing else stands on them. Comments stay.
func (doc *document) removeItem(list *hujson.Value, i int) []splice {
	all := items(list)
	it := all[i]
	var out []splice
	from, to := it.start, it.end
	switch {
	case it.comma == to:
		to++
	case it.comma >= 0: // a comment stands between
		out = append(out, splice{it.comma, it.comma + 1, ""})
	case i > 0:
		out = append(out, splice{all[i-1].comma, all[i-1].comma + 1, ""})
	}
	blanks := func(at int) int {
		return at + len(doc.src[at:]) - len(bytes.TrimLeft(doc.src[at:], " \t\r"))
	}
	after := blanks(to)
	space, alone := doc.indent(from)
	switch {
	case alone && after < len(doc.src) && doc.src[after] == '\n':
		from, to = from-len(space), after+1
	case i < len(all)-1 || alone:
		to = after
	default:
		from = len(bytes.TrimRight(doc.src[:from], " \t"))
	}
	return append(out, splice{from, to, ""})
}

// addServer writes a new entry, and mcpServers with it where there is none.
func (doc *document) addServer(name string, obj *hujson.Object) []splice {
	keyed := doc.list != nil && doc.list.Value.Kind() == '{'
	entry := hujson.Object{}
	if !keyed {
		entry.Members = append(entry.Members, hujson.ObjectMember{
			Name: hujson.Value{Value: hujson.String("name")}, Value: hujson.Value{Value: hujson.String(name)},
		})
	}
	for _, m := range obj.Members {
		if memberName(&m) != "name" {
			entry.Members = append(entry.Members, m)
		}
	}
	key := ""
	if keyed {
		key = string(hujson.String(name)) + ": "
	}
	render := func(l layout) string { return key + l.print(&entry) }
	if doc.list != nil && doc.list.Value.Kind() != 'n' {
		return doc.insert(doc.list, render)
	}
	list := func(l layout) string { return l.print(&hujson.Array{Elements: []hujson.Value{{Value: &entry}}}) }
	if doc.list != nil {
		outer, _ := doc.indent(doc.list.StartOffset)
		l := layout{indent: outer, unit: doc.unit, lines: true}
		return []splice{{doc.list.StartOffset, doc.list.EndOffset, doc.lines(list(l))}}
	}
	return doc.insert(&doc.root, func(l layout) string { return `"mcpServers": ` + list(l) })
}

func (doc *document) setEnabled(i int, enabled bool) ([]splice, error) {
	v, out, err := doc.setBooleans(i, map[string]bool{"enabled": enabled, "disabled": !enabled})
	if err == nil && out == nil && !enabled {
		out = doc.insert(v, func(layout) string { return `"enabled": false` })
	}
	return out, err
}

func (doc *document) setQuarantined(i int, quarantined bool) ([]splice, error) {
	v, out, err := doc.setBooleans(i, map[string]bool{"quarantined": quarantined})
	if err == nil && out == nil && quarantined {
		out = doc.insert(v, func(layout) string { return `"quarantined": true` })
	}
	return out, err
}

// entryAt is the entry of server i.
func (doc *document) entryAt(i int) *hujson.Value {
	if obj, ok := doc.list.Value.(*hujson.Object); ok {
		return &obj.Members[i].Value
	}
	return &doc.list.Value.(*hujson.Array).Elements[i]
}

// setBooleans gives those of the keys that the entry of a server has their
// values. It returns the entry, and no splices where it has none of the keys.
func (doc *document) setBooleans(i int, values map[string]bool) (entry *hujson.Value, out []splice, err error) {
	entry = doc.entryAt(i)
	obj, ok := entry.Value.(*hujson.Object)
	if !ok {
		return nil, nil, doc.servers[i].Err
	}
	for j := range obj.Members {
		m := &obj.Members[j]
		if value, ok := values[memberName(m)]; ok {
			out = append(out, splice{m.Value.StartOffset, m.Value.EndOffset, fmt.Sprint(value)})
		}
	}
	return entry, out, nil
}

// layout is how new JSON is written.
type layout struct {
	indent string // of the line on which the text starts
	unit   string // one step more
	lines  bool   // false: everything on one line
}

// print writes a value: members of objects on lines of their own, lists of
// plain values on one line.
func (l layout) print(v hujson.ValueTrimmed) string {
	inner := l
	inner.indent += l.unit
	var open, shut string
	var parts []string
	flat := !l.lines
	switch t := v.(type) {
	case *hujson.Object:
		open, shut = "{", "}"
		for i := range t.Members {
			m := &t.Members[i]
			parts = append(parts, string(m.Name.Value.(hujson.Literal))+": "+inner.print(m.Value.Value))
		}
	case *hujson.Array:
		open, shut = "[", "]"
		plain := true
		for i := range t.Elements {
			_, literal := t.Elements[i].Value.(hujson.Literal)
			plain = plain && literal
			parts = append(parts, inner.print(t.Elements[i].Value))
		}
		flat = flat || plain
	case hujson.Literal:
		return string(t)
	}
	if flat || len(parts) == 0 {
		return open + strings.Join(parts, ", ") + shut
	}
	return open + "\n" + inner.indent + strings.Join(parts, ",\n"+inner.indent) + "\n" + l.indent + shut
}
