package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// tokenCmd is about agent tokens.
type tokenCmd struct {
	Create     tokenCreateCmd     `cmd:"" help:"make a token and print its secret, once"`
	List       tokenListCmd       `cmd:"" help:"list the tokens"`
	Show       tokenShowCmd       `cmd:"" help:"show one token"`
	Revoke     tokenRevokeCmd     `cmd:"" help:"end a token for good; its name stays taken"`
	Delete     tokenDeleteCmd     `cmd:"" help:"end a token for good and free its name"`
	Regenerate tokenRegenerateCmd `cmd:"" help:"give a token a new secret; the old one is dead at once"`
}

// Help implements kong.HelpProvider.
func (*tokenCmd) Help() string {
	return `A client that is started with a token sees and uses what the token permits: some servers, tools up to a tier, for a time. Against a program that runs as the same user this is a guard rail, no boundary.

    mcpproxy token create reviewer --servers github --permissions read > reviewer.token
    mcpproxy token list`
}

// tokenAnswer is one token in answers to --json.
type tokenAnswer struct {
	Name        string   `json:"name"`
	State       string   `json:"state"` // active, expired, revoked, unusable
	Servers     []string `json:"servers"`
	Permissions []string `json:"permissions"`
	ProfilePin  string   `json:"profile_pin,omitempty"`
	CreatedAt   string   `json:"created_at"`
	IssuedAt    string   `json:"issued_at"` // when its present secret was made
	ExpiresAt   string   `json:"expires_at"`
	RevokedAt   string   `json:"revoked_at,omitempty"`
	LastUsedAt  string   `json:"last_used_at,omitempty"`
	Token       string   `json:"token,omitempty"` // the secret, in the answer that makes it
}

func answerOf(t auth.Token) tokenAnswer {
	return tokenAnswer{
		Name: t.Name, State: string(t.State), Servers: append([]string{}, t.Servers...), Permissions: auth.Permissions(t.Tier),
		ProfilePin: t.Pin, CreatedAt: when(t.CreatedAt).whole(), IssuedAt: when(t.IssuedAt).whole(), ExpiresAt: when(t.ExpiresAt).whole(),
		RevokedAt: when(t.RevokedAt).whole(), LastUsedAt: when(t.UsedAt).whole(),
	}
}

// summary says in words what a token permits.
func (t tokenAnswer) summary() string {
	servers := strings.Join(t.Servers, ", ")
	if servers == "" {
		servers = "no servers"
	}
	if t.ProfilePin != "" {
		servers += " within profile " + t.ProfilePin
	}
	return fmt.Sprintf("%s: %s; expires %s", servers, strings.Join(t.Permissions, ", "), t.ExpiresAt)
}

// tokens opens the agent tokens. Where there is no store yet it is made if they
// are to be written; else there are no tokens, and the result is nil.
func (a *app) tokens(ctx context.Context, cfg *config.Config, write bool) (*auth.Tokens, error) {
	path := filepath.Join(cfg.DataDir, storeFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !write {
		return nil, nil
	}
	db, err := store.Open(ctx, path, store.Options{Now: a.Now})
	if err != nil {
		return nil, withHint(err)
	}
	a.opened = append(a.opened, db)
	return auth.NewTokens(db, cfg.DataDir, a.Now), nil
}

// withHint passes on what the error of a file knows a person can do.
func withHint(err error) error {
	var unusable *store.UnusableError
	var file *auth.FileError
	switch {
	case errors.As(err, &unusable):
		return hinted(unusable.Hint, "%w", err)
	case errors.As(err, &file):
		return hinted(file.Hint, "%w", err)
	}
	return err
}

// tokenNamed returns the token of a name, with the tokens it is among.
func (a *app) tokenNamed(ctx context.Context, cfg *config.Config, name string) (*auth.Tokens, auth.Token, error) {
	tokens, err := a.tokens(ctx, cfg, false)
	if err != nil {
		return nil, auth.Token{}, err
	}
	var list []auth.Token
	if tokens != nil {
		if list, err = tokens.List(ctx); err != nil {
			return nil, auth.Token{}, withHint(err)
		}
	}
	var names []string
	for _, token := range list {
		if token.Name == name {
			return tokens, token, nil
		}
		names = append(names, token.Name)
	}
	if meant := nearest(name, names); meant != "" {
		return nil, auth.Token{}, hinted("mcpproxy token list", "no token %q, did you mean %q?", name, meant)
	}
	return nil, auth.Token{}, hinted("mcpproxy token list", "no token %q", name)
}

// until is a field with a time to come.
func (a *app) until(at time.Time) cell {
	left := at.Sub(a.Now())
	switch {
	case !a.IsTerminal(Stdout) || left <= 0:
		return when(at)
	case left < time.Hour:
		return txt(fmt.Sprintf("in %dm", left/time.Minute))
	case left < 48*time.Hour:
		return txt(fmt.Sprintf("in %dh", left/time.Hour))
	}
	return txt(fmt.Sprintf("in %dd", left/(24*time.Hour)))
}
