package config

import (
	"net/url"
	"strings"
)

// hidden stands in the place of a secret.
const hidden = "****"

// SecretName reports whether the name of a variable, header, flag or query
// parameter says that its value is a secret. Short words count only as whole
// words: "key" is in API_KEY and accessKey, not in MONKEY.
func SecretName(name string) bool {
	var words strings.Builder // lower case, other characters as one blank each
	words.WriteByte(' ')
	for i := range len(name) {
		c := name[i]
		switch {
		case !isAlnum(c):
			c = ' '
		case i > 0 && 'A' <= c && c <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z':
			words.WriteByte(' ')
		}
		words.WriteByte(c)
	}
	words.WriteByte(' ')
	text := strings.ToLower(words.String())
	for _, part := range []string{
		"secret", "token", "passw", "passphrase", "credential", "apikey", "private", "authoris", "authoriz", "cookie", "bearer", "signature",
		" key ", " pass ", " pwd ", " pat ", " auth ", " dsn ", " sid ", " jwt ", " sig ",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// knownSecret reports whether the form of a value gives it away.
func knownSecret(value string) bool {
	for _, prefix := range []string{
		"sk-", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxa-", "xoxb-", "xoxp-", "xoxs-",
		"AKIA", "AIza", "hf_", "npm_", "pypi-", "mcp_agt_", "eyJ",
	} {
		if strings.HasPrefix(value, prefix) {
			return len(value) >= len(prefix)+8 && !strings.ContainsAny(value, " \t\r\n")
		}
	}
	return false
}

// withoutScheme drops what stands before the secret in an Authorization header.
func withoutScheme(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	if ok {
		switch strings.ToLower(scheme) {
		case "bearer", "basic", "token", "digest":
			return strings.TrimSpace(rest)
		}
	}
	return value
}

// Mask returns s with its literal text hidden. References stay, because they
// hold no secret, but for their defaults: "Bearer ${TOKEN:-x}" becomes
// "****${TOKEN:-****}". An empty string stays empty.
func Mask(s string) string {
	var b strings.Builder
	masked := false // the literal text before is hidden already
	for p := range pieces(s) {
		if p.ref != nil {
			if p.ref.fallback != "" {
				p.text = strings.TrimSuffix(p.text, p.ref.fallback+"}") + hidden + "}"
			}
			b.WriteString(p.text)
		} else if !masked {
			b.WriteString(hidden)
		}
		masked = p.ref == nil
	}
	return b.String()
}

// Masked returns a copy of the server that can be shown: secrets in env,
// headers, args, url and oauth are hidden, references are kept.
func (s *Server) Masked() Server {
	previous := ""
	out, _ := s.expand(func(field, value string) (string, error) {
		shown := value
		for _, part := range secretParts(field, value, previous) {
			shown = strings.ReplaceAll(shown, part, Mask(part))
		}
		previous = value
		return shown, nil
	})
	return out
}

// secretParts are the secrets in a server whose references are resolved.
func (s *Server) secretParts() []string {
	var parts []string
	previous := ""
	// The function returns no error, and the copy is not needed.
	_, _ = s.expand(func(field, value string) (string, error) {
		parts = append(parts, secretParts(field, value, previous)...)
		previous = value
		return value, nil
	})
	return parts
}

// secretParts are the parts of one value that must not be seen. previous is the
// value before, for args such as --token VALUE.
func secretParts(field, value, previous string) []string {
	if value == "" {
		return nil
	}
	kind, name, _ := strings.Cut(field, ".")
	kind, _, _ = strings.Cut(kind, "[")
	if strings.HasPrefix(name, "extra_args[") {
		kind = "args"
	}
	switch kind {
	case "env", "headers", "oauth":
		if !SecretName(name) && !knownSecret(value) {
			return urlSecrets(value)
		}
		return []string{withoutScheme(value)}
	case "args":
		if flag, rest, ok := strings.Cut(value, "="); ok && rest != "" && !strings.Contains(flag, "://") {
			if SecretName(flag) || knownSecret(rest) {
				return []string{rest}
			}
			return urlSecrets(rest)
		}
		if strings.HasPrefix(previous, "-") && !strings.Contains(previous, "=") && SecretName(previous) && !strings.HasPrefix(value, "-") {
			return []string{value}
		}
		// -H "Authorization: Bearer x", as some bridges take it.
		if header, rest, ok := strings.Cut(value, ":"); ok && SecretName(header) && !strings.HasPrefix(rest, "//") {
			return []string{withoutScheme(strings.TrimSpace(rest))}
		}
		if knownSecret(value) {
			return []string{value}
		}
		return urlSecrets(value)
	case "url":
		return urlSecrets(value)
	}
	return nil
}

// urlSecrets are the password and the secret query values of an address, as
// written and, where that differs, decoded. The address may hold references, so
// it is not parsed as one.
func urlSecrets(address string) []string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil
	}
	var parts []string
	add := func(part string) {
		if part == "" {
			return
		}
		parts = append(parts, part)
		if plain, err := url.QueryUnescape(part); err == nil && plain != part {
			parts = append(parts, plain)
		}
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		_, password, _ := strings.Cut(authority[:i], ":")
		add(password)
	}
	_, query, _ := strings.Cut(rest, "?")
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); SecretName(name) || knownSecret(value) {
			add(value)
		}
	}
	return parts
}
