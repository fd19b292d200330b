package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxBrackets bounds the nesting, which the parser follows by recursion.
const maxBrackets = 20_000

const byteOrderMark = "\xef\xbb\xbf"

// decoder reads the syntax tree of one file and remembers what it found odd.
// Offsets are bytes in src, which has no byte order mark.
type decoder struct {
	file     string
	src      []byte
	warnings []string
}

// root parses src, whose top must be an object.
func (d *decoder) root() (hujson.Value, error) {
	var none hujson.Value
	plain := func(rule string) error { return &Error{File: d.file, Rule: rule} }
	d.src = bytes.TrimPrefix(d.src, []byte(byteOrderMark))
	switch head := d.src[:min(len(d.src), 4)]; {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), bytes.IndexByte(head, 0) >= 0:
		return none, plain("the file is encoded as UTF-16; save it as UTF-8")
	case len(bytes.TrimSpace(d.src)) == 0:
		return none, plain("the file is empty; {} is the least it can hold")
	case bytes.Count(d.src, []byte("{"))+bytes.Count(d.src, []byte("[")) > maxBrackets:
		return none, plain(fmt.Sprintf("the file has more than %d brackets", maxBrackets))
	}
	if !utf8.Valid(d.src) {
		i := 0
		for r, size := utf8.DecodeRune(d.src); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(d.src[i:]) {
			i += size
		}
		return none, d.fault(i, "", nil, "the file is not encoded as UTF-8; save it as UTF-8")
	}
	v, err := hujson.Parse(d.src)
	if err != nil {
		return none, d.syntax(err)
	}
	if v.Value.Kind() != '{' {
		return none, d.misshapen(&v, "", `the top of the file must be an object, {"mcpServers": …}`)
	}
	return v, nil
}

// syntax turns the parser's error, which has its place only in its text, into
// ours. Literals are cut off: they may be a secret without its quotes.
func (d *decoder) syntax(err error) error {
	e := &Error{File: d.file}
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &e.Line, &e.Column); n == 2 {
		e.Column = d.characters(e.Line, e.Column)
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	rule, _, _ := strings.Cut(err.Error(), ": ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		rule = "the file ends too early, " + rule
	}
	e.Rule = "not valid JSON: " + rule
	return e
}

