package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// SecretPrefix is how every agent token begins. 64 hex digits follow.
const SecretPrefix = "mcp_agt_"

// ErrMalformed tells that a text cannot be an agent token.
var ErrMalformed = errors.New("not an agent token: it must be " + SecretPrefix + " and 64 hex digits")

// Secret is an agent token as its holder shows it. However it is printed, the
// token does not appear; [Secret.Reveal] gives it away.
type Secret struct{ text *string } // a pointer to a string is what no verb of fmt follows

// newSecret makes a token that nobody has.
func newSecret() Secret {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	text := SecretPrefix + hex.EncodeToString(random[:])
	return Secret{&text}
}

// ParseSecret takes a text for an agent token, white space around it aside. The
// error is [ErrMalformed] and does not show the text.
func ParseSecret(text string) (Secret, error) {
	text = strings.TrimSpace(text)
	digits, ok := strings.CutPrefix(text, SecretPrefix)
	if !ok || len(digits) != 64 {
		return Secret{}, ErrMalformed
	}
	for i := range len(digits) {
		if c := digits[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return Secret{}, ErrMalformed
		}
	}
	return Secret{&text}, nil
}

// ReadTokenFile reads an agent token from a file that only this user can read.
// White space around it does not matter. The error is a [*FileError] and shows
// nothing of what is in the file.
func ReadTokenFile(path string) (Secret, error) {
	text, err := readPrivate(path)
	if err != nil {
		return Secret{}, err
	}
	secret, err := ParseSecret(string(text))
	if err != nil {
		return Secret{}, &FileError{
			Path: path, Reason: "does not hold an agent token", Hint: "mcpproxy token create NAME --servers SERVERS > " + path, Err: ErrMalformed,
		}
	}
	return secret, nil
}

// Reveal is the token itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String stands for the token where it is printed.
func (s Secret) String() string { return SecretPrefix + "****" }

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, so that encoders hide the token too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
