package cli

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"mcpproxy/mcp/auth"
)

// tokenListCmd lists the tokens.
type tokenListCmd struct{}

// Help implements kong.HelpProvider.
func (*tokenListCmd) Help() string {
	return `A token is active, expired, revoked, or unusable: the key that it was stored under is not there, and regenerating the token mends that.

    mcpproxy token list
    mcpproxy token list --json | jq -r '.tokens[] | select(.state == "active").name'`
}

// tokenList is the answer of token list --json.
type tokenList struct {
	Tokens []tokenAnswer `json:"tokens"`
}

// run lists the tokens by name.
func (*tokenListCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tokens, err := a.tokens(ctx, cfg, false)
	if err != nil {
		return err
	}
	var list []auth.Token
	if tokens != nil {
		if list, err = tokens.List(ctx); err != nil {
			return withHint(err)
		}
	}
	a.warnOfKey(cfg.DataDir, list...)
	if a.JSON {
		answer := tokenList{Tokens: []tokenAnswer{}}
		for _, t := range list {
			answer.Tokens = append(answer.Tokens, answerOf(t))
		}
		return a.writeJSON(answer)
	}
	if len(list) == 0 {
		a.note("no tokens")
		a.note("hint: mcpproxy token create NAME --servers SERVERS")
		return nil
	}
	if a.Quiet {
		t := a.newTable("NAME")
		for _, token := range list {
			t.row(txt(token.Name))
		}
		return a.print(t.forProgram())
	}
	t := a.newTable("NAME", "STATE", "PERMISSIONS", "SERVERS", "PROFILE", "EXPIRES", "USED", "CREATED")
	for _, token := range list {
		t.row(txt(token.Name), stateOf(token), txt(strings.Join(auth.Permissions(token.Tier), ",")), txt(strings.Join(token.Servers, ",")),
			txt(token.Pin), a.until(token.ExpiresAt), when(token.UsedAt), when(token.CreatedAt))
	}
	return t.print()
}

// stateOf is a field with the state of a token.
func stateOf(t auth.Token) cell {
	tints := map[auth.State]tint{auth.Active: good, auth.Expired: odd, auth.Revoked: bad, auth.Unusable: bad}
	return cell{text: string(t.State), tint: tints[t.State]}
}

// warnOfKey says what is wrong with the key file where that makes tokens
// unusable.
func (a *app) warnOfKey(dataDir string, list ...auth.Token) {
	if !slices.ContainsFunc(list, func(t auth.Token) bool { return t.State == auth.Unusable }) {
		return
	}
	file := new(auth.FileError)
	if _, err := auth.ReadKey(dataDir); errors.As(err, &file) && !errors.Is(err, fs.ErrNotExist) {
		a.warn(file.Error() + "; " + file.Hint)
	}
}

// tokenShowCmd shows one token.
type tokenShowCmd struct {
	Name string `arg:"" help:"the token"`
}

// Help implements kong.HelpProvider.
func (*tokenShowCmd) Help() string {
	return `The secret is not kept and cannot be shown; when it is lost, regenerate the token.

    mcpproxy token show reviewer
    mcpproxy token show reviewer --json`
}

// run prints the token.
func (c *tokenShowCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	_, token, err := a.tokenNamed(ctx, cfg, c.Name)
	if err != nil {
		return err
	}
	a.warnOfKey(cfg.DataDir, token)
	switch {
	case a.JSON:
		return a.writeJSON(answerOf(token))
	case a.Quiet:
		return a.print(clean(token.Name) + "\n")
	}
	list := []field{
		{"name", txt(token.Name)},
		{"state", stateOf(token)},
		{"servers", txt(strings.Join(token.Servers, ", "))},
		{"permissions", txt(strings.Join(auth.Permissions(token.Tier), ", "))},
		{"profile_pin", txt(token.Pin)},
		{"created_at", when(token.CreatedAt)},
	}
	if !token.IssuedAt.Equal(token.CreatedAt) {
		list = append(list, field{"issued_at", when(token.IssuedAt)})
	}
	return a.printFields(append(list,
		field{"expires_at", a.until(token.ExpiresAt)},
		field{"revoked_at", when(token.RevokedAt)},
		field{"last_used_at", when(token.UsedAt)},
	))
}
