package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// someSecret has the form of a token and is none.
const someSecret = SecretPrefix + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseSecret(t *testing.T) {
	for text, ok := range map[string]bool{
		someSecret:                     true,
		" \t" + someSecret + "\r\n":    true,
		"":                             false,
		SecretPrefix:                   false,
		someSecret[1:]:                 false,
		someSecret[:len(someSecret)-1]: false,
		someSecret + "0":               false,
		strings.ToUpper(someSecret):    false,
		SecretPrefix + strings.ToUpper(someSecret[8:]): false,
		SecretPrefix + strings.Repeat("g", 64):         false,
		someSecret + "\n" + someSecret:                 false,
		"Bearer " + someSecret:                         false,
	} {
		secret, err := ParseSecret(text)
		switch {
		case ok && (err != nil || secret.Reveal() != someSecret):
			t.Errorf("%q: %q, %v", text, secret.Reveal(), err)
		case !ok && (!errors.Is(err, ErrMalformed) || secret.Reveal() != ""):
			t.Errorf("%q: %q, %v", text, secret.Reveal(), err)
		}
	}
}

func TestNewSecretsDiffer(t *testing.T) {
	a, b := newSecret(), newSecret()
	if a.Reveal() == b.Reveal() {
		t.Error("two secrets are the same")
	}
	if again, err := ParseSecret(a.Reveal()); err != nil || again.Reveal() != a.Reveal() {
		t.Errorf("a new secret is not taken for one: %v", err)
	}
}

// TestSecretsAreNotPrinted prints secrets in all ways, alone and in a struct.
func TestSecretsAreNotPrinted(t *testing.T) {
	secret, err := ParseSecret(someSecret)
	if err != nil {
		t.Fatal(err)
	}
	bytes := "0123456789abcdef0123456789abcdef"
	key := Key{&bytes}
	within := struct {
		Seen   Secret
		hidden Secret
		key    Key
	}{secret, secret, key}
	for _, v := range []any{secret, &secret, within, &within, []Secret{secret}, key} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all := string(text)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			all += fmt.Sprintf(verb, v)
		}
		for _, part := range []string{"0123456789", "30313233", "48 49 50"} {
			if strings.Contains(all, part) {
				t.Errorf("%T is printed with %q: %s", v, part, all)
			}
		}
	}
}

func TestReadTokenFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good": someSecret + "\n", "bare": someSecret, "empty": "", "wrong": someSecret + " more", "long": strings.Repeat(" ", 5000) + someSecret,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"good": "", "bare": "",
		"empty":   "does not hold an agent token",
		"wrong":   "does not hold an agent token",
		"long":    "is too long",
		"missing": "cannot be read",
		".":       "is not a regular file",
	} {
		path := filepath.Join(dir, name)
		secret, err := ReadTokenFile(path)
		if want == "" {
			if err != nil || secret.Reveal() != someSecret {
				t.Errorf("%s: %q, %v", name, secret.Reveal(), err)
			}
			continue
		}
		var file *FileError
		if !errors.As(err, &file) || file.Path != path || file.Hint == "" || !strings.HasPrefix(file.Reason, want) || secret.Reveal() != "" {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "abcdef") {
			t.Errorf("%s: the error shows what is in the file: %v", name, err)
		}
	}
	if _, err := ReadTokenFile(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzParseSecret: what is taken for a secret is one, and nothing else is.
func FuzzParseSecret(f *testing.F) {
	for _, seed := range []string{"", someSecret, " " + someSecret + "\n", SecretPrefix, "Bearer " + someSecret, someSecret + "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := ParseSecret(text)
		if err != nil {
			if len(text) > 8 && strings.Contains(err.Error(), text) {
				t.Errorf("the error shows %q", text)
			}
			return
		}
		got := secret.Reveal()
		if len(got) != len(someSecret) || !strings.Contains(text, got) || strings.Trim(got[len(SecretPrefix):], "0123456789abcdef") != "" {
			t.Errorf("%q is taken for %q", text, got)
		}
	})
}
