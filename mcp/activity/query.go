package activity

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/store"
)

// Filter chooses records. The zero value chooses all.
type Filter struct {
	// An empty text matches every record.
	Kind                  Kind
	Status                Status
	Server, Tool          string
	Caller, Token, Client string
	Parent                string // the ID of what they are parts of
	// Since and Until bound when they began: not before Since, before Until.
	// The zero time is no bound.
	Since, Until time.Time
	// From and Before bound their IDs in the same way, for paging.
	From, Before string
	// After is a Seq: only what was written later, in that order; -1 has all in
	// that order.
	After int64
	// Limit is the number of records at most, 0 for no limit; Last has the
	// newest kept instead of the oldest. The oldest comes first in any case.
	Limit int
	Last  bool
}

// rows is the filter as the store has it.
func (f Filter) rows() store.ActivityFilter {
	out := store.ActivityFilter{
		Kind: string(f.Kind), Status: string(f.Status), Server: f.Server, Tool: f.Tool,
		Caller: f.Caller, Token: f.Token, Client: f.Client, Parent: f.Parent,
		From: max(f.From, firstID(f.Since)), To: f.Before, After: f.After, Limit: f.Limit, Last: f.Last,
	}
	if until := firstID(f.Until); until != "" && (out.To == "" || until < out.To) {
		out.To = until
	}
	return out
}

// List returns the records that the filter chooses, the oldest first.
func List(ctx context.Context, db *store.DB, f Filter) ([]Record, error) {
	rows, err := db.Activity(ctx, f.rows())
	if err != nil {
		return nil, err
	}
	list := make([]Record, len(rows))
	for i := range rows {
		list[i] = fromRow(&rows[i])
	}
	return list, nil
}

// pageSize is how many records Each reads at a time.
const pageSize = 200

// Each calls use for the records that the filter chooses, the oldest first, and
// ends with the first error. It reads them in pages, so that it keeps nobody from
// writing; what is added meanwhile may be among them. After and Last do not
// count.
func Each(ctx context.Context, db *store.DB, f Filter, use func(Record) error) error {
	f.After, f.Last = 0, false
	for left := f.Limit; ; {
		f.Limit = pageSize
		if left > 0 {
			f.Limit = min(left, pageSize)
		}
		page, err := List(ctx, db, f)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := use(r); err != nil {
				return err
			}
		}
		if len(page) < f.Limit || left == len(page) {
			return nil
		}
		if left > 0 {
			left -= len(page)
		}
		f.From = page[len(page)-1].ID + "0" // the next text
	}
}

// Get returns the record of an ID, and false where there is none.
func Get(ctx context.Context, db *store.DB, id string) (Record, bool, error) {
	row, found, err := db.ActivityByID(ctx, id)
	if !found || err != nil {
		return Record{}, false, err
	}
	return fromRow(&row), true, nil
}

// Find returns the IDs that end with a text, the newest first: people see and type
// the last characters alone, in which two differ first.
func Find(ctx context.Context, db *store.DB, end string) ([]string, error) {
	return db.ActivityEnding(ctx, end)
}

// ShortID is what a person is shown of an ID.
func ShortID(id string) string { return id[max(0, len(id)-shortID):] }

// shortID is the number of characters of a ShortID: 30 bits.
const shortID = 6

// Usage is what was done with one tool, or with all of one server.
type Usage struct {
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"` // empty: all
	// Calls went to the server, Errors are those of them that failed, Blocked
	// did not go there: blocked and rejected.
	Calls   int `json:"calls"`
	Errors  int `json:"errors"`
	Blocked int `json:"blocked"`
	// P50 and P95 are how long half and 95 of 100 calls took at most.
	P50 time.Duration `json:"-"`
	P95 time.Duration `json:"-"`
	// RequestBytes and ResponseBytes are of the payloads of all.
	RequestBytes  int64 `json:"request_bytes"`
	ResponseBytes int64 `json:"response_bytes"`
	// Tokens is an estimate of what both are for a model: a quarter of the bytes.
	Tokens int64 `json:"estimated_tokens"`
}

// Summarize sums the records that the filter chooses up by server and tool, or by
// server alone, sorted by name. Changes are not counted, calls and refusals are.
// Limit, Last and After of the filter do not count.
func Summarize(ctx context.Context, db *store.DB, f Filter, byServer bool) ([]Usage, error) {
	type key struct{ server, tool string }
	type sum struct {
		Usage
		took []time.Duration
	}
	sums := map[key]*sum{}
	err := db.EachActivity(ctx, f.rows(), func(a *store.Activity) {
		if Kind(a.Kind) != Call && Kind(a.Kind) != Refusal {
			return
		}
		k := key{a.Server, a.Tool}
		if byServer {
			k.tool = ""
		}
		s := sums[k]
		if s == nil {
			s = &sum{Usage: Usage{Server: k.server, Tool: k.tool}}
			sums[k] = s
		}
		s.RequestBytes += a.RequestBytes
		s.ResponseBytes += a.ResponseBytes
		switch Status(a.Status) {
		case Blocked, Rejected:
			s.Blocked++
			return
		case Error:
			s.Errors++
		}
		s.Calls++
		s.took = append(s.took, a.Duration)
	})
	if err != nil {
		return nil, err
	}
	list := make([]Usage, 0, len(sums))
	for _, s := range sums {
		slices.Sort(s.took)
		s.P50, s.P95 = percentile(s.took, 50), percentile(s.took, 95)
		s.Tokens = (s.RequestBytes + s.ResponseBytes) / 4
		list = append(list, s.Usage)
	}
	slices.SortFunc(list, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return list, nil
}

// percentile is the smallest of sorted times that p of 100 do not exceed, 0 of
// none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// MarshalJSON implements json.Marshaler: the times are p50_ms and p95_ms.
func (u Usage) MarshalJSON() ([]byte, error) {
	type plain Usage
	return json.Marshal(struct {
		plain
		P50 float64 `json:"p50_ms"`
		P95 float64 `json:"p95_ms"`
	}{plain(u), milliseconds(u.P50), milliseconds(u.P95)})
}
