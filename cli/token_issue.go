package cli

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/auth"
)

// tokenCreateCmd makes a token.
type tokenCreateCmd struct {
	Name        string   `arg:"" help:"what to call the token: letters, digits, - and _"`
	Servers     []string `required:"" help:"the servers it may use, or '*' for all" placeholder:"NAME"`
	Permissions []string `default:"read" help:"the tiers of tools it may use, of read, write, destructive; each includes those before (default: ${default})" placeholder:"TIER"`
	Expires     string   `help:"when it ends: a time such as 12h or 90d, a day such as 2026-05-31, or a moment by RFC 3339 (default: 30d; at most 365d)" placeholder:"WHEN"`
	ProfilePin  string   `help:"bind it to this profile of the configuration; should that be removed, the token permits nothing" placeholder:"PROFILE"`
}

// Help implements kong.HelpProvider.
func (*tokenCreateCmd) Help() string {
	return `The secret alone is written to stdout. It is not kept: what is stored does not allow to make it again.

    (umask 077; mcpproxy token create reviewer --servers github,docs --permissions read > reviewer.token)
    mcpproxy token create deploy --servers '*' --permissions read,write,destructive --expires 12h`
}

// run makes the token.
func (c *tokenCreateCmd) run(ctx context.Context, a *app) error {
	const help = "mcpproxy token create --help"
	settings, err := c.settings(a.Now())
	if err != nil {
		return settingFailure(help, err)
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var servers, profiles []string
	for _, s := range cfg.Servers {
		servers = append(servers, s.Name)
	}
	for _, p := range cfg.Profiles {
		profiles = append(profiles, p.Name)
	}
	warnings, err := settings.Check(servers, profiles)
	if err != nil {
		return settingFailure(help, err)
	}
	tokens, err := a.tokens(ctx, cfg, true)
	if err != nil {
		return err
	}
	secret, token, err := tokens.Create(ctx, settings)
	if errors.Is(err, auth.ErrTaken) {
		return hinted("mcpproxy token regenerate "+c.Name, "there is a token %q already", c.Name)
	}
	if err != nil {
		return settingFailure(help, err)
	}
	for _, warning := range warnings {
		a.warn(warning)
	}
	a.audit(ctx, cfg, activity.Record{Token: token.Name}, "token created")
	return a.handOver("created", secret, token)
}

// settings are what the options say.
func (c *tokenCreateCmd) settings(now time.Time) (auth.Settings, error) {
	s := auth.Settings{Name: c.Name, Servers: words(c.Servers), Pin: c.ProfilePin}
	var err error
	if s.Tier, err = auth.ParsePermissions(words(c.Permissions)); err != nil {
		return s, err
	}
	s.ExpiresAt, err = expiry(c.Expires, now)
	return s, err
}

// words are the items of a list that are not empty.
func words(list []string) []string {
	var kept []string
	for _, item := range list {
		if item = strings.TrimSpace(item); item != "" {
			kept = append(kept, item)
		}
	}
	return kept
}

// expiry is what --expires says; the zero time where it says nothing.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return auth.ParseExpiry(text, now)
}

// settingFailure tells wrong settings, which are a misuse of the command, from
// other failures.
func settingFailure(help string, err error) error {
	if wrong := new(auth.SettingError); errors.As(err, &wrong) {
		return misuse(help, "%w", err)
	}
	return withHint(err)
}

// tokenRegenerateCmd gives a token a new secret.
type tokenRegenerateCmd struct {
	Name    string `arg:"" help:"the token"`
	Expires string `help:"when it ends, as of token create (default: as before; if it has expired, for as long again as it was valid)" placeholder:"WHEN"`
}

// Help implements kong.HelpProvider.
func (*tokenRegenerateCmd) Help() string {
	return `The settings stay. Whoever uses the old secret is denied from the next call on. A token that was revoked cannot be regenerated.

    (umask 077; mcpproxy token regenerate reviewer > reviewer.token)
    mcpproxy token regenerate reviewer --expires 90d`
}

// run replaces the secret.
func (c *tokenRegenerateCmd) run(ctx context.Context, a *app) error {
	const help = "mcpproxy token regenerate --help"
	expires, err := expiry(c.Expires, a.Now())
	if err != nil {
		return settingFailure(help, err)
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tokens, _, err := a.tokenNamed(ctx, cfg, c.Name)
	if err != nil {
		return err
	}
	secret, token, err := tokens.Regenerate(ctx, c.Name, expires)
	if errors.Is(err, auth.ErrRevoked) {
		return hinted("mcpproxy token delete "+c.Name+" && mcpproxy token create "+c.Name+" --servers SERVERS", "token %q is revoked and stays so", c.Name)
	}
	if err != nil {
		return settingFailure(help, err)
	}
	a.audit(ctx, cfg, activity.Record{Token: token.Name}, "token regenerated")
	return a.handOver("regenerated", secret, token)
}

// handOver prints a secret that exists nowhere else.
func (a *app) handOver(done string, secret auth.Secret, token auth.Token) error {
	answer := answerOf(token)
	var err error
	if a.JSON {
		answer.Token = secret.Reveal()
		err = a.writeJSON(answer)
	} else {
		err = a.print(secret.Reveal() + "\n")
	}
	if err != nil {
		return hinted("mcpproxy token regenerate "+token.Name, "token %s was %s, but its secret is lost: %w", token.Name, done, err)
	}
	a.note("%s token %s for %s", done, token.Name, answer.summary())
	a.note("the secret is not shown again; a client uses it by --token-file FILE or MCPPROXY_TOKEN")
	if a.othersReadStdout() {
		a.warn("other users can read the file that the secret went to, and --token-file refuses such a file; take that right away (chmod 600)")
	}
	return nil
}

// othersReadStdout reports whether stdout is a file with rights for others.
func (a *app) othersReadStdout() bool {
	file, ok := a.Stdout.(*os.File)
	if !ok || runtime.GOOS == "windows" { // where the mode says nothing
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}
