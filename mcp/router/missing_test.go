package router

import (
	"strings"
	"testing"
)

// TestRefusedIsMissing: what is out of scope has, apart from its name, the very
// bytes of an answer for what does not exist.
func TestRefusedIsMissing(t *testing.T) {
	routers, s := hiding(20), session()
	for what, pair := range hiddenPairs() {
		refused := strings.ReplaceAll(pair.ask(t, routers, s, pair.refused), "hers", "NAME")
		missing := strings.ReplaceAll(pair.ask(t, routers, s, pair.missing), "zork", "NAME")
		if refused != missing {
			t.Errorf("%s: out of scope is\n%s, missing is\n%s", what, refused, missing)
		}
	}
}
