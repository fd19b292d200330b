package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpproxy/mcp/catalog"
)

func toolWithSchema(schema string) *catalog.Item {
	raw := fmt.Sprintf(`{"name":"t","inputSchema":%s}`, schema)
	return catalog.New(catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "t"}, json.RawMessage(raw), nil)
}

func TestSignature(t *testing.T) {
	properties := func(list string) string { return `{"type":"object","properties":{` + list + `}}` }
	tests := []struct{ name, schema, want string }{
		{"none", `{"type":"object"}`, `()`},
		{"closed", `{"type":"object","properties":{},"additionalProperties":false}`, `()`},
		{"no schema", `null`, `()`},
		{"nonsense", `[1,"x"]`, `()~`},
		{"required first, then the order of the schema",
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"},"d":{"type":"number"},"c":{"type":"boolean"}},"required":["c","a"]}`,
			`(a*: int, c*: bool, b: string, d: number)`},
		{"required but not described", `{"properties":{"a":{"type":"string"}},"required":["x","a","x"]}`, `(a*: string, x*: any)`},
		{"arrays", properties(`"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array"},"c":{"items":{"enum":["x","y"]}},"d":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`),
			`(a: string[], b: any[], c: (x|y)[], d: int[][])`},
		{"tuples", properties(`"a":{"prefixItems":[{"type":"number"},{"type":"string"}]},"b":{"type":"array","items":[{"type":"number"}]}`),
			`(a: [number, string], b: [number])`},
		{"literals", properties(`"a":{"enum":["open","in progress","1","true","int",1.50,true,null]},"b":{"const":"x"}`),
			`(a: open|"in progress"|"1"|"true"|"int"|1.50|true|null, b: x)`},
		{"defaults as written", properties(`"a":{"type":"integer","default":1E2},"b":{"type":"string","default":"open"},"c":{"default":[ 1, 2.0 ]},"d":{"type":"boolean","default":false},"e":{"type":"string","default":""},"f":{"type":"integer","default":12345678901234567890},"g":{"type":"number","default":1},"h":{"type":"number","default":-1.50},"i":{"type":["string","null"],"default":"x"}`),
			`(a: int = 1E2, b = open, c: any = [1,2.0], d = false, e = "", f = 12345678901234567890, g: number = 1, h = -1.50, i: string|null = x)`},
		{"required with a default", `{"properties":{"a":{"type":"integer","default":5}},"required":["a"]}`, `(a* = 5)`},
		{"null as the default", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"b":{"type":["integer","null"]},"c":{"type":["string","null"],"default":null}},"required":["c"]}`,
			`(c*: string|null, a: string, b: int|null)`},
		{"long default", properties(`"a":{"type":"string","default":"` + strings.Repeat("x", 80) + `"}`), `(a = "` + strings.Repeat("x", 45) + `…"~)`},
		{"long literals", properties(`"a":{"enum":["` + strings.Repeat("x", 60) + `","` + strings.Repeat("y", 70) + `","` + strings.Repeat("z", 70) + `"]}`),
			`(a: "` + strings.Repeat("x", 45) + `…"~|"` + strings.Repeat("y", 45) + `…"~|…~)`},
		{"objects", properties(`"o":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"]},"p":{"type":"object"},"q":{"type":"object","additionalProperties":{"type":"integer"}},"r":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}}`),
			`(o: {a*: int, b: string}, p: object, q: {[key]: int}, r: {x: number}[])`},
		{"nesting ends", properties(`"a":{"properties":{"b":{"properties":{"c":{"properties":{"d":{"type":"string"}}}}}}}`), `(a: {b: {c: object~}})`},
		{"a large object", properties(`"o":{"type":"object","properties":{"first_of_many":{"properties":{"` + strings.Repeat("x", 40) + `":{},"` + strings.Repeat("y", 40) + `":{},"` + strings.Repeat("z", 40) + `":{},"` + strings.Repeat("w", 40) + `":{}}}}}`),
			`(o: {first_of_many: object~})`},
		{"any name", `{"type":"object","additionalProperties":{"type":"string"}}`, `([key]: string)`},
		{"unions", properties(`"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"string"}]},"b":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"c":{"type":["string","number"]},"d":{"type":"string","nullable":true},"e":{"type":"array","items":{"type":["string","null"]}}`),
			`(a: string|int, b: string|string[], c: string|number, d: string|null, e: (string|null)[])`},
		{"many alternatives", properties(`"a":{"type":["string","number","integer","boolean","null","array","object"],"anyOf":[{"minLength":1}]}`),
			`(a: string|number|int|bool|null|any[]|object~)`},
		{"narrowed by alternatives", properties(`"a":{"type":"string","anyOf":[{"pattern":"x"},{"format":"uri"}]}`), `(a: string~)`},
		{"one of several is required", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`(a: string, b: string)~`},
		{"union at the root", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}}}]}`,
			`(a*: string)|(b: int)`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/B"}],"$defs":{"B":{"properties":{"b":{"type":"integer"}}}}}`,
			`(a*: string, b: int)`},
		{"allOf that clashes", properties(`"a":{"allOf":[{"type":"string"},{"type":"integer"}]}`), `(a: string~)`},
		{"references", `{"properties":{"a":{"$ref":"#/$defs/A","default":"x"},"b":{"$ref":"#/definitions/B~1%25"},"c":{"$ref":"#/properties/a"}},"$defs":{"A":{"enum":["x","y"]}},"definitions":{"B/%":{"type":"integer"}}}`,
			`(a: x|y = x, b: int, c: x|y = x)`},
		{"references to nothing", properties(`"a":{"$ref":"#/$defs/none"},"b":{"$ref":"https://example.com/s.json"},"c":{"$ref":7},"d":{"$ref":"#anchor"}`), `(a: any~, b: any~, c: any~, d: any~)`},
		{"a circle", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, `(a: any~)`},
		{"a tree", `{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/N"}}}}}}`,
			`(n: {v: int, kids: {v: int, kids: object~[]}[]})`},
		{"constraints", properties(`"a":{"type":"string","pattern":"^x"},"b":{"type":"string","format":"date"},"c":{"type":"integer","minimum":1},"d":{"type":"array","items":{"type":"string","minLength":1},"maxItems":3},"e":{"type":"string","not":{"const":"x"},"default":"y"}`),
			`(a: string~, b: string~, c: int~, d: string~[]~, e~ = y)`},
		{"what constrains nothing", properties(`"a":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"exclusiveMinimum":false,"format":"int32"},"b":{"type":"string","minLength":0,"description":"x","title":"B","examples":["x"],"x-order":1}`),
			`(a: int, b: string)`},
		{"schemas that are none", properties(`"a":true,"b":false,"c":7,"d":"string","e":{},"f":{"type":"date"},"g":{"type":[]}`),
			`(a: any, b: never, c: any~, d: any~, e: any, f: any~, g: any)`},
		{"odd names", properties(`"a b":{"type":"string"},"":{"type":"string"},"naïve-1.x":{"type":"string"},"x\ny":{"type":"string"},"true":{"type":"string"},"ключ":{},"a":{"type":"string"},"a":{"type":"integer"}`),
			`("a b": string, "": string, naïve-1.x: string, "x\ny": string, "true": string, ключ: any, a: int)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, lossy := signature(toolWithSchema(test.schema))
			if got != test.want {
				t.Errorf("signature of %s\n got %s\nwant %s", test.schema, got, test.want)
			}
			if want := strings.Contains(test.want, "~"); lossy != want {
				t.Errorf("lossy is %v of %s", lossy, got)
			}
		})
	}
}

func TestSignatureOfOtherKinds(t *testing.T) {
	raw := json.RawMessage(`{"name":"p","arguments":[{"name":"lang"},{"name":"code","required":true},{"name":7},null]}`)
	if got, lossy := signature(catalog.New(catalog.Ref{Kind: catalog.Prompt, Name: "p"}, raw, nil)); got != "(code*: string, lang: string)" || lossy {
		t.Errorf("prompt: %s, lossy %v", got, lossy)
	}
	for _, kind := range []catalog.Kind{catalog.Resource, catalog.Template} {
		if got, lossy := signature(catalog.New(catalog.Ref{Kind: kind, Name: "u"}, raw, nil)); got != "" || lossy {
			t.Errorf("%s: %q, lossy %v", kind, got, lossy)
		}
	}
}

// manyParameters is a schema of required and optional parameters of some length.
func manyParameters(required, optional int) string {
	var list, names []string
	for i := range required + optional {
		name := fmt.Sprintf("parameter_%03d", i)
		list = append(list, fmt.Sprintf(`%q:{"type":"string"}`, name))
		if i >= optional {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	return fmt.Sprintf(`{"properties":{%s},"required":[%s]}`, strings.Join(list, ","), strings.Join(names, ","))
}

func TestSignatureIsShort(t *testing.T) {
	for _, test := range []struct {
		required, optional int
		begins, ends       string
	}{
		{2, 20, "(parameter_020*: string, parameter_021*: string, parameter_000: string, ", ", parameter_018: string, parameter_019: string)"},
		{2, 30, "(parameter_030*: string, parameter_031*: string, parameter_000: string, ", ", parameter_028, parameter_029, …~)"},
		{36, 0, "(parameter_000*: string, ", ", parameter_034*, parameter_035*, …~)"},
		{500, 500, "(parameter_500*, parameter_501*, ", "*, …~)"},
	} {
		got, lossy := signature(toolWithSchema(manyParameters(test.required, test.optional)))
		if len(got) > maxSignature || !strings.HasPrefix(got, test.begins) || !strings.HasSuffix(got, test.ends) || lossy != strings.Contains(test.ends, "~") {
			t.Errorf("%d required, %d optional: %d bytes, lossy %v: %s", test.required, test.optional, len(got), lossy, got)
		}
	}
}

func TestSignatureWithin(t *testing.T) {
	schema := `{"properties":{"state":{"enum":["open","closed"],"default":"open"},"owner":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},"page":{"type":"integer"}},"required":["owner"]}`
	for _, test := range []struct {
		limit int
		want  string
	}{
		{100, "(owner*: string, state: open|closed = open, labels: string[], page: int)"},
		{70, "(owner*: string, state: open|closed = open, labels, page, …~)"},
		{50, "(owner*: string, state, labels, page, …~)"},
		{40, "(owner*: string, state, labels, …~)"},
		{26, "(owner*: string, …~)"},
		{20, "(owner*, …~)"},
		{10, "(…~)"},
	} {
		got, lossy := signatureIn(toolWithSchema(schema), notation{", ", ": ", " = ", false}, test.limit)
		if got != test.want || lossy != strings.Contains(test.want, "~") || len(got) > max(test.limit, 20) {
			t.Errorf("within %d bytes, lossy %v:\n got %s\nwant %s", test.limit, lossy, got, test.want)
		}
	}
}

// No schema may take time: each of these is small, and endless.
func TestSignatureOfBombs(t *testing.T) {
	doubling := `{"$defs":{`
	for i := range 60 {
		doubling += fmt.Sprintf(`"d%d":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/d%d"}},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d60":{}},"properties":{"a":{"$ref":"#/$defs/d0"}}}`
	for name, schema := range map[string]string{
		"doubling":   doubling,
		"own root":   `{"allOf":[{"$ref":"#"},{"$ref":"#"}],"anyOf":[{"$ref":"#"},{"$ref":"#"}],"properties":{"a":{"$ref":"#"},"b":{"items":{"$ref":"#"}}}}`,
		"deep":       strings.Repeat(`{"items":`, 3000) + `{}` + strings.Repeat(`}`, 3000),
		"deep lists": strings.Repeat(`{"properties":{"a":`, 3000) + `{}` + strings.Repeat(`}}`, 3000),
		"large":      `{"anyOf":[{"$ref":"#"},{"$ref":"#"}],"description":"` + strings.Repeat("x", 8<<20) + `"}`,
	} {
		begin := time.Now()
		got, _ := signature(toolWithSchema(schema))
		if spent := time.Since(begin); spent > 10*time.Second || len(got) > maxSignature {
			t.Errorf("%s: %v for %d bytes", name, spent, len(got))
		}
	}
}

func FuzzSignature(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"default":null},"b":{"$ref":"#/properties/a"}},"required":["a"]}`,
		`{"anyOf":[{"$ref":"#"},{"properties":{"x\u2028\u0085y":{"enum":["a\nb","\u001b[31m",1e5]}}}]}`,
		`{"items":[true,false],"additionalProperties":{"const":"~"}}`, `[]`, `"x"`, `{`, ``, `{"properties":{"":`,
	} {
		f.Add(schema)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		item := toolWithSchema(schema)
		got, lossy := signature(item)
		if again, _ := signature(item); again != got {
			t.Errorf("%q, then %q", got, again)
		}
		if len(got) > maxSignature || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if !strings.HasPrefix(got, "(") || strings.ContainsFunc(got, notInOneLine) {
			t.Errorf("not one line: %q", got)
		}
		if lossy && !strings.Contains(got, "~") {
			t.Errorf("nothing shows that it is lossy: %q", got)
		}
	})
}

func notInOneLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// In brief a parameter without a type is a string.
func TestBriefly(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: "()",
		`{"properties":{"a":{"type":"string"},"b":{"type":"string","format":"uri"},"c":{"type":"integer","default":1},"d":{"type":"string","default":"x"}},"required":["a"]}`: "(a*,b~,c=1,d=x)",
		`{"properties":{"a":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"array","items":{"type":"string"}}}}}}`:                                          "(a:{x,y:string[]})",
		`{"properties":{"a":{},"b":{"type":["string","null"]}},"required":["b"]}`:                                                                                             "(b*:string|null,a:any)",
	} {
		if got, lossy := briefly(toolWithSchema(schema)); got != want || lossy != strings.Contains(want, "~") {
			t.Errorf("%s: %s, lossy %v", schema, got, lossy)
		}
	}
	if got, lossy := briefly(toolWithSchema(manyParameters(9, 9))); len(got) > maxBrief || !lossy {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
