package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRefusedIsMissing: what is out of scope has, apart from its name, the very
// bytes of an answer for what does not exist.
func TestRefusedIsMissing(t *testing.T) {
	d, s := hiding(20), session()
	for what, pair := range hiddenPairs() {
		var bodies []string
		for i, name := range []string{"hers", "nono"} {
			result, failure := d.Handle(t.Context(), s, pair[0], json.RawMessage(pair[1+i]))
			if failure == nil || result != nil {
				t.Errorf("%s of %s gave %s", what, name, result)
				continue
			}
			bodies = append(bodies, strings.ReplaceAll(fmt.Sprintf("%d %s %s %s", failure.Code, failure.Message, failure.Data, failure.Raw), name, "NAME"))
		}
		if len(bodies) == 2 && bodies[0] != bodies[1] {
			t.Errorf("%s: out of scope is\n%s, missing is\n%s", what, bodies[0], bodies[1])
		}
	}
}
