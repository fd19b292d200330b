package auth

import (
	"context"
	"sync/atomic"
)

// Identity is who the client of one session is, and the profile that it has
// chosen. Its methods may be called from several goroutines.
type Identity struct {
	caller  Caller                                // where check is nil
	check   func(context.Context) (Caller, error) // asked at every request
	profile string                                // from the start; "" for none
	chosen  atomic.Pointer[string]
}

// Person is the Identity of the local user, limited to a profile unless that is
// "".
func Person(profile string) *Identity { return &Identity{caller: Local(), profile: profile} }

// Holder is the Identity of whoever holds a token, which check looks at anew for
// every request. The token's own pin comes before profile.
func Holder(check func(context.Context) (Caller, error), profile string) *Identity {
	return &Identity{check: check, profile: profile}
}

// Caller is who asks now. The error is that of the check.
func (i *Identity) Caller(ctx context.Context) (Caller, error) {
	if caller, ok := i.Present(); ok {
		return caller, nil
	}
	caller, err := i.check(ctx)
	if err != nil {
		return Caller{}, err
	}
	return i.limited(caller), nil
}

// Present is Caller where nothing has to be checked.
func (i *Identity) Present() (caller Caller, ok bool) {
	if i.check != nil {
		return Caller{}, false
	}
	return i.limited(i.caller), true
}

// Choose puts a profile into effect for the session, "" for none. The pin of a
// token and the profile that the session was started with come before it.
func (i *Identity) Choose(profile string) { i.chosen.Store(&profile) }

// limited is the caller with the profile in effect.
func (i *Identity) limited(caller Caller) Caller {
	chosen := ""
	if p := i.chosen.Load(); p != nil {
		chosen = *p
	}
	for _, profile := range []string{caller.Pin, i.profile, chosen} {
		if profile != "" {
			caller.Profile = profile
			break
		}
	}
	return caller
}
