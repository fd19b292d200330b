//go:build unix

package policy

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// instant are servers that answer every call at once with the same.
type instant struct {
	servers
	snapshot *catalog.Snapshot
	result   json.RawMessage
}

func (i *instant) Snapshot(context.Context) *catalog.Snapshot { return i.snapshot }

func (i *instant) Start(_ Request, done func(json.RawMessage, *wire.Error)) (func(error), bool) {
	done(i.result, nil)
	return func(error) {}, true
}

// BenchmarkOverhead is what gate, activity and detection cost a call, the writing
// included, which is done beside it: cpu-us/op is the processor time of the whole
// process. The goals are 30 us for a tiny call and 1,000 us for one with 64 KiB.
func BenchmarkOverhead(b *testing.B) {
	text := strings.Repeat("The quick brown fox, order 4711, jumps over https://example.com/a?b=c. ", 1000)[:64<<10]
	for name, result := range map[string]string{
		"tiny":   `{"content":[{"type":"text","text":"fast"}]}`,
		"64 KiB": `{"content":[{"type":"text","text":"` + text + `"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			db, err := store.Open(b.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			open := func() *store.DB { return db }
			recorder := activity.Open(b.Context(), activity.Options{Store: open, Limits: activity.Limits{Payload: 4096, Records: 100000, Size: 256 << 20}})
			tool := item("s", catalog.Tool, "t", `{"readOnlyHint":true}`)
			server := &catalog.Server{Name: "s", Prefix: "s", Known: true, Tools: []*catalog.Item{tool}}
			up := &instant{snapshot: catalog.NewSnapshot([]*catalog.Server{server}), result: json.RawMessage(result)}
			gate := NewGate(up, Rules{Servers: map[string]Rule{"s": {}}}, Options{
				Approvals: NewApprovals(ApprovalOptions{Store: open, DataDir: dir}), Record: recorder.Add,
			})
			gate.Catalog(b.Context())
			use := Use{
				Caller: auth.Local(), Session: wire.NewSession("1", nil), Item: tool, Method: "tools/call",
				Params: json.RawMessage(`{"name":"t","arguments":{"query":"milk"}}`), Mode: "direct", ID: json.RawMessage("7"),
			}
			before := processorTime(b)
			var onPath time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if _, started := gate.Start(use, func(json.RawMessage, *wire.Error) {}); !started {
					b.Fatal("the call was not started")
				}
				onPath += time.Since(began)
				if i%256 == 255 { // or payloads would be dropped
					if err := recorder.Flush(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			recorder.Close()
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(onPath.Microseconds())/float64(b.N), "path-us/op")
			if lost := recorder.Lost(); lost != (activity.Lost{}) {
				b.Errorf("%+v", lost)
			}
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
