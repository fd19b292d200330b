package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestNormal is the table of what does not matter, and of what does.
func TestNormal(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{` { "b" : 1 , "a" : [ 2 , 1 ] , "c" : { } } `, `{"a":[2,1],"b":1,"c":{}}`},
		{`{"a":1,"b":{"d":[],"c":null}}`, `{"a":1,"b":{"c":null,"d":[]}}`},
		{`{"ab":1,"a":2,"a\"":3,"":4}`, `{"":4,"a":2,"a\"":3,"ab":1}`},
		{`{"a":1,"b":2,"a":0}`, `{"a":1,"a":0,"b":2}`},
		{`[true,false,null]`, `[true,false,null]`},
		{`"\u0041\/\u00e9\ud83d\ude00\u000a\n\u001F\"\\\u0022"`, `"A/é😀\n\n\u001f\"\\\""`},
		{`"\ud83d \ude00\ud83d\u0041\uD800"`, `"\ud83d \ude00\ud83dA\ud800"`},
		{`"\ud83d\ud83d\ude00"`, `"\ud83d😀"`},
		{"\"\xff\"", "\"\xff\""},
		{`1`, `1`}, {`1.0`, `1`}, {`1e0`, `1`}, {`10e-1`, `1`}, {`0.1e1`, `1`}, {`1E+000`, `1`},
		{`0`, `0`}, {`-0`, `0`}, {`0.00`, `0`}, {`0e99999999999999999999`, `0`},
		{`-1.50`, `-1.5`}, {`1500`, `1500`}, {`1.5e3`, `1500`}, {`0.00015`, `0.00015`}, {`1.5e-4`, `0.00015`},
		{`9007199254740993`, `9007199254740993`}, {`9007199254740993.0`, `9007199254740993`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
		{`1e20`, `100000000000000000000`}, {`1e21`, `1e21`}, {`1000000000000000000000`, `1e21`}, {`1e-9`, `1e-9`}, {`0.000000001`, `1e-9`},
		{`12e999999998`, `1.2e999999999`}, {`1e1000000000`, `1e1000000000`},
		{`not JSON`, `not JSON`}, {``, ``}, {`{"a":}`, `{"a":}`},
	} {
		if got := Normal(json.RawMessage(test.raw)); string(got) != test.want {
			t.Errorf("%s is written %s, want %s", test.raw, got, test.want)
		}
	}
	deep := strings.Repeat("[", maxNormalDepth+1) + " " + strings.Repeat("]", maxNormalDepth+1)
	if got := Normal(json.RawMessage(deep)); string(got) != deep {
		t.Errorf("%d levels were touched", maxNormalDepth+1)
	}
	if got := Normal(json.RawMessage(deep[1 : len(deep)-1])); bytes.Contains(got, []byte(" ")) {
		t.Errorf("%d levels were not touched", maxNormalDepth)
	}
	million := json.RawMessage(strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000))
	if got := Normal(million); len(got) != len(million) {
		t.Error("a million levels were touched")
	}
}

