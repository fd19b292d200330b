package router

import (
	"context"
	"fmt"

	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// pagePosition is where a page is, and what was asked for.
type pagePosition struct{ offset, limit, next int }

// page is the page of an entry that was asked for, as JSON; nil where the entry is
// gone. It has no more characters than the limit that held when the entry was kept, or
// holds now if that is less, but for a text of which too many characters are escaped.
func (p *Pages) page(ctx context.Context, db *store.DB, e keptText, q pageAsked) ([]byte, error) {
	limit := e.Limit
	if now := p.options.Limit(); now > 0 {
		limit = min(limit, max(now, leastLimit))
	}
	total := e.Records
	if total == 0 {
		total = e.Total
	}
	at := pagePosition{min(q.offset, total), q.limit, total}
	room := limit - length(e.answer(nil, at))
	body, count, gone := []byte(nil), 0, true
	var use func(part store.PagePart) bool
	if e.Records > 0 {
		use = func(part store.PagePart) bool {
			gone = false
			index := int(part.First)
			for record := range wire.Elements(part.Body) {
				if index++; index <= at.offset {
					continue
				}
				size := length(record) + len(`,`)
				if count == q.limit || count > 0 && size > room {
					return false
				}
				if count > 0 {
					body = append(body, ',')
				}
				body = append(body, record...)
				room -= size
				count++
			}
			return true
		}
	} else {
		t := textPage{room: room, most: limit, least: leastPage(e.Total, limit)}
		use = func(part store.PagePart) bool {
			gone = false
			skip := ahead(part.Body, max(0, at.offset-int(part.First)))
			more := t.take(part.Body[skip:])
			body, count = t.text, t.count
			return more
		}
	}
	if err := db.PageParts(ctx, lookupKey(e.key), int64(at.offset), use); err != nil || gone {
		return nil, err
	}
	at.offset = q.offset
	at.next = min(q.offset, total) + count
	if at.next >= total {
		at.next = 0
	}
	return e.answer(body, at), nil
}

// answer is a page as JSON: records without their brackets, or text. Of next_offset 0
// is left out.
func (e *keptText) answer(body []byte, at pagePosition) []byte {
	var out []byte
	if e.Records > 0 {
		out = append(append(append(out, `{"records":[`...), body...), ']')
	} else {
		out = appendQuoted(append(out, `{"text":`...), body)
	}
	out = fmt.Appendf(out, `,"meta":{"key":"%s",`, e.key)
	if e.Records > 0 {
		out = fmt.Appendf(out, `"total_records":%d,"offset":%d,"limit":%d,"total_size":%d`, e.Records, at.offset, at.limit, e.Total)
		if e.Path != "" {
			out = appendQuoted(append(out, `,"record_path":`...), []byte(e.Path))
		}
	} else {
		out = fmt.Appendf(out, `"offset":%d,"total_size":%d`, at.offset, e.Total)
	}
	if at.next > 0 {
		out = fmt.Appendf(out, `,"next_offset":%d`, at.next)
	}
	return append(out, "}}"...)
}

// leastPage is the number of characters that every page but the last has, so that one
// more than so many pages of the limit are enough for the whole.
func leastPage(total, limit int) int {
	pages := (total+limit-1)/limit + 1
	return (total + pages - 1) / pages
}

// textPage takes as much text as a page has.
type textPage struct {
	room        int // characters that are left, with their escapes
	most, least int // characters of the page, whatever they take
	text        []byte
	count       int
}

// take takes what has room from what comes next, and reports whether there is room
// for more. No page ends within an escape of JSON that the text may hold.
func (t *textPage) take(next []byte) (more bool) {
	i := 0
	for i < len(next) && t.count < t.most {
		r, n := firstRune(next[i:])
		size := quoted(r)
		if t.room < size && t.count >= t.least {
			break
		}
		t.room -= size
		i += n
		t.count++
	}
	t.text = append(t.text, next[:i]...)
	if i == len(next) {
		return t.count < t.most
	}
	const escapes = 12 // the longest, bytes
	end := len(t.text)
	whole := append(t.text[:end:end], next[i:min(len(next), i+escapes)]...)
	if n := beforeEscape(whole, end); n < end {
		if cut := length(t.text[n:]); t.count-cut >= max(1, t.least) {
			t.text, t.count = t.text[:n], t.count-cut
		}
	}
	return false
}
