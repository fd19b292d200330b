package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// span is one member of an object: offsets of its name (with quotes) and of
// its value.
type span struct{ key, keyEnd, value, end int }

// spans yields the members of the object at the start of obj, in order,
// duplicates included. It ends early on anything that is not valid.
func spans(obj []byte) iter.Seq[span] {
	return func(yield func(span) bool) {
		i := skipSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		i = skipSpace(obj, i+1)
		for i < len(obj) && obj[i] == '"' {
			keyEnd, err := skipString(obj, i)
			if err != nil {
				return
			}
			value, err := skipKey(obj, i)
			if err != nil {
				return
			}
			value = skipSpace(obj, value)
			end, err := skipValue(obj, value)
			if err != nil || !yield(span{i, keyEnd, value, end}) {
				return
			}
			i = skipSpace(obj, end)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
			i = skipSpace(obj, i+1)
		}
	}
}

// named reports whether the quoted JSON string raw decodes to name. Bytes that
// are no UTF-8 decode to U+FFFD, so only a name without it compares as bytes.
func named(raw []byte, name string) bool {
	if bytes.IndexByte(raw, '\\') < 0 && !strings.ContainsRune(name, utf8.RuneError) {
		return string(raw[1:len(raw)-1]) == name
	}
	s, ok := String(raw)
	return ok && s == name
}

// Members yields name and raw value of each member of a JSON object, in order,
// duplicates included; nothing for a value that is no object.
func Members(obj json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for s := range spans(obj) {
			key, ok := String(obj[s.key:s.keyEnd])
			if ok && !yield(key, obj[s.value:s.end:s.end]) {
				return
			}
		}
	}
}

// Elements yields the raw elements of a JSON array; nothing for a value that
// is no array.
func Elements(arr json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := skipSpace(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		i = skipSpace(arr, i+1)
		for i < len(arr) && arr[i] != ']' {
			end, err := skipValue(arr, i)
			if err != nil || !yield(arr[i:end:end]) {
				return
			}
			i = skipSpace(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
			i = skipSpace(arr, i+1)
		}
	}
}

// Member returns the raw value at a path of member names, nil when it is
// absent. Of duplicate members the last counts, as in most decoders.
func Member(obj json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var found json.RawMessage
		for s := range spans(obj) {
			if named(obj[s.key:s.keyEnd], name) {
				found = obj[s.value:s.end:s.end]
			}
		}
		if found == nil {
			return nil
		}
		obj = found
	}
	return obj
}

// ValueStart returns what begins with the value of the first member of that
// name, without looking for the value's end; nil when there is none. It is for
// telling values apart that may be large.
func ValueStart(obj json.RawMessage, name string) json.RawMessage {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return nil
	}
	for i = skipSpace(obj, i+1); i < len(obj) && obj[i] == '"'; i = skipSpace(obj, i+1) {
		keyEnd, err := skipString(obj, i)
		if err != nil {
			return nil
		}
		value, err := skipKey(obj, i)
		if err != nil {
			return nil
		}
		value = skipSpace(obj, value)
		if named(obj[i:keyEnd], name) {
			return obj[value:]
		}
		end, err := skipValue(obj, value)
		if err != nil {
			return nil
		}
		i = skipSpace(obj, end)
		if i >= len(obj) || obj[i] != ',' {
			return nil
		}
	}
	return nil
}

// SetMember returns obj with the value at path replaced in place, or appended
// as the last member where it is absent; parents that are missing or no
// objects are made. Every duplicate is replaced, so that no decoder sees the
// old value. All other bytes stay. A nil or null obj counts as {}.
func SetMember(obj, value json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	trimmed := bytes.TrimSpace(obj)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		obj = json.RawMessage("{}")
	}
	var out []byte
	copied, members := 0, 0
	for s := range spans(obj) {
		members++
		if !named(obj[s.key:s.keyEnd], path[0]) {
			continue
		}
		out = append(out, obj[copied:s.value]...)
		out = append(out, SetMember(obj[s.value:s.end], value, path[1:]...)...)
		copied = s.end
	}
	if copied > 0 {
		return append(out, obj[copied:]...)
	}
	end := bytes.LastIndexByte(obj, '}')
	out = make([]byte, 0, len(obj)+len(value)+len(path[0])+4)
	out = append(out, obj[:end]...)
	if members > 0 {
		out = append(out, ',')
	}
	out = append(out, Quote(path[0])...)
	out = append(out, ':')
	out = append(out, SetMember(nil, value, path[1:]...)...)
	return append(out, obj[end:]...)
}

// DeleteMember returns obj without the value at path, duplicates included, and
// obj itself where there is none. Parents stay, also when they become empty.
func DeleteMember(obj json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 || Member(obj, path...) == nil {
		return obj
	}
	if len(path) > 1 {
		parent := DeleteMember(Member(obj, path[0]), path[1:]...)
		return SetMember(obj, parent, path[0])
	}
	// Each member that stays keeps what stands in front of it, the comma
	// included; the first one gets what stood in front of the first.
	open := skipSpace(obj, 0) + 1
	out := append(make(json.RawMessage, 0, len(obj)), obj[:open]...)
	end, first, kept := open, json.RawMessage(nil), 0
	for s := range spans(obj) {
		lead := obj[end:s.key]
		if first == nil {
			first = obj[open:s.key:s.key]
		}
		end = s.end
		if named(obj[s.key:s.keyEnd], path[0]) {
			continue
		}
		if kept == 0 {
			lead = first
		}
		out = append(append(out, lead...), obj[s.key:s.end]...)
		kept++
	}
	return append(out, obj[end:]...)
}

// String decodes a JSON string. Lone surrogates become U+FFFD.
func String(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// Quote encodes s as a JSON string; unlike encoding/json it leaves <, > and &
// as they are. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// Encoding a string cannot fail.
	_ = enc.Encode(s)
	return buf.Bytes()[:buf.Len()-1]
}
