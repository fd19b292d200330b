package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zalando/go-keyring"
)

// keyringService is the name under which secrets stand in the system's keyring.
const keyringService = "mcpproxy"

// maxSecretFile bounds what ${file:PATH} reads, in bytes.
const maxSecretFile = 1 << 20

// piece is a part of a string: literal text, or a reference.
type piece struct {
	text  string     // as written
	plain string     // of literal text: what it stands for
	ref   *reference // nil for literal text
	odd   bool       // literal text that was probably meant as a reference
}

// reference is what stands between ${ and }.
type reference struct {
	scheme     string // env, keyring or file
	name       string // variable, keyring entry or path
	fallback   string
	hasDefault bool
}

// pieces splits s. The pieces' texts put together are s.
func pieces(s string) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for s != "" {
			p := firstPiece(s)
			if !yield(p) {
				return
			}
			s = s[len(p.text):]
		}
	}
}

func firstPiece(s string) piece {
	switch i := strings.IndexByte(s, '$'); {
	case i < 0:
		return piece{text: s, plain: s}
	case i > 0:
		return piece{text: s[:i], plain: s[:i]}
	case strings.HasPrefix(s, "$$"):
		return piece{text: "$$", plain: "$"}
	case !strings.HasPrefix(s, "${") || !strings.Contains(s, "}"):
		return piece{text: "$", plain: "$"}
	}
	text := s[:strings.IndexByte(s, '}')+1]
	body := text[2 : len(text)-1]
	if ref, ok := parseReference(body); ok {
		return piece{text: text, ref: &ref}
	}
	if scheme, rest, _ := strings.Cut(body, ":"); isVariable(scheme) && rest != "" {
		return piece{text: text, plain: text, odd: true}
	}
	return piece{text: "$", plain: "$"}
}

func parseReference(body string) (reference, bool) {
	scheme, rest, found := strings.Cut(body, ":")
	if found && rest != "" && (scheme == "keyring" || scheme == "file") {
		return reference{scheme: scheme, name: rest}, true
	}
	if !found || scheme != "env" {
		rest = body
	}
	r := reference{scheme: "env"}
	r.name, r.fallback, r.hasDefault = strings.Cut(rest, ":-")
	return r, isVariable(r.name)
}

// isVariable reports whether s has the form of a variable's name.
func isVariable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (!isAlnum(c) || i == 0 && c <= '9') {
			return false
		}
	}
	return s != ""
}

// fromEnviron is the value of an env reference. The default also stands in for
// a variable that is set but empty, as in a shell.
func (r *reference) fromEnviron(env environ) (string, bool) {
	v, ok := env.get(r.name)
	if r.hasDefault && v == "" {
		return r.fallback, true
	}
	return v, ok
}

// resolver finds the values of references and remembers those that are secrets.
type resolver struct {
	env     Env
	environ environ
	file    string // the configuration file, from whose folder relative paths count
	secrets []string
}

// expand replaces the references in a string of a server.
func (r *resolver) expand(server, field, s string) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var b strings.Builder
	for p := range pieces(s) {
		if p.ref == nil {
			b.WriteString(p.plain)
			continue
		}
		value, why := r.value(p.ref)
		if why != "" {
			return "", &ReferenceError{server, field, p.text, why}
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// value is the value of one reference, or why there is none.
func (r *resolver) value(ref *reference) (value, why string) {
	switch ref.scheme {
	case "keyring":
		get := r.env.Keyring
		if get == nil {
			get = systemKeyring
		}
		v, err := get(ref.name)
		if errors.Is(err, keyring.ErrNotFound) {
			return "", "is not in the keyring"
		}
		if err != nil {
			return "", "cannot be read from the keyring: " + err.Error()
		}
		value = v
	case "file":
		v, err := r.readSecret(ref.name)
		if err != nil {
			return "", "cannot be read: " + err.Error()
		}
		value = v
	default:
		v, ok := ref.fromEnviron(r.environ)
		if !ok {
			return "", "is not set"
		}
		// HOME and the like are no secrets, and neither is a default, which
		// stands in the file; masking them would garble every message.
		set, _ := r.environ.get(ref.name)
		if set != "" && (!r.environ.isBase(ref.name) || SecretName(ref.name)) {
			r.secrets = append(r.secrets, v)
		}
		return v, ""
	}
	if value == "" {
		return "", "is empty"
	}
	r.secrets = append(r.secrets, value)
	return value, ""
}

func systemKeyring(name string) (string, error) { return keyring.Get(keyringService, name) }

// readSecret reads a file without the line break at its end.
func (r *resolver) readSecret(path string) (string, error) {
	path = expandHome(path, r.env.Home)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.file), path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	// Opening a pipe could wait for ever.
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	if len(data) > maxSecretFile {
		return "", fmt.Errorf("%s: %w: larger than %d bytes", path, fs.ErrInvalid, maxSecretFile)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// expand returns a copy of the server in which f has replaced every string that
// has to do with starting or reaching it. f also gets the name of the field,
// "args[1]" or "env.TOKEN". Fields come in a fixed order.
func (s *Server) expand(f func(field, value string) (string, error)) (Server, error) {
	out := *s
	var first error
	one := func(field string, p *string) {
		v, err := f(field, *p)
		if err != nil && first == nil {
			first = err
		}
		*p = v
	}
	list := func(field string, p *[]string) {
		*p = slices.Clone(*p)
		for i := range *p {
			one(fmt.Sprintf("%s[%d]", field, i), &(*p)[i])
		}
	}
	table := func(field string, p *map[string]string) {
		*p = maps.Clone(*p)
		for _, key := range slices.Sorted(maps.Keys(*p)) {
			v := (*p)[key]
			one(field+"."+key, &v)
			(*p)[key] = v
		}
	}
	one("command", &out.Command)
	list("args", &out.Args)
	table("env", &out.Env)
	one("working_dir", &out.WorkingDir)
	one("url", &out.URL)
	table("headers", &out.Headers)
	if s.OAuth != nil {
		o := *s.OAuth
		one("oauth.client_id", &o.ClientID)
		one("oauth.client_secret", &o.ClientSecret)
		one("oauth.redirect_uri", &o.RedirectURI)
		list("oauth.scopes", &o.Scopes)
		table("oauth.extra_params", &o.ExtraParams)
		out.OAuth = &o
	}
	if s.Isolation != nil {
		o := *s.Isolation
		one("isolation.image", &o.Image)
		one("isolation.network_mode", &o.NetworkMode)
		one("isolation.working_dir", &o.WorkingDir)
		list("isolation.extra_args", &o.ExtraArgs)
		out.Isolation = &o
	}
	return out, first
}
