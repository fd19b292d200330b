package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/mcp/catalog"
)

// TestToolUseLeavesOneName keeps a second name from reaching servers whose
// decoders do not look at the case of member names.
func TestToolUseLeavesOneName(t *testing.T) {
	item := &catalog.Item{Ref: catalog.Ref{Server: "s", Kind: catalog.Tool, Name: "ok"}}
	for params, want := range map[string]string{
		`{"name":"s__ok","arguments":{"Name":"x"},"Name":"drop"}`:              `{"name":"ok","arguments":{"Name":"x"}}`,
		`{"NAME":"drop","name":"s__ok","nAmE":"drop","arguments":{},"task":1}`: `{"name":"ok","arguments":{},"task":1}`,
		`{"name":"s__ok"}`:                  `{"name":"ok","arguments":{}}`,
		`{"name":"s__ok","arguments":null}`: `{"name":"ok","arguments":{}}`,
	} {
		if got := (asker{}).toolUse(item, json.RawMessage(params)).Params; string(got) != want {
			t.Errorf("%s became %s, want %s", params, got, want)
		}
	}
}

// TestTemplateTooLarge has a template whose expression no regular expression
// can be made of.
func TestTemplateTooLarge(t *testing.T) {
	names := make([]string, 1100)
	for i := range names {
		names[i] = fmt.Sprintf("v%d", i)
	}
	var u uris
	if u.match("x://{"+strings.Join(names, ",")+"}", "x://1") {
		t.Error("it matches")
	}
	if !u.match("x://{a}", "x://1") {
		t.Error("the next template does not match")
	}
}
