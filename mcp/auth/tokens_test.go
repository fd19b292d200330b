package auth

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// expect authenticates and checks the reason of a denial, nil for none.
func (d *desk) expect(t *testing.T, secret Secret, reason error) {
	t.Helper()
	caller, err := d.Authenticate(t.Context(), secret)
	if !errors.Is(err, reason) || reason != nil && !reflect.DeepEqual(caller, Caller{}) {
		t.Errorf("%v, %v; want %v", caller, err, reason)
	}
	var denied *DeniedError
	if known := reason == ErrExpired || reason == ErrRevoked; errors.As(err, &denied) && (denied.Token == "a") != known {
		t.Errorf("denied to %q: %v", denied.Token, err)
	}
}

func TestAuthenticate(t *testing.T) {
	d := newDesk(t)
	a := d.create(t, Settings{Name: "a", Servers: []string{"y", "x", "y"}, Tier: catalog.Write, Pin: "p"})
	all := d.create(t, Settings{Name: "all", Servers: []string{"*"}, Tier: catalog.Destructive})
	none := d.create(t, Settings{Name: "none"})
	for secret, want := range map[Secret]Caller{
		a:    {Kind: Agent, Token: "a", Servers: []string{"x", "y"}, Tier: catalog.Write, Pin: "p"},
		all:  {Kind: Agent, Token: "all", All: true, Tier: catalog.Destructive},
		none: {Kind: Agent, Token: "none"},
	} {
		for range 2 {
			if caller, err := d.Authenticate(t.Context(), secret); err != nil || !reflect.DeepEqual(caller, want) {
				t.Errorf("%v, %v; want %v", caller, err, want)
			}
		}
	}
	d.expect(t, newSecret(), ErrUnknownToken)
	d.expect(t, Secret{}, ErrUnknownToken)
	if caller, _ := d.Authenticate(t.Context(), none); caller.InScope("x") || caller.InScope("") || caller.InScope("*") {
		t.Error("a token without servers has one in its scope")
	}
}

// TestAuthenticateWithoutKey: an instance that only looks makes no key file.
func TestAuthenticateWithoutKey(t *testing.T) {
	d := newDesk(t)
	d.expect(t, newSecret(), ErrUnknownToken)
	if list, err := d.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, KeyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key file: %v", err)
	}
	// It is there once somebody makes a token.
	d.expect(t, parse(t, elsewhere(t, "create", d.dir, "a", "s")), nil)
}

// TestOthersChangeTokens: what another process does counts from the next call on.
func TestOthersChangeTokens(t *testing.T) {
	d := newDesk(t)
	first := d.create(t, Settings{Name: "a", Servers: []string{"s"}})
	d.expect(t, first, nil)
	second := parse(t, elsewhere(t, "regenerate", d.dir, "a"))
	d.expect(t, first, ErrUnknownToken)
	d.expect(t, second, nil)
	elsewhere(t, "revoke", d.dir, "a")
	d.expect(t, second, ErrRevoked)
	elsewhere(t, "delete", d.dir, "a")
	d.expect(t, second, ErrUnknownToken)
	third := parse(t, elsewhere(t, "create", d.dir, "a", "s", "u"))
	d.expect(t, second, ErrUnknownToken)
	d.expect(t, third, nil)
}

