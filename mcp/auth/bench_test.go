package auth

import (
	"context"
	"fmt"
	"testing"

	"mcpproxy/store"
)

// BenchmarkAuthenticate asks for one of twenty tokens: while nothing changes,
// while somebody writes to another table before each time, and while tokens
// change before each time. The writes are not counted.
func BenchmarkAuthenticate(b *testing.B) {
	changes := map[string]func(b *testing.B, d *desk){
		"same": nil,
		"written": func(b *testing.B, d *desk) {
			if err := d.db.PutList(b.Context(), "k", []byte("v")); err != nil {
				b.Fatal(err)
			}
		},
		"changed": func(b *testing.B, d *desk) {
			err := d.db.Write(b.Context(), func(ctx context.Context, tx *store.Tx) error {
				row, _, err := tx.Token(ctx, "t0")
				if err != nil {
					return err
				}
				return tx.PutToken(ctx, row)
			})
			if err != nil {
				b.Fatal(err)
			}
		},
	}
	for name, change := range changes {
		b.Run(name, func(b *testing.B) {
			d := newDesk(b)
			var secret Secret
			for i := range 20 {
				secret = d.create(b, Settings{Name: fmt.Sprintf("t%d", i), Servers: []string{"a", "b", "c"}})
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if change != nil {
					b.StopTimer()
					change(b, d)
					b.StartTimer()
				}
				if _, err := d.Authenticate(b.Context(), secret); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
