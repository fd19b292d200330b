package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// tokenVariable is the environment variable that may hold an agent token.
const tokenVariable = "MCPPROXY_TOKEN"

// holder is what the command line and the environment say of who the client is.
type holder struct {
	secret  auth.Secret
	agent   bool // there is a secret
	profile string
}

// holder reads the token, if one is named, and checks the profile.
func (c *runCmd) holder(a *app, cfg *config.Config) (holder, error) {
	h := holder{profile: c.Profile}
	if err := checkProfile(cfg, c.Profile); err != nil {
		return h, err
	}
	text := a.getenv(tokenVariable)
	var err error
	switch {
	case c.TokenFile != "":
		h.secret, err = auth.ReadTokenFile(a.path(c.TokenFile))
		err = withHint(err)
	case text != "":
		if h.secret, err = auth.ParseSecret(text); err != nil {
			err = fmt.Errorf("%s: %w", tokenVariable, err)
		}
	default:
		return h, nil
	}
	h.agent = err == nil
	return h, err
}

// environWithoutToken is the environment for a process that is not this client's
// alone.
func (a *app) environWithoutToken() []string {
	return slices.DeleteFunc(slices.Clone(a.Environ), func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

func checkProfile(cfg *config.Config, name string) error {
	var names []string
	for _, p := range cfg.Profiles {
		if p.Name == name {
			return nil
		}
		names = append(names, p.Name)
	}
	switch meant := nearest(name, names); {
	case name == "":
		return nil
	case meant != "":
		return misuse("", "no profile %q in %s, did you mean %q?", name, cfg.Path, meant)
	}
	return misuse("", "no profile %q in %s; the profiles are named under \"profiles\"", name, cfg.Path)
}

// identity is who the client of a session is. The store is opened when a token
// is first checked.
func (a *app) identity(h holder, openStore func() *store.DB, dataDir string) *auth.Identity {
	if !h.agent {
		return auth.Person(h.profile)
	}
	tokens := sync.OnceValue(func() *auth.Tokens { return auth.NewTokens(openStore(), dataDir, a.Now) })
	return auth.Holder(func(ctx context.Context) (auth.Caller, error) {
		caller, err := tokens().Authenticate(ctx, h.secret)
		if err != nil && ctx.Err() == nil {
			return auth.Caller{}, deniedTo(err)
		}
		return caller, err
	}, h.profile)
}

// errDenied is what the client of a token is told, whatever the reason.
var errDenied = errors.New("the agent token is not accepted; whoever issued it can look why: mcpproxy token list")

// deniedTo is the error for a client.
func deniedTo(err error) error {
	if errors.Is(err, auth.ErrNoStore) {
		return auth.ErrNoStore
	}
	return errDenied
}
