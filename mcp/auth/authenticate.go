package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"mcpproxy/store"
)

// usedEvery is how often the last use of a token is written at most.
const usedEvery = time.Minute

// DeniedError says which token was not accepted and why.
type DeniedError struct {
	// Token is its name, "" where the secret is unknown.
	Token string
	// Reason is [ErrUnknownToken], [ErrExpired] or [ErrRevoked].
	Reason error
}

// Error names reason and token.
func (e *DeniedError) Error() string {
	if e.Token == "" {
		return e.Reason.Error()
	}
	return fmt.Sprintf("%s: %v", e.Token, e.Reason)
}

// Unwrap returns the reason.
func (e *DeniedError) Unwrap() error { return e.Reason }

// snapshot is what the store held.
type snapshot struct {
	data    int64 // see store.DB.DataVersion
	version int64 // see store.DB.TokensVersion
	key     Key
	tokens  []credential
}

// credential is a token ready for comparing.
type credential struct {
	mac     [32]byte
	caller  Caller
	expires time.Time
	revoked bool
}

// Authenticate tells whose secret it is. It is meant to be asked anew for every
// call: what another process has changed counts from then on, and nothing having
// changed costs some microseconds. Only an error of nil lets anybody in. It is
// a [*DeniedError]; [ErrNoStore] or of the store where that cannot be asked; or
// a [*FileError] of the key file. The key file is read when tokens change, so
// to take it away ends no token that is in use: to revoke it does.
func (t *Tokens) Authenticate(ctx context.Context, secret Secret) (Caller, error) {
	known, err := t.current(ctx)
	if err != nil {
		return Caller{}, err
	}
	if known.key.bytes == nil || secret.text == nil {
		return Caller{}, &DeniedError{Reason: ErrUnknownToken}
	}
	mac := known.key.MAC(tokenPurpose, []byte(secret.Reveal()))
	found := -1
	for i := range known.tokens {
		// All are compared, so that the time tells nothing.
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(mac[:], known.tokens[i].mac[:]), i, found)
	}
	now := t.now()
	switch {
	case found < 0:
		return Caller{}, &DeniedError{Reason: ErrUnknownToken}
	case known.tokens[found].revoked:
		return Caller{}, &DeniedError{Token: known.tokens[found].caller.Token, Reason: ErrRevoked}
	case !now.Before(known.tokens[found].expires):
		return Caller{}, &DeniedError{Token: known.tokens[found].caller.Token, Reason: ErrExpired}
	}
	t.used(mac, now)
	return known.tokens[found].caller, nil
}

// current is what the store holds now.
func (t *Tokens) current(ctx context.Context) (*snapshot, error) {
	if t.db == nil {
		return nil, ErrNoStore
	}
	// Numbers are read before what they are the numbers of: if that changes in
	// between, they are too low and it is read again the next time.
	data, err := t.db.DataVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoStore, err)
	}
	known := t.known.Load()
	if known != nil && known.data == data {
		return known, nil
	}
	version, err := t.db.TokensVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoStore, err)
	}
	next := &snapshot{data: data, version: version}
	if known != nil && known.version == version {
		next.key, next.tokens = known.key, known.tokens
	} else if err := t.load(ctx, next); err != nil {
		return nil, err
	}
	t.known.Store(next)
	return next, nil
}

// load reads the tokens and their key.
func (t *Tokens) load(ctx context.Context, into *snapshot) error {
	rows, err := t.db.Tokens(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoStore, err)
	}
	if into.key, err = ReadKey(t.dataDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // without a file there is no token either
	}
	for _, row := range rows {
		tier, understood := tierOf(row.Tier)
		if !understood || len(row.MAC) != len(credential{}.mac) || row.KeyID != into.key.ID() {
			continue
		}
		into.tokens = append(into.tokens, credential{
			mac:     [32]byte(row.MAC),
			caller:  callerOf(row, Caller{Kind: Agent, Token: row.Name, Tier: tier, Pin: row.ProfilePin}),
			expires: row.ExpiresAt,
			revoked: !row.RevokedAt.IsZero(),
		})
	}
	return nil
}

// callerOf adds the scope of a row.
func callerOf(row store.Token, c Caller) Caller {
	if slices.Equal(row.Servers, []string{everyServer}) {
		c.All = true
	} else {
		c.Servers = slices.Sorted(slices.Values(row.Servers))
	}
	return c
}

// used has the last use of a token written soon, if that was not done lately.
func (t *Tokens) used(mac [32]byte, now time.Time) {
	t.mu.Lock()
	last, ok := t.usedAt[mac]
	due := !ok || now.Sub(last) >= usedEvery
	if due {
		t.usedAt[mac] = now
	}
	t.mu.Unlock()
	if due {
		t.writeUse(mac, now)
	}
}

// writeUse is apart from used to spare every call what it allocates.
func (t *Tokens) writeUse(mac [32]byte, now time.Time) {
	// Nobody is denied because this cannot be written.
	_ = t.db.Later(func(ctx context.Context, tx *store.Tx) error { return tx.TouchToken(ctx, mac[:], now) })
}
