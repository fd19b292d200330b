package activity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/store"
)

// resultOf is a tool's result with one text block of about n bytes.
func resultOf(t testing.TB, text string, n int) []byte {
	t.Helper()
	text = strings.Repeat(text, n/len(text)+1)[:n]
	raw, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// benchPayloads are payloads of 64 KiB of the sorts that servers send.
func benchPayloads(t testing.TB) map[string][]byte {
	var rows strings.Builder
	for i := 0; rows.Len() < 64<<10; i++ {
		fmt.Fprintf(&rows, `{"id":%d,"name":"row %d","url":"https://example.com/items/%d?page=%d","sha":"%040x","ok":true,"price":%d.%02d},`,
			rand.IntN(1<<40), i, i, i, rand.Uint64(), rand.IntN(10000), i%100)
	}
	noise := make([]byte, 48<<10)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	return map[string][]byte{
		"prose":  resultOf(t, "The quick brown fox jumps over the lazy dog, and then it goes on for a while.\n", 64<<10),
		"code":   resultOf(t, "func (s *Server) handleRequest(ctx context.Context, r *Request) error {\n\treturn s.next.Handle(ctx, r)\n}\n", 64<<10),
		"rows":   resultOf(t, rows.String(), 64<<10),
		"json":   []byte("[" + strings.TrimSuffix(rows.String(), ",") + "]"),
		"base64": resultOf(t, base64.StdEncoding.EncodeToString(noise), 64<<10),
		"tiny":   []byte(`{"content":[{"type":"text","text":"wrote notes://note/ideas"}]}`),
	}
}

// BenchmarkScan is what the detection costs for each payload.
func BenchmarkScan(b *testing.B) {
	for name, payload := range benchPayloads(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				Scan(payload)
			}
		})
	}
}

// BenchmarkRow is what a record costs off the path of its call, but for the
// write: detection, masking, cutting.
func BenchmarkRow(b *testing.B) {
	request := []byte(`{"name":"write_note","arguments":{"name":"ideas","text":"one more"}}`)
	for name, payload := range benchPayloads(b) {
		b.Run(name, func(b *testing.B) {
			w := writer{masker: NewMasker(someSecrets(), isSecretName)}
			rec := Record{Server: "notes", Tool: "write_note", Client: "bench", Session: "s-1", Request: request, Response: payload}
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				w.row(&rec, 4096)
			}
		})
	}
}

// BenchmarkRecord is what a record costs altogether, with the write in groups.
func BenchmarkRecord(b *testing.B) {
	request := []byte(`{"name":"write_note","arguments":{"name":"ideas","text":"one more"}}`)
	for name, payload := range benchPayloads(b) {
		b.Run(name, func(b *testing.B) {
			db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "mcpproxy.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			r := Open(b.Context(), Options{
				Store: func() *store.DB { return db }, Instance: "bench", Mode: "direct", Secrets: someSecrets, SecretName: isSecretName,
				Limits: Limits{Payload: 4096, Records: 20000, Size: 256 << 20},
			})
			defer r.Close()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r.Add(Record{Kind: Call, Status: Success, Server: "notes", Tool: "write_note", Client: "bench", Session: "s-1",
					Caller: "admin", Tier: "write", Request: request, Response: payload})
				if n++; n%groupMost == 0 {
					if err := r.Flush(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			if lost := r.Lost(); lost != (Lost{}) {
				b.Errorf("lost %+v", lost)
			}
		})
	}
}

// BenchmarkAdd is what a record costs its call.
func BenchmarkAdd(b *testing.B) {
	r := Open(b.Context(), Options{Limits: Limits{Payload: 4096}})
	defer r.Close()
	request, response := []byte(`{}`), bytes.Repeat([]byte("x"), 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		r.Add(Record{Kind: Call, Status: Success, Server: "notes", Tool: "write_note", Request: request, Response: response})
	}
}

// someSecrets are as many as ten servers may have.
func someSecrets() []string {
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf("Secret-%d-of-the-configuration", i))
	}
	return list
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "password") || strings.Contains(name, "token") || strings.Contains(name, "secret") ||
		strings.Contains(name, "api_key") || strings.Contains(name, "authorization")
}