// TestFingerprint holds which parts of a definition count.
func TestFingerprint(t *testing.T) {
	const tool = `{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":1},"icons":[],"execution":{"taskSupport":"optional"},"new":1}`
	const prompt = `{"name":"p","description":"d","arguments":[{"name":"a","required":true},{"name":"b"}]}`
	const resource = `{"uri":"file:///a","name":"a","mimeType":"text/plain","size":10,"annotations":{"audience":["user"],"lastModified":"2026-01-01T00:00:00Z"}}`
	for _, test := range []struct {
		kind   Kind
		raw    string
		from   string
		to     string
		counts bool
	}{
		{Tool, tool, `"name":"t"`, `"name":"u"`, true},
		{Tool, tool, `"title":"T"`, `"title":"t"`, true},
		{Tool, tool, `"description":"d"`, `"description":"d "`, true},
		{Tool, tool, `"description":"d"`, `"description":"d\u200b"`, true},
		{Tool, tool, `"maximum":1`, `"maximum":2`, true},
		{Tool, tool, `"maximum":1`, `"maximum":"1"`, true},
		{Tool, tool, `"maximum":1`, `"maximum":1.00e0`, false},
		{Tool, tool, `"maximum":1`, `"maximum":1.0000000000000000000001`, true},
		{Tool, tool, `"outputSchema":{"type":"object"},`, ``, true},
		{Tool, tool, `"readOnlyHint":true`, `"readOnlyHint":false`, true},
		{Tool, tool, `"readOnlyHint":true`, `"readOnlyHint":true,"readOnlyHint":false`, true},
		{Tool, tool, `"x":1`, `"x":2`, true},
		{Tool, tool, `"icons":[]`, `"icons":[{"src":"x"}]`, true},
		{Tool, tool, `"optional"`, `"required"`, true},
		{Tool, tool, `"new":1`, `"new":2`, true},
		{Tool, tool, `{"name":"t","title":"T"`, "\t{ \"title\" : \"\\u0054\",\n\"name\":\"t\" ", false},
		{Prompt, prompt, `{"name":"a","required":true},{"name":"b"}`, `{"name":"b"},{"required":true,"name":"a"}`, true},
		{Prompt, prompt, `{"name":"a","required":true}`, `{"required":true,"name":"a"}`, false},
		{Resource, resource, `file:///a`, `file:///b`, true},
		{Resource, resource, `text/plain`, `text/html`, true},
		{Resource, resource, `"user"`, `"assistant"`, true},
		{Resource, resource, `"size":10,`, ``, false},
		{Resource, resource, `"size":10`, `"size":11`, false},
		{Resource, resource, `2026-01-01`, `2026-01-02`, false},
		{Resource, resource, `,"lastModified":"2026-01-01T00:00:00Z"`, ``, false},
		{Tool, tool, `"new":1`, `"new":1,"size":1`, true},
	} {
		changed := strings.Replace(test.raw, test.from, test.to, 1)
		if changed == test.raw {
			t.Fatalf("%s is not in %s", test.from, test.raw)
		}
		a := New(Ref{"s", test.kind, "x"}, json.RawMessage(test.raw), nil)
		b := New(Ref{"s", test.kind, "x"}, json.RawMessage(changed), &Override{Description: "not counted"})
		if got := a.Fingerprint() != b.Fingerprint(); got != test.counts {
			t.Errorf("%s to %s: counts %v, want %v\n%s\n%s", test.from, test.to, got, test.counts, a.Normal(), b.Normal())
		}
		if a.Hash() == b.Hash() || len(a.Fingerprint()) != 64 || a.Fingerprint() == a.Hash() {
			t.Errorf("%s: hashes %s %s %s", test.from, a.Hash(), b.Hash(), a.Fingerprint())
		}
	}
	with := New(Ref{"s", Resource, "x"}, json.RawMessage(`{"uri":"x","annotations":{"lastModified":"2026-01-01T00:00:00Z"}}`), nil)
	without := New(Ref{"s", Resource, "x"}, json.RawMessage(`{"uri":"x"}`), nil)
	if with.Fingerprint() != without.Fingerprint() {
		t.Error("annotations that say when the content changed count")
	}
}

