package activity

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// digits are those of Crockford's base 32 in lower case: texts of equal length
// sort as the numbers do, and none looks like another.
const digits = "0123456789abcdefghjkmnpqrstvwxyz"

// idLength is 48 bits of unix ms and 32 that tell IDs of one millisecond apart.
const idLength = 16

// ids gives IDs. Two of one millisecond sort in the order in which they were
// given.
type ids struct{ tail atomic.Uint32 }

// newIDs starts somewhere, so that two processes do not give the same.
func newIDs() *ids {
	g := new(ids)
	g.tail.Store(rand.Uint32())
	return g
}

// next returns an ID for a time.
func (g *ids) next(t time.Time) string { return encodeID(t, g.tail.Add(1)) }

// firstID sorts in front of every ID of a time and later; "" for the zero time.
func firstID(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return encodeID(t, 0)
}

func encodeID(t time.Time, tail uint32) string {
	ms := uint64(max(0, t.UnixMilli()))
	high, low := ms<<16|uint64(tail>>16), tail<<16 // 64 bits, and 16 at the top of 32
	var text [idLength]byte
	for i := range text {
		text[i] = digits[high>>59]
		high = high<<5 | uint64(low>>27)
		low <<= 5
	}
	return string(text[:])
}