func TestStates(t *testing.T) {
	d := newDesk(t)
	ctx, begin := t.Context(), d.clock.now()
	secret := d.create(t, Settings{Name: "a", Servers: []string{"s"}, Tier: catalog.Write, Pin: "p", ExpiresAt: begin.Add(time.Hour)})
	if _, _, err := d.Create(ctx, Settings{Name: "a"}); !errors.Is(err, ErrTaken) {
		t.Errorf("a taken name: %v", err)
	}
	want := Token{
		Settings: Settings{Name: "a", Servers: []string{"s"}, Tier: catalog.Write, Pin: "p", ExpiresAt: begin.Add(time.Hour)},
		State:    Active, CreatedAt: begin, IssuedAt: begin,
	}
	expect := func(what string) {
		t.Helper()
		got, err := d.Show(ctx, "a")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", what, got, err, want)
		}
	}
	expect("new")
	d.clock.move(time.Hour - time.Millisecond)
	d.expect(t, secret, nil)
	d.clock.move(time.Millisecond)
	d.expect(t, secret, ErrExpired)
	if err := d.db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	want.State, want.UsedAt = Expired, begin.Add(time.Hour-time.Millisecond)
	expect("expired")

	// Expired: valid again, for as long as it was.
	again, token, err := d.Regenerate(ctx, "a", time.Time{})
	want.State, want.UsedAt = Active, time.Time{}
	want.IssuedAt, want.ExpiresAt = begin.Add(time.Hour), begin.Add(2*time.Hour)
	if err != nil || !reflect.DeepEqual(token, want) {
		t.Errorf("%+v, %v", token, err)
	}
	expect("regenerated")
	d.expect(t, secret, ErrUnknownToken)
	d.expect(t, again, nil)

	// Valid: the end stays, unless another is given.
	d.clock.move(time.Minute)
	if _, token, err = d.Regenerate(ctx, "a", time.Time{}); err != nil || !token.ExpiresAt.Equal(begin.Add(2*time.Hour)) {
		t.Errorf("%+v, %v", token, err)
	}
	var wrong *SettingError
	if _, _, err = d.Regenerate(ctx, "a", d.clock.now().Add(MaxLifetime+1)); !errors.As(err, &wrong) {
		t.Errorf("longer than allowed: %v", err)
	}
	last, token, err := d.Regenerate(ctx, "a", begin.Add(3*time.Hour))
	if err != nil || !token.ExpiresAt.Equal(begin.Add(3*time.Hour)) || !token.CreatedAt.Equal(begin) {
		t.Errorf("%+v, %v", token, err)
	}

	token, changed, err := d.Revoke(ctx, "a")
	if err != nil || !changed || token.State != Revoked || !token.RevokedAt.Equal(d.clock.now()) {
		t.Errorf("%+v, %v, %v", token, changed, err)
	}
	d.clock.move(time.Minute)
	if twice, changed, err := d.Revoke(ctx, "a"); err != nil || changed || !reflect.DeepEqual(twice, token) {
		t.Errorf("%+v, %v, %v", twice, changed, err)
	}
	d.expect(t, last, ErrRevoked)
	if _, _, err := d.Regenerate(ctx, "a", time.Time{}); !errors.Is(err, ErrRevoked) {
		t.Errorf("regenerated though revoked: %v", err)
	}
	if _, _, err := d.Create(ctx, Settings{Name: "a"}); !errors.Is(err, ErrTaken) {
		t.Errorf("the name of a revoked token: %v", err)
	}
	if deleted, err := d.Delete(ctx, "a"); err != nil || deleted.State != Revoked || deleted.Name != "a" {
		t.Errorf("%+v, %v", deleted, err)
	}
	d.create(t, Settings{Name: "a"})
}

func TestNoSuchToken(t *testing.T) {
	d := newDesk(t)
	_, errShow := d.Show(t.Context(), "a")
	_, _, errRevoke := d.Revoke(t.Context(), "a")
	_, errDelete := d.Delete(t.Context(), "a")
	_, _, errRegenerate := d.Regenerate(t.Context(), "a", time.Time{})
	for _, err := range []error{errShow, errRevoke, errDelete, errRegenerate} {
		if !errors.Is(err, ErrNoToken) {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.dir, KeyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key file: %v", err)
	}
}

func TestNoStore(t *testing.T) {
	tokens := NewTokens(nil, t.TempDir(), time.Now)
	_, errAuthenticate := tokens.Authenticate(t.Context(), newSecret())
	_, _, errCreate := tokens.Create(t.Context(), Settings{Name: "a"})
	_, errList := tokens.List(t.Context())
	_, _, errRevoke := tokens.Revoke(t.Context(), "a")
	for _, err := range []error{errAuthenticate, errCreate, errList, errRevoke} {
		if !errors.Is(err, ErrNoStore) {
			t.Error(err)
		}
	}

	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a"})
	d.expect(t, secret, nil)
	removeStore(t, d.dir)
	d.expect(t, secret, ErrUnknownToken) // a new store has no tokens
	if err := d.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		t.Fatal(err)
	}
	d.expect(t, secret, ErrNoStore)
	unusable := new(store.UnusableError)
	if _, err := d.Authenticate(t.Context(), secret); !errors.As(err, &unusable) {
		t.Errorf("no reason: %v", err)
	}
}

// TestClosedStore: what cannot be asked denies.
func TestClosedStore(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a"})
	d.expect(t, secret, nil)
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	d.expect(t, secret, ErrNoStore)
}

