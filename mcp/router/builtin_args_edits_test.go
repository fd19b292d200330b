package router

import (
	"math/rand/v2"
	"testing"
)

// TestEdits compares the counting that stops with one that counts everything.
func TestEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, r.IntN(9))
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		return string(b)
	}
	for range 20000 {
		a, b := word(), word()
		whole := edits(a, b, len(a)+len(b))
		for most := range 9 {
			if got := edits(a, b, most); min(got, most+1) != min(whole, most+1) {
				t.Fatalf("%q to %q within %d: %d, without a bound %d", a, b, most, got, whole)
			}
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := edits(c.a, c.b, 10); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
