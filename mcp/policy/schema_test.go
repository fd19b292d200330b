package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestViolations is the table of what fits a schema. A schema that cannot be
// used lets everything pass.
func TestViolations(t *testing.T) {
	const person = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","maximum":9007199254740993}},"required":["name"]}`
	for _, c := range []struct {
		name, schema, value string
		want                string // part of the violations, "" for none
	}{
		{"fits", person, `{"name":"x"}`, ""},
		{"missing", person, `{}`, "name"},
		{"wrong type", person, `{"name":1}`, "/name"},
		{"large integer", person, `{"name":"x","age":9007199254740993}`, ""},
		{"larger integer", person, `{"name":"x","age":9007199254740994}`, "/age"},
		{"no JSON", person, `{`, "no JSON"},
		{"no schema", ``, `{}`, ""},
		{"true", `true`, `{}`, ""},
		{"false", `false`, `{}`, "false"},
		{"no JSON schema", `{`, `{}`, ""},
		{"odd type", `{"type":"nonsense"}`, `{}`, ""},
		{"odd pattern", `{"properties":{"a":{"pattern":"(?!x"}}}`, `{"a":"b"}`, ""},
		{"pattern of another dialect", `{"properties":{"a":{"pattern":"^(?!x).*$"}}}`, `{"a":"b"}`, ""},
		{"other document", `{"$ref":"https://schemas.invalid/x.json"}`, `{}`, ""},
		{"a file", `{"$ref":"file:///etc/passwd"}`, `{}`, ""},
		{"unknown dialect", `{"$schema":"https://schemas.invalid/dialect"}`, `{}`, ""},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`, `{"x":1}`, "/x"},
		{"recursive", `{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"additionalProperties":false}},"$ref":"#/$defs/n"}`, `{"next":{"next":{"x":1}}}`, "/next/next"},
		{"refers to itself", `{"$ref":"#"}`, `{}`, ""},
		{"too large", `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`, `[]`, ""},
	} {
		var s schemas
		got := strings.Join(s.violations(json.RawMessage(c.schema), json.RawMessage(c.value)), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestManyViolations names some and counts the rest.
func TestManyViolations(t *testing.T) {
	var s schemas
	got := s.violations(json.RawMessage(`{"items":{"type":"string"}}`), json.RawMessage(`[1,2,3,4,5,6,7,8]`))
	if len(got) != maxViolation+1 || got[maxViolation] != "and 3 more" {
		t.Errorf("%q", got)
	}
}

// FuzzViolations takes whatever servers may send for a schema and a value.
func FuzzViolations(f *testing.F) {
	f.Add([]byte(`{"type":"object","required":["a"]}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"pattern":"(a+)+$","minLength":1e400}`), []byte(`"aaaaaaaaaaaaaaa!"`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		var s schemas
		if got := s.violations(schema, value); len(got) > maxViolation+1 {
			t.Errorf("%d lines", len(got))
		}
	})
}