// TestLostKey: without their key tokens can be ended and made anew, not used.
func TestLostKey(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a", Servers: []string{"s"}})
	d.create(t, Settings{Name: "b"})
	d.expect(t, secret, nil)
	state := func() State {
		t.Helper()
		token, err := d.Show(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		return token.State
	}
	if err := os.Remove(filepath.Join(d.dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != Unusable {
		t.Errorf("without the key: %s", got)
	}
	elsewhere(t, "create", d.dir, "c") // makes another key
	d.expect(t, secret, ErrUnknownToken)
	if got := state(); got != Unusable {
		t.Errorf("with another key: %s", got)
	}
	again := parse(t, elsewhere(t, "regenerate", d.dir, "a"))
	d.expect(t, again, nil)
	if got := state(); got != Active {
		t.Errorf("regenerated: %s", got)
	}
	if token, _, err := d.Revoke(t.Context(), "b"); err != nil || token.State != Revoked {
		t.Errorf("%v, %v", token, err)
	}
}

// TestRefusedKey: with a key file that cannot be used nobody gets in, and
// tokens can still be ended.
func TestRefusedKey(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a"})
	path := filepath.Join(d.dir, KeyFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	var file *FileError
	if _, err := d.Authenticate(t.Context(), secret); !errors.As(err, &file) {
		t.Errorf("authenticate: %v", err)
	}
	if _, _, err := d.Create(t.Context(), Settings{Name: "b"}); !errors.As(err, &file) {
		t.Errorf("create: %v", err)
	}
	if token, err := d.Show(t.Context(), "a"); err != nil || token.State != Unusable {
		t.Errorf("show: %v, %v", token, err)
	}
	if _, _, err := d.Revoke(t.Context(), "a"); err != nil {
		t.Errorf("revoke: %v", err)
	}
	if _, err := d.Delete(t.Context(), "a"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// TestTokenOfLaterBuild: what is not understood permits nothing.
func TestTokenOfLaterBuild(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a", Servers: []string{"*"}})
	err := d.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		row, _, err := tx.Token(ctx, "a")
		if err != nil {
			return err
		}
		row.Tier = "some"
		return tx.PutToken(ctx, row)
	})
	if err != nil {
		t.Fatal(err)
	}
	d.expect(t, secret, ErrUnknownToken)
	if token, err := d.Show(t.Context(), "a"); err != nil || token.State != Unusable || token.Tier != catalog.Read {
		t.Errorf("%+v, %v", token, err)
	}
}

// TestLastUse is written once a minute, by whoever looks.
func TestLastUse(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a"})
	begin := d.clock.now()
	used := func(want time.Duration) {
		t.Helper()
		d.expect(t, secret, nil)
		if err := d.db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if token, err := d.Show(t.Context(), "a"); err != nil || token.UsedAt.Sub(begin) != want {
			t.Errorf("used at %v, %v; want %v", token.UsedAt.Sub(begin), err, want)
		}
	}
	d.clock.move(time.Second)
	used(time.Second)
	d.clock.move(59 * time.Second)
	used(time.Second)
	d.clock.move(time.Second)
	used(61 * time.Second)

	// A use that is denied is none.
	if _, _, err := d.Revoke(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	d.clock.move(time.Hour)
	d.expect(t, secret, ErrRevoked)
	if err := d.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if token, err := d.Show(t.Context(), "a"); err != nil || token.UsedAt.Sub(begin) != 61*time.Second {
		t.Errorf("used at %v, %v", token.UsedAt.Sub(begin), err)
	}
}

// TestSecretsAreNotKept looks into every file of the data folder.
func TestSecretsAreNotKept(t *testing.T) {
	d := newDesk(t)
	first := d.create(t, Settings{Name: "a", Servers: []string{"planted"}})
	second, _, err := d.Regenerate(t.Context(), "a", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	d.expect(t, second, nil)
	found := 0
	for range 2 { // with the write-ahead log, and without
		err := filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			for _, secret := range []Secret{first, second} {
				if bytes.Contains(content, []byte(secret.Reveal()[len(SecretPrefix):])) {
					t.Errorf("%s holds a secret", path)
				}
			}
			if bytes.Contains(content, []byte("planted")) {
				found++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("what is kept was not looked at")
	}
}

// TestDenialsName the token and never its secret.
func TestDenialsName(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "ci"})
	if _, _, err := d.Revoke(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	_, err := d.Authenticate(t.Context(), secret)
	if err == nil || err.Error() != "ci: the agent token is revoked" || strings.Contains(err.Error(), SecretPrefix) {
		t.Error(err)
	}
}

// TestManyAuthenticate at once while tokens change.
func TestManyAuthenticate(t *testing.T) {
	d := newDesk(t)
	secret := d.create(t, Settings{Name: "a"})
	done := make(chan error)
	for range 4 {
		go func() {
			var failed error
			for range 200 {
				if _, err := d.Authenticate(t.Context(), secret); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for range 20 {
		if _, _, err := d.Create(t.Context(), Settings{Name: "b"}); err != nil {
			t.Error(err)
		}
		if _, err := d.Delete(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
