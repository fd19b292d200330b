package router

import (
	"fmt"
	"slices"

	"mcpproxy/mcp/wire"
)

// anyKey is as long as every key.
const anyKey = "00000000000000000000000000000000"

// cutShort keeps a text of which share characters may be sent, with what is said
// about the rest: the beginning of the text, or all but the last records of the array
// that it holds. shown is the former; the notice goes behind it.
func cutShort(t blockText, share, limit int) (e keptText, shown, notice []byte) {
	room := share - noticeLength(t.size, limit)
	// What stands around the records may take half of the room, of at most four bytes
	// a character.
	if r := findRecords(t.text, 2*room); r != nil && r.fit(t.size, limit) {
		if shown, n := r.first(t.text, room); shown != nil {
			e = newEntry(t, r, limit)
			return e, shown, e.notice(n, fmt.Sprintf("cut after %d of %d records (%d characters in all)", n, r.count, t.size))
		}
	}
	e = newEntry(t, nil, limit)
	shown = t.text[:beforeEscape(t.text, ahead(t.text, room))]
	n := length(shown)
	return e, shown, e.notice(n, fmt.Sprintf("cut after %d of %d characters", n, t.size))
}

// newEntry is a text as it is kept: as records, which fit, or as text where they are
// nil or do not.
func newEntry(t blockText, r *records, limit int) keptText {
	e := keptText{key: newKey(), Limit: limit, Total: t.size}
	if r != nil && r.fit(t.size, limit) {
		e.Records, e.Path, e.parts = r.count, r.path, partsOfRecords(r.array)
		return e
	}
	e.parts = partsOfText(t.text)
	return e
}

// fit reports whether each record has room in a page.
func (r *records) fit(total, limit int) bool {
	e := keptText{key: anyKey, Total: total, Records: r.count, Path: r.path}
	room := limit - length(e.answer(nil, pagePosition{total, mostRecords, total}))
	for record := range wire.Elements(r.array) {
		if len(record) > room && length(record) > room {
			return false
		}
	}
	return true
}

// first is the text with only so many of the records that it has at most room
// characters, and their number; nil where what stands around them takes more than
// half of that.
func (r *records) first(text []byte, room int) (shown []byte, n int) {
	ends := r.ends(4 * room)
	begin, tail := ends[0], text[ends[len(ends)-1]:]
	left := room - length(text[:begin]) - length(tail)
	if left < room/2 {
		return nil, 0
	}
	at := begin
	for _, end := range ends[1 : len(ends)-1] {
		if left -= length(text[at:end]); left < 0 {
			break
		}
		at = end
		n++
	}
	return slices.Concat(text[:at], tail), n
}

// notice names what is done about the rest of a text, and the call that reads on at an
// offset.
func (e *keptText) notice(offset int, what string) []byte {
	call := fmt.Sprintf(`%s {"key": "%s", "offset": %d}`, readCacheName, e.key, offset)
	if e.Limit < roomy {
		return fmt.Appendf(nil, "[of %d: %s]", e.Total, call)
	}
	return fmt.Appendf(nil, "[%s; read on within %.0f hours: %s]", what, pagesKept.Hours(), call)
}

// noticeLength is the number of characters of the longest notice about texts of so
// many, and of a line break.
func noticeLength(total, limit int) int {
	total *= 10 // a text in an array of blocks is longer
	e := keptText{key: anyKey, Limit: limit, Total: total}
	return len(e.notice(total, fmt.Sprintf("cut after %d of %d records (%d characters in all)", total, total, total))) + 1
}
