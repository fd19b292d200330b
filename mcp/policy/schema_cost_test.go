package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCostlySchemas ends at once with schemas that would take for ever, and lets
// what they are for pass. Others that refer to themselves are used.
func TestCostlySchemas(t *testing.T) {
	doubling := func(keyword, leaf string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{%s,"$defs":{`, fmt.Sprintf(keyword, `{"$ref":"#/$defs/a0"}`, `{"$ref":"#/$defs/a0"}`))
		for i := range 40 {
			next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
			fmt.Fprintf(&b, `"a%d":{%s},`, i, fmt.Sprintf(keyword, next, next))
		}
		return b.String() + `"a40":` + leaf + `}}`
	}
	const filter = `{"$ref":"#/$defs/f","$defs":{"f":{"type":"object","properties":{` +
		`"and":{"type":"array","items":{"$ref":"#/$defs/f"}},"or":{"type":"array","items":{"$ref":"#/$defs/f"}},` +
		`"not":{"$ref":"#/$defs/f"},"is":{"type":"string"}},"additionalProperties":false}}}`
	for _, c := range []struct {
		name, schema, value string
		want                string // part of the violations, "" for none
	}{
		{"all twice", doubling(`"allOf":[%s,%s]`, `{"type":"object"}`), `{}`, ""},
		{"any twice, that fails", doubling(`"anyOf":[%s,%s]`, `{"type":"string"}`), `{}`, ""},
		{"not any twice", doubling(`"not":{"anyOf":[%s,%s]}`, `{"type":"string"}`), `{}`, ""},
		{"twice in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#",` + doubling(`"allOf":[%s,%s]`, `true`)[1:], `{}`, ""},
		{"lists in lists", `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"items":{"$ref":"#"}},`, 50), ",") + `]}`, strings.Repeat("[", 40) + strings.Repeat("]", 40), ""},
		{"deep", strings.Repeat(`{"type":"object","properties":{"a":`, 3000) + `{"type":"string"}` + strings.Repeat(`}}`, 3000), `[]`, ""},
		{"a filter", filter, `{"and":[{"or":[{"not":{"and":[{"is":"x"},{"is":1}]}}]}]}`, "/is"},
		{"deep as people write", strings.Repeat(`{"type":"object","properties":{"a":`, 40) + `{"type":"string"}` + strings.Repeat(`}}`, 40), strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), "/a"},
	} {
		var s schemas
		done := make(chan string, 1)
		go func() {
			done <- strings.Join(s.violations(json.RawMessage(c.schema), json.RawMessage(c.value)), "; ")
		}()
		select {
		case got := <-done:
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: not checked within 20 s", c.name)
		}
	}
}
