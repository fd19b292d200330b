package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestSetMember(t *testing.T) {
	cases := []struct {
		name, obj, value string
		path             []string
		want             string
	}{
		{"replaces in place", `{"a":1,"b": 2 ,"c":3}`, `"x"`, []string{"b"}, `{"a":1,"b": "x" ,"c":3}`},
		{"appends", `{"a":1}`, `2`, []string{"b"}, `{"a":1,"b":2}`},
		{"appends to an empty object", `{ }`, `2`, []string{"b"}, `{ "b":2}`},
		{"makes parents", `{"a":1}`, `2`, []string{"b", "c"}, `{"a":1,"b":{"c":2}}`},
		{"replaces a parent that is no object", `{"b":7}`, `2`, []string{"b", "c"}, `{"b":{"c":2}}`},
		{"keeps all other bytes", `{"n":9007199254740993, "e":1e2,"u":"\u003c\ud800","a":{"k":1.0}}`, `5`, []string{"a", "k"}, `{"n":9007199254740993, "e":1e2,"u":"\u003c\ud800","a":{"k":5}}`},
		{"replaces every duplicate", `{"name":"safe","name":"danger"}`, `"t"`, []string{"name"}, `{"name":"t","name":"t"}`},
		{"sees through escapes", `{"n\u0061me":"x"}`, `"t"`, []string{"name"}, `{"n\u0061me":"t"}`},
		{"null counts as empty", `null`, `1`, []string{"a"}, `{"a":1}`},
		{"absent counts as empty", ``, `1`, []string{"a"}, `{"a":1}`},
		{"ignores brackets in strings", `{"a":"}","b":"{"}`, `1`, []string{"c"}, `{"a":"}","b":"{","c":1}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := SetMember(json.RawMessage(c.obj), json.RawMessage(c.value), c.path...)
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDeleteMember(t *testing.T) {
	cases := []struct{ obj, path, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1, "b":2, "c":3}`, "b", `{"a":1, "c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{"a":1}`, "a", `{}`},
		{`{"a":1,"a":2,"b":3}`, "a", `{"b":3}`},
		{`{"a":1}`, "x", `{"a":1}`},
		{`{"p":{"a":1,"b":2},"q":0}`, "p.a", `{"p":{"b":2},"q":0}`},
		{`[1]`, "a", `[1]`},
	}
	for _, c := range cases {
		got := DeleteMember(json.RawMessage(c.obj), strings.Split(c.path, ".")...)
		if string(got) != c.want {
			t.Errorf("delete %s from %s: got %s, want %s", c.path, c.obj, got, c.want)
		}
	}
}

func TestMemberTakesTheLastDuplicate(t *testing.T) {
	if got := Member(json.RawMessage(`{"a":1,"a":{"b":2}}`), "a", "b"); string(got) != "2" {
		t.Errorf("got %s", got)
	}
}

// FuzzScan holds the scanner to encoding/json.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"x\u00e9\n",true,null,{}]}`, `01`, `-`, `"\u12"`, `[1,]`, `{"a"}`, ` {} `, `nul`, `1e`, "\"a\x01\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if got, want := Valid(input), json.Valid(input); got != want {
			t.Fatalf("Valid(%q) = %v, encoding/json says %v", input, got, want)
		}
	})
}

// FuzzSplice holds SetMember and DeleteMember to a decoder.
func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[2]},"a":3}`), "b", "c")
	f.Add([]byte(`{}`), "x", "y")
	f.Add([]byte("{\"\xbb\":0}"), "\xbb", "\ufffd")
	f.Fuzz(func(t *testing.T, input []byte, first, second string) {
		var object map[string]json.RawMessage
		if json.Unmarshal(input, &object) != nil || object == nil {
			t.Skip() // only objects are spliced
		}
		name, _ := String(Quote(first))
		set := SetMember(input, json.RawMessage(`"v"`), name, second)
		if !json.Valid(set) {
			t.Fatalf("set made invalid JSON: %q", set)
		}
		inner, _ := String(Quote(second))
		if got := Member(set, name, inner); string(got) != `"v"` {
			t.Fatalf("set %q.%q in %q gave %q, which reads %s", name, inner, input, set, got)
		}
		gone := DeleteMember(input, name)
		if !json.Valid(gone) || Member(gone, name) != nil {
			t.Fatalf("delete %q from %q gave %q", name, input, gone)
		}
		for key, value := range object {
			if key == name {
				continue
			}
			if got := Member(gone, key); !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(value)) {
				t.Fatalf("delete %q from %q changed %q to %s", name, input, key, got)
			}
		}
	})
}
