package catalog

import (
	"encoding/json"
	"testing"
)

// TestTier is the table of the annotations of a tool.
func TestTier(t *testing.T) {
	for _, c := range []struct {
		annotations string
		unannotated Tier
		want        Tier
		repeatable  bool
	}{
		{``, Destructive, Destructive, false},
		{``, Write, Write, false},
		{``, Read, Read, false},
		{`{}`, Read, Read, false},
		{`{"title":"t","openWorldHint":false}`, Write, Write, false},
		{`{"readOnlyHint":true}`, Destructive, Read, true},
		{`{"readOnlyHint":true,"destructiveHint":false}`, Destructive, Read, true},
		{`{"readOnlyHint":true,"destructiveHint":true}`, Read, Destructive, false},
		{`{"readOnlyHint":false}`, Read, Destructive, false},
		{`{"readOnlyHint":false,"destructiveHint":false}`, Read, Write, false},
		{`{"readOnlyHint":false,"destructiveHint":true}`, Read, Destructive, false},
		{`{"destructiveHint":false}`, Destructive, Write, false},
		{`{"destructiveHint":true}`, Read, Destructive, false},
		{`{"destructiveHint":false,"idempotentHint":true}`, Read, Write, true},
		{`{"idempotentHint":true}`, Write, Write, true},
		{`{"idempotentHint":false}`, Read, Read, false},
		{`{"readOnlyHint":"true","destructiveHint":null}`, Write, Write, false},
		{`{"readOnlyHint":true,"readOnlyHint":false}`, Read, Destructive, false},
	} {
		raw := json.RawMessage(`{"name":"t"}`)
		if c.annotations != "" {
			raw = json.RawMessage(`{"name":"t","annotations":` + c.annotations + `}`)
		}
		for _, it := range []*Item{New(Ref{"s", Tool, "t"}, raw, nil), {Ref: Ref{"s", Tool, "t"}, Raw: raw}} {
			if got := it.Tier(c.unannotated); got != c.want {
				t.Errorf("%s, else %v: %v, want %v", c.annotations, c.unannotated, got, c.want)
			}
			if got := it.Repeatable(); got != c.repeatable {
				t.Errorf("%s: repeatable %v", c.annotations, got)
			}
		}
	}
	it := New(Ref{"s", Tool, "t"}, json.RawMessage(`{"annotations":{"readOnlyHint":true}}`), &Override{Annotations: json.RawMessage(`{"destructiveHint":true}`)})
	if got := it.Tier(Read); got != Destructive {
		t.Errorf("with an override: %v", got)
	}
}

func TestTierWords(t *testing.T) {
	for _, tier := range []Tier{Read, Write, Destructive} {
		if ParseTier(tier.String()) != tier {
			t.Errorf("%v is not read back", tier)
		}
	}
	if ParseTier("whatever") != Destructive {
		t.Error("an unknown word is not the highest tier")
	}
}

func TestKinds(t *testing.T) {
	for kind, want := range map[Kind][4]string{
		Tool:     {"tools/list", "tools", "notifications/tools/list_changed", "tools"},
		Resource: {"resources/list", "resources", "notifications/resources/list_changed", "resources"},
		Template: {"resources/templates/list", "resourceTemplates", "notifications/resources/list_changed", "resources"},
		Prompt:   {"prompts/list", "prompts", "notifications/prompts/list_changed", "prompts"},
	} {
		if got := [4]string{kind.ListMethod(), kind.ListMember(), kind.ChangedMethod(), kind.Capability()}; got != want {
			t.Errorf("%s: %q", kind, got)
		}
	}
	s := &Server{}
	for _, kind := range Kinds() {
		s.SetItems(kind, []*Item{New(Ref{"s", kind, "x"}, nil, nil)})
	}
	for _, kind := range Kinds() {
		if items := s.Items(kind); len(items) != 1 || items[0].Kind != kind {
			t.Errorf("%s: %v", kind, items)
		}
	}
}
