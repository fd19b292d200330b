package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// What tokens fail with. Those of [Tokens.Authenticate] are for logs and
// administrators: a client is to be told the same whatever the reason.
var (
	// ErrNoStore: without a usable store no token can be checked or changed.
	ErrNoStore = errors.New("agent tokens need a usable store")
	// ErrUnknownToken: nobody was given this secret, or it was replaced since.
	ErrUnknownToken = errors.New("unknown agent token")
	// ErrExpired: the token's time is over.
	ErrExpired = errors.New("the agent token has expired")
	// ErrRevoked: the token was revoked.
	ErrRevoked = errors.New("the agent token is revoked")
	// ErrNoToken: there is no token of this name.
	ErrNoToken = errors.New("no token of this name")
	// ErrTaken: there is a token of this name.
	ErrTaken = errors.New("a token of this name exists")
)

// State is whether a token can be used.
type State string

// The states of a token. Of several the first counts.
const (
	Revoked State = "revoked"
	Expired State = "expired"
	// Unusable: the key that it was stored under cannot be used, or a later build
	// wrote what this one does not understand.
	Unusable State = "unusable"
	Active   State = "active"
)

// Token is an agent token as everybody may see it: without its secret. Times
// are zero for never.
type Token struct {
	// Settings are those it was made with.
	Settings
	State State
	// CreatedAt is when the token was made, IssuedAt its present secret.
	CreatedAt, IssuedAt time.Time
	RevokedAt           time.Time
	// UsedAt is when the present secret was last used, a minute more or less.
	UsedAt time.Time
}

// Tokens are the agent tokens in a store. All methods may be called from
// several goroutines. With a nil store, which stands for one that cannot be
// used, each returns [ErrNoStore].
type Tokens struct {
	db      *store.DB
	dataDir string
	now     func() time.Time
	known   atomic.Pointer[snapshot]

	mu     sync.Mutex
	usedAt map[[32]byte]time.Time // by MAC, when its use was last written
}

// NewTokens returns the tokens in db, whose key file is in dataDir. Nothing is
// read or made before it is needed.
func NewTokens(db *store.DB, dataDir string, now func() time.Time) *Tokens {
	return &Tokens{db: db, dataDir: dataDir, now: now, usedAt: map[[32]byte]time.Time{}}
}

// List returns all tokens ordered by name. A key file that cannot be used, of
// which [ReadKey] tells why, makes them [Unusable] and is no error.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	if t.db == nil {
		return nil, ErrNoStore
	}
	rows, err := t.db.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	key, _ := ReadKey(t.dataDir)
	list := make([]Token, len(rows))
	for i, row := range rows {
		list[i] = tokenOf(row, key.ID(), t.now())
	}
	return list, nil
}

// Show returns the token of a name, or [ErrNoToken].
func (t *Tokens) Show(ctx context.Context, name string) (Token, error) {
	list, err := t.List(ctx)
	if err != nil {
		return Token{}, err
	}
	i := slices.IndexFunc(list, func(token Token) bool { return token.Name == name })
	if i < 0 {
		return Token{}, ErrNoToken
	}
	return list[i], nil
}

// tokenOf is a row as everybody may see it. keyID is that of the key in use.
func tokenOf(row store.Token, keyID int64, now time.Time) Token {
	tier, known := tierOf(row.Tier)
	if !known {
		tier = catalog.Read
	}
	token := Token{
		Settings:  Settings{Name: row.Name, Servers: row.Servers, Tier: tier, ExpiresAt: row.ExpiresAt, Pin: row.ProfilePin},
		State:     Active,
		CreatedAt: row.CreatedAt, IssuedAt: row.IssuedAt, RevokedAt: row.RevokedAt, UsedAt: row.UsedAt,
	}
	switch {
	case !row.RevokedAt.IsZero():
		token.State = Revoked
	case !now.Before(row.ExpiresAt):
		token.State = Expired
	case !known || row.KeyID != keyID:
		token.State = Unusable
	}
	return token
}
