package upstream

import (
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// TestRememberedFailures holds back a new start only for what a new start would
// meet again: a backoff that runs, a login that is missing. What an earlier
// process did not find on its PATH says nothing about this one.
func TestRememberedFailures(t *testing.T) {
	for _, c := range []struct {
		what string
		row  store.Server
		want int
	}{
		{"backoff", store.Server{State: string(Unavailable), Failures: 3, NextAttemptAt: time.Now().Add(time.Hour)}, 3},
		{"login", store.Server{State: string(NeedsLogin), Failures: 1}, 1},
		{"command not found", store.Server{State: string(Unavailable), Failures: 1}, 0},
	} {
		s := newServer(&Set{}, config.Server{Name: "s"})
		if s.restore(c.row); s.failures != c.want {
			t.Errorf("%s: %d failures, want %d", c.what, s.failures, c.want)
		}
	}
}

// TestSecretsOfSeveralLines masks what a server prints of a key file line by
// line, or as JSON.
func TestSecretsOfSeveralLines(t *testing.T) {
	l := newServerLog("", "s", nil, time.Now)
	l.mask([]string{"-----BEGIN-----\nMIIabcdefgh\n-----END-----"})
	for text, want := range map[string]string{
		"key MIIabcdefgh here":                                "key *** here",
		`{"k":"-----BEGIN-----\nMIIabcdefgh\n-----END-----"}`: `{"k":"***"}`,
		"plain": "plain",
	} {
		if got := l.clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
