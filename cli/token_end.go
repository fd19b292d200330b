package cli

import (
	"context"

	"mcpproxy/mcp/activity"
)

// tokenRevokeCmd ends a token and keeps its name.
type tokenRevokeCmd struct {
	Name string `arg:"" help:"the token"`
	Yes  bool   `short:"y" help:"do not ask"`
}

// Help implements kong.HelpProvider.
func (*tokenRevokeCmd) Help() string {
	return `Whoever uses the token is denied from the next call on. It stays in the list, and no other can take its name.

    mcpproxy token revoke reviewer
    mcpproxy token revoke reviewer --yes`
}

// run revokes the token. Doing it twice is no error.
func (c *tokenRevokeCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tokens, token, err := a.tokenNamed(ctx, cfg, c.Name)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, c.Yes, "revoke token "+token.Name+" ("+answerOf(token).summary()+") for good?"); err != nil {
		return err
	}
	token, _, err = tokens.Revoke(ctx, c.Name)
	if err != nil {
		return withHint(err)
	}
	a.audit(ctx, cfg, activity.Record{Token: c.Name}, "token revoked")
	a.note("revoked token %s", c.Name)
	if a.JSON {
		return a.writeJSON(answerOf(token))
	}
	return nil
}

// tokenDeleteCmd ends a token and frees its name.
type tokenDeleteCmd struct {
	Name string `arg:"" help:"the token"`
	Yes  bool   `short:"y" help:"do not ask"`
}

// Help implements kong.HelpProvider.
func (*tokenDeleteCmd) Help() string {
	return `Whoever uses the token is denied from the next call on, and nothing is left of it. To keep its name from being used again, revoke it.

    mcpproxy token delete reviewer
    mcpproxy token delete reviewer --yes`
}

// deletedToken is the answer of token delete --json.
type deletedToken struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

// run deletes the token.
func (c *tokenDeleteCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tokens, token, err := a.tokenNamed(ctx, cfg, c.Name)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, c.Yes, "delete token "+token.Name+" ("+answerOf(token).summary()+") for good?"); err != nil {
		return err
	}
	if _, err := tokens.Delete(ctx, c.Name); err != nil {
		return withHint(err)
	}
	a.audit(ctx, cfg, activity.Record{Token: c.Name}, "token deleted")
	a.note("deleted token %s", c.Name)
	if a.JSON {
		return a.writeJSON(deletedToken{Name: c.Name, Deleted: true})
	}
	return nil
}