// FuzzNormal holds Normal against encoding/json and exact numbers: two values
// are written alike exactly if they are equal.
func FuzzNormal(f *testing.F) {
	f.Add(`{"a":1.0,"b":[1e3,"\u0041"]}`, `{"b":[1000,"A"],"a":1}`)
	f.Add(`[1e-3,0.001,-0]`, `[0.001,1E-3,0.0]`)
	f.Add(`{"a":{"c":2,"b":1}}`, `{"a":{"b":1,"c":3}}`)
	f.Add(`"\ud83d\ude00"`, `"😀"`)
	f.Add(`{"":0,"a":{"a":1,"a":2}}`, `9007199254740993`)
	f.Fuzz(func(t *testing.T, a, b string) {
		na, nb := Normal(json.RawMessage(a)), Normal(json.RawMessage(b))
		if again := Normal(na); !bytes.Equal(na, again) {
			t.Fatalf("%q is written %q, and that %q", a, na, again)
		}
		va, okA := decode(a)
		if !okA {
			return
		}
		back, ok := decode(string(na))
		if !ok || !reflect.DeepEqual(va, back) {
			t.Fatalf("%q is written %q, which is another value", a, na)
		}
		var spaced bytes.Buffer
		if json.Indent(&spaced, na, " ", "\t") == nil {
			if again := Normal(spaced.Bytes()); !bytes.Equal(again, na) {
				t.Fatalf("%q with white space is written %q", na, again)
			}
		}
		if vb, ok := decode(b); ok && reflect.DeepEqual(va, vb) != bytes.Equal(na, nb) {
			t.Fatalf("%q and %q are written %q and %q", a, b, na, nb)
		}
	})
}

// decode is the value of JSON, with numbers as exact fractions. It refuses what
// encoding/json would not tell apart, and numbers that take long.
func decode(text string) (v any, ok bool) {
	if !utf8.ValidString(text) || strings.Contains(text, `\u`) || nested(text) {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() || strings.TrimSpace(text[dec.InputOffset():]) != "" {
		return nil, false
	}
	if names(text) != members(v) {
		return nil, false // a name stands twice
	}
	return exact(v)
}

func nested(text string) bool {
	return strings.Count(text, "[")+strings.Count(text, "{") > maxNormalDepth
}

// names counts the members of all objects as they are written.
func names(text string) (n int) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	type open struct {
		object bool
		values int
	}
	var stack []open
	for {
		token, err := dec.Token()
		if err != nil {
			return n
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if k := len(stack) - 1; k >= 0 && stack[k].object {
			if stack[k].values++; stack[k].values%2 == 1 {
				n++
			}
		}
		if d, ok := token.(json.Delim); ok {
			stack = append(stack, open{object: d == '{'})
		}
	}
}

// members counts the members of all objects as they were decoded.
func members(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			n += 1 + members(m)
		}
	case []any:
		for _, e := range v {
			n += members(e)
		}
	}
	return n
}

func exact(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		if _, e, ok := strings.Cut(strings.ToLower(string(v)), "e"); ok && len(strings.TrimLeft(e, "+-0")) > 4 {
			return nil, false
		}
		r, ok := new(big.Rat).SetString(string(v))
		if !ok {
			return nil, false
		}
		return "number " + r.RatString(), true
	case string:
		return "text " + v, true
	case []any:
		for i := range v {
			e, ok := exact(v[i])
			if !ok {
				return nil, false
			}
			v[i] = e
		}
	case map[string]any:
		for name := range v {
			e, ok := exact(v[name])
			if !ok {
				return nil, false
			}
			v[name] = e
		}
	}
	return v, true
}

// thousand are tools as large as real ones.
func thousand() []*Item {
	items := make([]*Item, 1000)
	for i := range items {
		raw := fmt.Sprintf(`{"name":"tool_%d","description":"%s","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"%s"},"limit":{"type":"integer","minimum":1,"maximum":100.0}},"required":["path"]},"annotations":{"readOnlyHint":true}}`,
			i, strings.Repeat("some words ", 60), strings.Repeat("more words ", 20))
		items[i] = New(Ref{"s", Tool, fmt.Sprint("tool_", i)}, json.RawMessage(raw), nil)
	}
	return items
}

// TestFingerprintsAreQuick has a bound that only another way of doing it would
// break: a thousand tools take some five milliseconds.
func TestFingerprintsAreQuick(t *testing.T) {
	items := thousand()
	start := time.Now()
	for _, item := range items {
		item.Fingerprint()
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a thousand tools took %s", took)
	}
}

func BenchmarkFingerprint(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		items := thousand()
		b.StartTimer()
		for _, item := range items {
			item.Fingerprint()
		}
	}
}
