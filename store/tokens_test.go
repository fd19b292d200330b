package store

import (
	"context"
	"reflect"
	"testing"
	"time"
)

func putToken(t *testing.T, db *DB, token Token) {
	t.Helper()
	if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.PutToken(ctx, token) }); err != nil {
		t.Fatal(err)
	}
}

func touchToken(t *testing.T, db *DB, mac string, at time.Time) {
	t.Helper()
	if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.TouchToken(ctx, []byte(mac), at) }); err != nil {
		t.Fatal(err)
	}
}

func tokensVersion(t *testing.T, db *DB) int64 {
	t.Helper()
	n, err := db.TokensVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTokens(t *testing.T) {
	db := fresh(t)
	other := open(t, db.Path())
	at := time.UnixMilli(1_700_000_000_123)
	a := Token{
		Name: "a", MAC: []byte("mac a"), KeyID: 7, Servers: []string{"x", "y"}, Tier: "write", ProfilePin: "p",
		CreatedAt: at, IssuedAt: at.Add(time.Second), ExpiresAt: at.Add(time.Hour), RevokedAt: at.Add(time.Minute),
	}
	b := Token{Name: "b", MAC: []byte("mac b"), Servers: []string{}, Tier: "read", CreatedAt: at, IssuedAt: at, ExpiresAt: at}
	putToken(t, db, b)
	putToken(t, db, a)
	list, err := other.Tokens(t.Context())
	if err != nil || !reflect.DeepEqual(list, []Token{a, b}) {
		t.Fatalf("%+v, %v", list, err)
	}

	touchToken(t, db, "mac a", at.Add(time.Minute))
	touchToken(t, db, "mac a", at) // came late
	touchToken(t, db, "nobody's", at)
	a.UsedAt = at.Add(time.Minute)
	a.Tier, a.Servers = "read", []string{"*"}
	putToken(t, db, a)
	err = other.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		got, ok, err := tx.Token(ctx, "a")
		if err != nil || !ok || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v, %v, %v; want %+v", got, ok, err, a)
		}
		if _, ok, err := tx.Token(ctx, "c"); ok || err != nil {
			t.Errorf("a token that is not there: %v, %v", ok, err)
		}
		return tx.DeleteToken(ctx, "b")
	})
	if err != nil {
		t.Fatal(err)
	}

	// Another secret has not been used yet.
	a.MAC, a.UsedAt = []byte("new mac"), time.Time{}
	putToken(t, db, a)
	if list, err := other.Tokens(t.Context()); err != nil || !reflect.DeepEqual(list, []Token{a}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTokensVersion: everything that decides who is let in changes the number,
// the last use does not.
func TestTokensVersion(t *testing.T) {
	db := fresh(t)
	other := open(t, db.Path())
	token := Token{Name: "a", MAC: []byte("m"), Servers: []string{"x"}, Tier: "read"}
	last := tokensVersion(t, other)
	expect := func(what string, change bool) {
		t.Helper()
		n := tokensVersion(t, other)
		if (n != last) != change {
			t.Errorf("%s: the version went from %d to %d", what, last, n)
		}
		last = n
	}
	expect("nothing", false)
	putToken(t, db, token)
	expect("a new token", true)
	touchToken(t, db, "m", time.Now())
	expect("a use", false)
	token.RevokedAt = time.Now()
	putToken(t, db, token)
	expect("a revocation", true)
	if err := db.PutList(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	expect("another table", false)
	if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.DeleteToken(ctx, "a") }); err != nil {
		t.Fatal(err)
	}
	expect("a deletion", true)
}

func TestTokensOfNoStore(t *testing.T) {
	var db *DB
	if list, err := db.Tokens(t.Context()); list != nil || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if n, err := db.TokensVersion(t.Context()); n != 0 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
	if m, err := db.KeyMark(t.Context()); m != (KeyMark{}) || err != nil {
		t.Errorf("%v, %v", m, err)
	}
}

func TestKeyMark(t *testing.T) {
	db := fresh(t)
	other := open(t, db.Path())
	if m, err := other.KeyMark(t.Context()); m != (KeyMark{}) || err != nil {
		t.Errorf("of a new store: %v, %v", m, err)
	}
	for _, want := range []KeyMark{{ID: 1, Orphan: true}, {ID: 1<<63 - 1}} {
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.PutKeyMark(ctx, want); err != nil {
				return err
			}
			if m, err := tx.KeyMark(ctx); m != want || err != nil {
				t.Errorf("%v, %v; want %v", m, err, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := other.KeyMark(t.Context()); m != want || err != nil {
			t.Errorf("%v, %v; want %v", m, err, want)
		}
	}
}
