package router

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

const (
	// pagesKept is how long what was cut can be read.
	pagesKept = 2 * time.Hour
	// keepMost bounds the time that a result waits for being kept; it is then sent
	// whole.
	keepMost = 2 * time.Second
	// leastLimit is the number of characters that hold a notice. A limit below is
	// taken for this.
	leastLimit = 100
	// partBytes is about what a part of what is kept has.
	partBytes = 64 << 10
)

// PageOptions say what Pages work with. All functions may be called from several
// goroutines; only Gate and Store must be given.
type PageOptions struct {
	Gate *policy.Gate
	// Store is the store in use, nil for none: results are then sent whole.
	Store func() *store.DB
	// Limit is tool_response_limit in characters, which are Unicode code points; 0
	// and nil cut nothing.
	Limit func() int
	// Size is the bytes that all that is kept may take (pages_max_size_mb); nil is
	// 256 MB.
	Size func() int64
	// MaxResult is max_result_size_chars.
	MaxResult func() int
	// Now is the clock of what expires; nil means time.Now.
	Now func() time.Time
	// Record is told of every call of read_cache when it has ended; it must not
	// block. It may be nil.
	Record func(PageRead)
	// OnError is told why a result could not be kept or a page not be read; it must
	// not block. It may be nil.
	OnError func(error)
}

// PageRead is one call of read_cache.
type PageRead struct {
	Caller   auth.Caller
	Session  *wire.Session
	ID       json.RawMessage // of the request
	Began    time.Time
	Duration time.Duration
	// Server and Item are what gave the result that is read, empty where no such
	// page was found.
	Server, Item      string
	Request, Response json.RawMessage
	Outcome           PageOutcome
	// Error is why nothing was sent, in words for the log; the caller may have been
	// told less.
	Error string
}

// PageOutcome is how a call of read_cache ended.
type PageOutcome int

// The outcomes.
const (
	PageSent      PageOutcome = iota + 1
	PageForbidden             // the caller may not read it
	PageMissing               // there is no such page, or the arguments are wrong
	PageFailed                // the store could not be read
)

// Pages keeps what is too long to be sent at once, and has it read in parts. It has
// no state of its own: all that use one store share what is kept.
type Pages struct{ options PageOptions }

// NewPages returns the Pages of a store.
func NewPages(o PageOptions) *Pages {
	if o.Limit == nil {
		o.Limit = func() int { return 0 }
	}
	if o.Size == nil {
		o.Size = func() int64 { return 256 << 20 }
	}
	if o.MaxResult == nil {
		o.MaxResult = func() int { return 500_000 }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Record == nil {
		o.Record = func(PageRead) {}
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return &Pages{o}
}

// keptText is one text that is kept, of which the head is read before the parts.
type keptText struct {
	Stamp *stamp `json:"stamp"`
	// Limit is the number of characters that a page may have, Total those of the
	// text.
	Limit int `json:"limit"`
	Total int `json:"total"`
	// Records is the number of the records that the parts hold as JSON arrays, of
	// which First counts them; 0 for text, of which First counts the characters.
	Records int    `json:"records,omitempty"`
	Path    string `json:"path,omitempty"`

	key   string
	parts []store.PagePart
}

// newKey is 128 random bits.
func newKey() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// lookupKey is the key under which something is stored. It has one form for whatever
// was given as a key, and gives nothing away to who reads the store.
func lookupKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// keep stores entries, and reports whether that was done.
func (p *Pages) keep(ctx context.Context, db *store.DB, a asker, item *catalog.Item, entries []keptText) bool {
	now := p.options.Now()
	by := stampOf(p.options.Gate, a.caller, item)
	pages := make([]store.Page, len(entries))
	for i, e := range entries {
		e.Stamp = by
		pages[i] = store.Page{Key: lookupKey(e.key), Head: string(encode(e)), ExpiresAt: now.Add(pagesKept), Parts: e.parts}
	}
	limited, cancel := context.WithTimeout(ctx, keepMost)
	defer cancel()
	err := db.PutPages(limited, now, p.options.Size(), pages...)
	if err != nil && ctx.Err() == nil {
		p.options.OnError(err)
	}
	return err == nil
}

// partsOfText cuts text between characters.
func partsOfText(text []byte) (parts []store.PagePart) {
	first := 0
	for len(text) > partBytes {
		n := partBytes
		for n > 1 && !utf8.RuneStart(text[n]) {
			n--
		}
		parts = append(parts, store.PagePart{First: int64(first), Body: text[:n]})
		first += length(text[:n])
		text = text[n:]
	}
	return append(parts, store.PagePart{First: int64(first), Body: text})
}

// partsOfRecords packs the elements of an array into arrays.
func partsOfRecords(array []byte) (parts []store.PagePart) {
	var body []byte
	first, next := 0, 0
	end := func() {
		parts = append(parts, store.PagePart{First: int64(first), Body: append(body, ']')})
		body, first = nil, next
	}
	for record := range wire.Elements(array) {
		if len(body) > 0 && len(body)+len(record) > partBytes {
			end()
		}
		open := byte(',')
		if len(body) == 0 {
			open = '['
		}
		body = append(append(body, open), record...)
		next++
	}
	if len(body) > 0 {
		end()
	}
	return parts
}
