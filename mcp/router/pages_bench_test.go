package router

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
)

// manyRecords is a list of about so many bytes.
func manyRecords(size int) string {
	const record = `{"id":9007199254740993,"title":"Crash when the path holds a \"quote\"","labels":["bug","help wanted"],"open":true},`
	return `{"total":1,"items":[` + strings.Repeat(record, size/len(record)) + `{}]}`
}

// BenchmarkFit measures what a result costs that is sent whole, and ones that are kept.
func BenchmarkFit(b *testing.B) {
	for _, test := range []struct{ name, text string }{
		{"small", strings.Repeat("x", 2000)}, {"just-fits", strings.Repeat("é", 19000)},
		{"text-1MB", strings.Repeat("a line of text\n", 1<<20/15)}, {"records-1MB", manyRecords(1 << 20)},
		{"text-10MB", strings.Repeat("a line of text\n", 10<<20/15)}, {"records-10MB", manyRecords(10 << 20)},
		{"string-10MB", `{"result":` + string(appendQuoted(nil, []byte(manyRecords(10<<20)))) + `}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			k := keeping(b, 20000)
			k.size = 64 << 20
			result, item, by := json.RawMessage(textOfResult(test.text)), k.tool("r"), asking(auth.Local())
			b.ReportAllocs()
			for b.Loop() {
				k.Fit(b.Context(), by, item, result)
			}
		})
	}
}

// BenchmarkReadCache measures one page out of the middle of what is kept.
func BenchmarkReadCache(b *testing.B) {
	for _, test := range []struct{ name, text string }{
		{"text-100kB", strings.Repeat("a line of text\n", 100<<10/15)}, {"text-10MB", strings.Repeat("a line of text\n", 10<<20/15)},
		{"records-100kB", manyRecords(100 << 10)}, {"records-10MB", manyRecords(10 << 20)},
	} {
		b.Run(test.name, func(b *testing.B) {
			k := keeping(b, 20000)
			key := k.keyOf(b, auth.Local(), "r", test.text)
			offset := len(test.text) / 2
			if strings.HasPrefix(test.name, "records") {
				offset = strings.Count(test.text, `"id"`) / 2
			}
			by, args := asking(auth.Local()), fmt.Appendf(nil, `{"key":%q,"offset":%d}`, key, offset)
			read := k.Builtin().Call
			b.ReportAllocs()
			for b.Loop() {
				read(b.Context(), by, args)
				k.reads = k.reads[:0]
			}
		})
	}
}

// BenchmarkRefusedPageAgainstMissing measures what it costs to refuse a page, in turns
// with a key that does not exist; the figures are medians. The ratio is what somebody
// could tell one from the other by.
func BenchmarkRefusedPageAgainstMissing(b *testing.B) {
	k := keeping(b, 500)
	long := strings.Repeat("x", 5000)
	for range 200 {
		k.keyOf(b, auth.Local(), "r", long)
	}
	hers, old := k.keyOf(b, auth.Local(), "r", long), k.keyOf(b, anAgent(), "r", long)
	for what, test := range map[string]struct {
		key   string
		later time.Duration
	}{"unauthorised": {hers, 0}, "expired": {old, 3 * time.Hour}, "malformed": {"x", 0}} {
		b.Run(what, func(b *testing.B) {
			start := k.now
			defer func() { k.now = start }()
			k.now = start.Add(test.later)
			read, by := k.Builtin().Call, asking(anAgent())
			ask := func(key string) time.Duration {
				args := fmt.Appendf(nil, `{"key":%q}`, key)
				begun := time.Now()
				result, _ := read(b.Context(), by, args)
				took := time.Since(begun)
				if len(result) > 100 {
					b.Fatal("it was read")
				}
				k.reads = k.reads[:0]
				return took
			}
			refused, missing := make([]time.Duration, b.N), make([]time.Duration, b.N)
			for i := range b.N {
				if i%2 == 0 {
					refused[i], missing[i] = ask(test.key), ask(newKey())
				} else {
					missing[i], refused[i] = ask(newKey()), ask(test.key)
				}
			}
			slices.Sort(refused)
			slices.Sort(missing)
			r, m := refused[b.N/2], missing[b.N/2]
			b.ReportMetric(float64(r.Nanoseconds()), "refused-ns")
			b.ReportMetric(float64(m.Nanoseconds()), "missing-ns")
			b.ReportMetric(r.Seconds()/m.Seconds(), "refused/missing")
		})
	}
}
