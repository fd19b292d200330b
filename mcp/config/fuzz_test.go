package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// Any bytes give a Config or an *Error, and what can be edited keeps its other
// servers when one is added and taken away again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "\xef\xbb\xbf{ // c\n}", "\xff\xfe{\x00", `{"mcpServers": []}`, `{"mcpServers": {"a": {"command": "x"},},}`,
		`{"mcpServers": [{"name": "a", "command": "x", "args": ["${A}", "$$"]}, {"name": "b", "url": "https://x"} // c` + "\n]}",
		`{"a": {"command": "x"}}`, `{"features": {"enable_web_ui": false}, "profiles": [{"name": "p"}], "mcpServers": null}`,
		`{"mcpServers": [ {"name":"a"} /*x*/ , ] }`, `{"tools_limit": 1e9, "mcpServers": 7}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text), LoadOptions{Home: "/h", Path: "/c.json", Environ: []string{"A=1"}})
		var e *Error
		if (c == nil) == (err == nil) || err != nil && !errors.As(err, &e) {
			t.Fatalf("%v, %v", c, err)
		}
		if c != nil {
			for i := range c.Servers {
				_ = c.Servers[i].Masked()
				_ = c.Servers[i].Fingerprint()
			}
			if ch := Diff(c, c); len(ch.Added)+len(ch.Removed)+len(ch.Reconnect)+len(ch.Updated) > 0 {
				t.Fatalf("a configuration differs from itself: %+v", ch)
			}
		}

		doc, err := parseDocument("/c.json", []byte(text))
		if err != nil || doc.index("new") >= 0 {
			return
		}
		entry, err := hujson.Parse(json.RawMessage(npx))
		if err != nil {
			t.Fatal(err)
		}
		added, err := parseDocument("/c.json", doc.apply(doc.addServer("new", entry.Value.(*hujson.Object))))
		if err != nil {
			t.Fatalf("after adding: %v", err)
		}
		if len(added.servers) != len(doc.servers)+1 || added.index("new") != len(doc.servers) || added.server("new").Err != nil {
			t.Fatalf("after adding:\n%s", added.src)
		}
		splices, err := added.setEnabled(added.index("new"), false)
		if err != nil {
			t.Fatal(err)
		}
		off, err := parseDocument("/c.json", added.apply(splices))
		if err != nil || off.server("new").Enabled {
			t.Fatalf("after disabling: %v\n%s", err, added.src)
		}
		removed, err := parseDocument("/c.json", off.apply(off.remove(off.index("new"))))
		if err != nil || len(removed.servers) != len(doc.servers) {
			t.Fatalf("after removing: %v\n%s", err, off.src)
		}
		for i := range doc.servers {
			if doc.servers[i].Fingerprint() != removed.servers[i].Fingerprint() || doc.servers[i].Name != removed.servers[i].Name {
				t.Fatalf("server %d changed", i)
			}
		}
	})
}

// A string falls into pieces that are the string, expanding ends, and masking
// keeps no literal text.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "$", "$$", "${A}", "${B}", "${B:-c}", "${env:A}", "${keyring:k}", "${input:x}", "a${A}$${A}${", "${${A}}"} {
		f.Add(seed)
	}
	r := &resolver{
		environ: newEnviron([]string{"A=1"}, "linux"),
		env:     Env{Keyring: func(string) (string, error) { return "secret", nil }},
		file:    "/nowhere/c.json",
	}
	f.Fuzz(func(t *testing.T, s string) {
		var all strings.Builder
		for p := range pieces(s) {
			if p.text == "" || p.ref != nil && p.plain != "" {
				t.Fatalf("%+v", p)
			}
			all.WriteString(p.text)
		}
		if all.String() != s {
			t.Fatalf("%q became %q", s, all.String())
		}
		if strings.Contains(s, "${file:") {
			return
		}
		out, err := r.expand("s", "f", s)
		var unresolved *ReferenceError
		if err != nil && !errors.As(err, &unresolved) {
			t.Fatal(err)
		}
		if !strings.Contains(s, "$") && out != s {
			t.Fatalf("%q became %q", s, out)
		}
		if masked := Mask(s); !strings.Contains(s, "${") && masked != "" && masked != hidden {
			t.Fatalf("%q is shown as %q", s, masked)
		}
	})
}
