package auth

import (
	"context"
	"time"

	"mcpproxy/store"
)

// tokenPurpose is what the key is used for here.
const tokenPurpose = "agent token"

// Create makes a token and returns its secret, which is not kept, and the token
// as it is to be recorded. The key file is made where it is missing. The error
// is a [*SettingError], [ErrTaken] also if the token of that name is revoked or
// expired, or as of [Bind].
func (t *Tokens) Create(ctx context.Context, s Settings) (Secret, Token, error) {
	now := t.now()
	s, err := s.valid(now)
	if err != nil {
		return Secret{}, Token{}, err
	}
	row := store.Token{
		Name: s.Name, Servers: s.Servers, Tier: s.Tier.String(), ProfilePin: s.Pin,
		CreatedAt: now, ExpiresAt: s.ExpiresAt,
	}
	return t.issue(ctx, s.Name, now, func(_ store.Token, taken bool) (store.Token, error) {
		if taken {
			return row, ErrTaken
		}
		return row, nil
	})
}

// Regenerate gives a token a new secret; the old one is dead from then on. The
// settings stay. So does the expiry, unless another is given; a token that has
// expired is valid for as long again as it was. A token that was revoked stays
// so: the error is [ErrRevoked], and whoever wants it back deletes and creates
// it. Other errors are [ErrNoToken], a [*SettingError] and as of [Bind].
func (t *Tokens) Regenerate(ctx context.Context, name string, expiresAt time.Time) (Secret, Token, error) {
	now := t.now()
	if !expiresAt.IsZero() {
		if err := checkExpiry(expiresAt, now); err != nil {
			return Secret{}, Token{}, err
		}
	}
	return t.issue(ctx, name, now, func(row store.Token, exists bool) (store.Token, error) {
		switch {
		case !exists:
			return row, ErrNoToken
		case !row.RevokedAt.IsZero():
			return row, ErrRevoked
		case !expiresAt.IsZero():
			row.ExpiresAt = expiresAt
		case !now.Before(row.ExpiresAt):
			row.ExpiresAt = now.Add(min(row.ExpiresAt.Sub(row.IssuedAt), MaxLifetime))
		}
		return row, nil
	})
}

// issue makes a secret, as of now, for what change makes of the row of a name,
// and writes that.
func (t *Tokens) issue(ctx context.Context, name string, now time.Time, change func(row store.Token, exists bool) (store.Token, error)) (Secret, Token, error) {
	if t.db == nil {
		return Secret{}, Token{}, ErrNoStore
	}
	secret := newSecret()
	var token Token
	err := t.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, exists, err := tx.Token(ctx, name)
		if err != nil {
			return err
		}
		if row, err = change(row, exists); err != nil {
			return err
		}
		bound, err := bind(ctx, tx, t.dataDir)
		if err != nil {
			return err
		}
		mac := bound.Key.MAC(tokenPurpose, []byte(secret.Reveal()))
		row.MAC, row.KeyID, row.IssuedAt, row.UsedAt = mac[:], bound.Key.ID(), now, time.Time{}
		token = tokenOf(row, row.KeyID, now)
		return tx.PutToken(ctx, row)
	})
	if err != nil {
		return Secret{}, Token{}, err
	}
	return secret, token, nil
}

// Revoke ends a token for good and keeps its name. It returns the token as it
// is now; changed is false where it was revoked before. The error is
// [ErrNoToken] or of the store.
func (t *Tokens) Revoke(ctx context.Context, name string) (token Token, changed bool, err error) {
	err = t.edit(ctx, name, func(ctx context.Context, tx *store.Tx, row store.Token) error {
		if changed = row.RevokedAt.IsZero(); changed {
			row.RevokedAt = t.now()
		}
		token = tokenOf(row, row.KeyID, t.now())
		if !changed {
			return nil
		}
		return tx.PutToken(ctx, row)
	})
	return token, changed && err == nil, err
}

// Delete ends a token for good and frees its name. It returns the token as it
// was. The error is [ErrNoToken] or of the store.
func (t *Tokens) Delete(ctx context.Context, name string) (token Token, err error) {
	err = t.edit(ctx, name, func(ctx context.Context, tx *store.Tx, row store.Token) error {
		token = tokenOf(row, row.KeyID, t.now())
		return tx.DeleteToken(ctx, name)
	})
	return token, err
}

// edit changes the token of a name. The key file is not looked at: a token can
// be ended whatever has become of that.
func (t *Tokens) edit(ctx context.Context, name string, change func(context.Context, *store.Tx, store.Token) error) error {
	if t.db == nil {
		return ErrNoStore
	}
	return t.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, exists, err := tx.Token(ctx, name)
		if err != nil {
			return err
		}
		if !exists {
			return ErrNoToken
		}
		return change(ctx, tx, row)
	})
}