// characters turns a column in bytes into one in characters.
func (d *decoder) characters(line, column int) int {
	rest := d.src
	for range line - 1 {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	return utf8.RuneCount(rest[:min(column-1, len(rest))]) + 1
}

func (d *decoder) position(offset int) (line, column int) {
	before := d.src[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// fault is an Error at an offset; v is the wrong value or nil.
func (d *decoder) fault(offset int, key string, v *hujson.Value, rule string) error {
	e := &Error{File: d.file, Key: key, Rule: rule}
	e.Line, e.Column = d.position(offset)
	if v != nil {
		switch t := v.Value.(type) {
		case *hujson.Object:
			e.Value = "{…}"
		case *hujson.Array:
			e.Value = "[…]"
		case hujson.Literal:
			e.Value = shown(key, string(t))
		}
	}
	return e
}

// misshapen is a fault that tells only the kind of the value, which may hold
// secrets: a list written as one string, for instance.
func (d *decoder) misshapen(v *hujson.Value, key, rule string) error {
	kind := "a number"
	switch v.Value.Kind() {
	case '"':
		kind = "a string"
	case 't', 'f':
		kind = "a boolean"
	case 'n':
		kind = "null"
	case '{':
		kind = "an object"
	case '[':
		kind = "a list"
	}
	return d.fault(v.StartOffset, key, nil, rule+", not "+kind)
}

func (d *decoder) warn(offset int, message string) {
	line, column := d.position(offset)
	d.warnings = append(d.warnings, fmt.Sprintf("%s:%d:%d: %s", d.file, line, column, message))
}

// shown is a value for an error message.
func shown(key, value string) string {
	if SecretName(key[strings.LastIndexByte(key, '.')+1:]) {
		return hidden
	}
	if utf8.RuneCountInString(value) > 60 {
		value = string([]rune(value)[:60]) + "…"
	}
	return value
}

// object hands every member to its field. label is how messages call the
// object, with a dot at its end; a key with dots in fields stands in objects
// within. The first error is returned after all members were read.
func (d *decoder) object(obj *hujson.Object, label string, fields []field) error {
	var first error
	seen := make(map[string]bool, len(obj.Members))
	for i := range obj.Members {
		m := &obj.Members[i]
		name := memberName(m)
		if seen[name] {
			d.warn(m.Name.StartOffset, fmt.Sprintf("key %q stands twice, the last one counts", label+name))
		}
		seen[name] = true
		if err := d.member(m, label, name, fields); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *decoder) member(m *hujson.ObjectMember, label, name string, fields []field) error {
	key := label + name
	for i := range fields {
		if f := &fields[i]; f.key == name {
			if m.Value.Value.Kind() == 'n' {
				return nil // null is the same as absent
			}
			if f.take != nil {
				return f.take(d, key, &m.Value)
			}
			if rule := f.set(scalarOf(&m.Value)); rule != "" {
				return d.fault(m.Value.StartOffset, key, &m.Value, rule)
			}
			return nil
		}
	}
	var inner []field
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.key, name+"."); ok {
			f.key = rest
			inner = append(inner, f)
		}
	}
	if inner != nil {
		return d.within(&m.Value, key, inner)
	}
	message := fmt.Sprintf("unknown key %q", key)
	if label == "" && holdsServer(&m.Value) {
		message += ` (servers stand under "mcpServers")`
	}
	d.warn(m.Name.StartOffset, message)
	return nil
}

// within reads an object that is the value of key.
func (d *decoder) within(v *hujson.Value, key string, fields []field) error {
	switch t := v.Value.(type) {
	case *hujson.Object:
		return d.object(t, key+".", fields)
	case hujson.Literal:
		if t.Kind() == 'n' {
			return nil
		}
	}
	return d.misshapen(v, key, "must be an object")
}

func memberName(m *hujson.ObjectMember) string {
	return m.Name.Value.(hujson.Literal).String()
}

// find returns the last member of that name, which is the one that counts, or nil.
func find(obj *hujson.Object, name string) *hujson.ObjectMember {
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if memberName(&obj.Members[i]) == name {
			return &obj.Members[i]
		}
	}
	return nil
}

// scalarOf is the value as text; an object or array has none, only its kind.
func scalarOf(v *hujson.Value) scalar {
	lit, ok := v.Value.(hujson.Literal)
	switch {
	case !ok:
		return scalar{kind: v.Value.Kind()}
	case lit.Kind() == '"':
		return scalar{'"', lit.String()}
	default:
		return scalar{lit.Kind(), string(lit)}
	}
}

// word is a string, or a number or boolean as its text: a port in args or env
// is often written without quotes.
func word(v *hujson.Value) (string, bool) {
	s := scalarOf(v)
	return s.text, s.kind == '"' || s.kind == '0' || s.kind == 't' || s.kind == 'f'
}

func textList(p *[]string) func(*decoder, string, *hujson.Value) error {
	return func(d *decoder, key string, v *hujson.Value) error {
		arr, ok := v.Value.(*hujson.Array)
		if !ok {
			return d.misshapen(v, key, "must be a list of strings")
		}
		list := make([]string, len(arr.Elements))
		for i := range arr.Elements {
			e := &arr.Elements[i]
			if list[i], ok = word(e); !ok {
				return d.misshapen(e, fmt.Sprintf("%s[%d]", key, i), "must be a string")
			}
		}
		*p = list
		return nil
	}
}

func textMap(p *map[string]string) func(*decoder, string, *hujson.Value) error {
	return func(d *decoder, key string, v *hujson.Value) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return d.misshapen(v, key, "must be an object of strings")
		}
		table := make(map[string]string, len(obj.Members))
		for i := range obj.Members {
			m := &obj.Members[i]
			name := memberName(m)
			if table[name], ok = word(&m.Value); !ok {
				return d.misshapen(&m.Value, key+"."+name, "must be a string")
			}
		}
		*p = table
		return nil
	}
}

func (c *Config) takeProfiles(d *decoder, key string, v *hujson.Value) error {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		return d.misshapen(v, key, "must be a list of profiles")
	}
	c.Profiles = make([]Profile, len(arr.Elements))
	for i := range arr.Elements {
		e, p := &arr.Elements[i], &c.Profiles[i]
		at := fmt.Sprintf("%s[%d]", key, i)
		fields := []field{
			{key: "name", set: text(&p.Name)},
			{key: "servers", take: textList(&p.Servers)},
			{key: "max_tier", set: oneOf(&p.MaxTier, "read", "write", "destructive")},
		}
		if err := d.within(e, at, fields); err != nil {
			return err
		}
		if !ValidName(p.Name) {
			return d.fault(e.StartOffset, at+".name", nil, nameRule)
		}
		for _, other := range c.Profiles[:i] {
			if other.Name == p.Name {
				return d.fault(e.StartOffset, at+".name", nil, fmt.Sprintf("there are two profiles named %q", p.Name))
			}
		}
	}
	return nil
}

// checkProfiles warns of profiles that name servers which do not exist.
func (c *Config) checkProfiles(d *decoder) {
	for _, p := range c.Profiles {
		for _, name := range p.Servers {
			if c.Server(name) == nil {
				d.warnings = append(d.warnings, fmt.Sprintf("%s: profile %q names server %q, which does not exist", d.file, p.Name, name))
			}
		}
	}
}
