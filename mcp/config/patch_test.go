package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale/hujson"
)

// merge is a patch that says the same whatever is there.
func merge(text string) func(*Server) (json.RawMessage, error) {
	return func(*Server) (json.RawMessage, error) { return json.RawMessage(text), nil }
}

const patchable = `// mine
{
  "mcpServers": [
    {"name": "z", "command": "z"},
    {
      "name": "a", // the first
      "command": "npx", /* by npm */
      "args": ["-y", "x"],
      "env": {
        "TOKEN": "tok-123456", // mine
        "A": "1"
      },
      // not these
      "disabled_tools": [
        "b", // breaks
        "c"
      ],
      "cwd": "/tmp",
      "odd": [1, 2,]
    }
  ],
}
`

// Patches, each with the lines that come out differently.
func TestPatches(t *testing.T) {
	for name, test := range map[string]struct {
		patch string
		whole bool
		edits []string // old, new, …
	}{
		"nothing":             {`{}`, false, nil},
		"the same":            {`{"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "disabled_tools": ["b", "c"], "working_dir": "/tmp"}`, false, nil},
		"a text":              {`{"command": "uvx"}`, false, []string{`"npx", /*`, `"uvx", /*`}},
		"a list":              {`{"args": ["z"]}`, false, []string{`["-y", "x"]`, `["z"]`}},
		"a member":            {`{"env": {"A": "2"}}`, false, []string{`"A": "1"`, `"A": "2"`}},
		"a new member":        {`{"env": {"B": "2"}}`, false, []string{`"A": "1"`, "\"A\": \"1\",\n        \"B\": \"2\""}},
		"a member less":       {`{"env": {"A": null}}`, false, []string{`"tok-123456", // mine` + "\n        \"A\": \"1\"\n", `"tok-123456" // mine` + "\n"}},
		"another word":        {`{"working_dir": "/var"}`, false, []string{`"cwd": "/tmp"`, `"cwd": "/var"`}},
		"another word, gone":  {`{"working_dir": null}`, false, []string{`      "cwd": "/tmp",` + "\n", ""}},
		"a key less":          {`{"odd": null}`, false, []string{`"/tmp",` + "\n" + `      "odd": [1, 2,]`, `"/tmp"`}},
		"a new key":           {`{"tags": ["t", "u"]}`, false, []string{`[1, 2,]`, "[1, 2,],\n      \"tags\": [\"t\", \"u\"]"}},
		"an object":           {`{"headers": {"A": "b", "C": null}}`, false, []string{`[1, 2,]`, "[1, 2,],\n      \"headers\": {\n        \"A\": \"b\"\n      }"}},
		"an element more":     {`{"disabled_tools": ["b", "c", "d"]}`, false, []string{`"c"`, "\"c\",\n        \"d\""}},
		"an element less":     {`{"disabled_tools": ["b"]}`, false, []string{`"b", // breaks` + "\n        \"c\"\n", `"b" // breaks` + "\n"}},
		"a whole object":      {`{"env": {"B": "2"}}`, true, []string{"{\n        \"TOKEN\": \"tok-123456\", // mine\n        \"A\": \"1\"\n      }", "{\n        \"B\": \"2\"\n      }"}},
		"a mask":              {`{"env": {"TOKEN": "****", "A": "2"}}`, false, []string{`"A": "1"`, `"A": "2"`}},
		"a mask in the whole": {`{"env": {"TOKEN": "****"}}`, true, []string{"{\n        \"TOKEN\": \"tok-123456\", // mine\n        \"A\": \"1\"\n      }", "{\n        \"TOKEN\": \"tok-123456\"\n      }"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := saved(t, patchable)
			want := patchable
			for pair := range slices.Chunk(test.edits, 2) {
				if strings.Count(want, pair[0]) != 1 {
					t.Fatalf("%q is not there once", pair[0])
				}
				want = strings.Replace(want, pair[0], pair[1], 1)
			}
			result, err := PatchServer(t.Context(), path, "a", Patch{Make: merge(test.patch), Whole: test.whole})
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if result.Before.Name != "a" || result.After.Name != "a" {
				t.Errorf("got %+v", result)
			}
		})
	}
}

func TestPatchesThatAreRefused(t *testing.T) {
	wanted := errors.New("no")
	for name, test := range map[string]struct {
		server string
		patch  Patch
		want   string // in the error
	}{
		"no server":    {"b", Patch{Make: merge(`{}`)}, ErrServerNotFound.Error()},
		"no object":    {"a", Patch{Make: merge(`[]`)}, "not an object"},
		"no JSON":      {"a", Patch{Make: merge(`{`)}, "not valid JSON"},
		"too deep":     {"a", Patch{Make: merge(`{"x":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "}")}, "brackets"},
		"a new name":   {"a", Patch{Make: merge(`{"name": "b"}`)}, "keeps its name"},
		"wrong":        {"a", Patch{Make: merge(`{"args": "x"}`)}, "args"},
		"both ways":    {"a", Patch{Make: merge(`{"url": "https://example.com"}`)}, "command and url"},
		"not made":     {"a", Patch{Make: func(*Server) (json.RawMessage, error) { return nil, wanted }}, "no"},
		"not let":      {"a", Patch{Make: merge(`{"tags": ["x"]}`), Check: func(_, _ *Server) error { return wanted }}, "no"},
		"a wrong mask": {"a", Patch{Make: merge(`{"env": {"B": "****"}}`)}, "env.B: **** stands for a secret that is not there"},
		"half a mask":  {"a", Patch{Make: merge(`{"env": {"TOKEN": "x****"}}`)}, "env.TOKEN: ****"},
		"a mask moved": {"a", Patch{Make: merge(`{"args": ["--token", "****"]}`)}, "args[1]: ****"},
	} {
		t.Run(name, func(t *testing.T) {
			path := saved(t, patchable)
			_, err := PatchServer(t.Context(), path, test.server, test.patch)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if read(t, path) != patchable {
				t.Error("the file was changed")
			}
		})
	}
}

// A server that is reached in another way is held, in the same save.
func TestPatchHolds(t *testing.T) {
	for name, test := range map[string]struct {
		file, patch string
		held        bool
	}{
		"command":          {`{"command": "x"}`, `{"command": "y"}`, true},
		"args":             {`{"command": "x"}`, `{"args": ["y"]}`, true},
		"env":              {`{"command": "x", "env": {"A": "1"}}`, `{"env": {"A": null}}`, true},
		"url":              {`{"url": "https://a.example"}`, `{"url": "https://b.example"}`, true},
		"headers":          {`{"url": "https://a.example", "quarantined": false}`, `{"headers": {"A": "b"}}`, true},
		"a word of others": {`{"command": "x", "cwd": "/a"}`, `{"working_dir": "/b"}`, true},
		"nothing of that":  {`{"command": "x"}`, `{"tags": ["y"], "call_tool_timeout": "1m"}`, false},
		"the same":         {`{"command": "x", "args": ["y"]}`, `{"args": ["y"], "command": "x"}`, false},
		"a reference":      {`{"command": "x", "env": {"A": "${env:NOT_SET}"}}`, `{"tags": ["y"]}`, false},
		"mended":           {`{"command": "x", "args": ["y", {}]}`, `{"args": []}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := saved(t, `{"mcpServers": {"a": `+test.file+`}}`)
			result, err := PatchServer(t.Context(), path, "a", Patch{Make: merge(test.patch), Hold: true})
			if err != nil {
				t.Fatal(err)
			}
			c, err := Load(LoadOptions{Path: path, Home: "/h"})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Server("a").Quarantined; got != test.held || result.Reconnects != test.held || result.After.Quarantined != test.held {
				t.Errorf("held %t, %+v\n%s", got, result, read(t, path))
			}
		})
	}
}

// Patches by several at one time are all kept, and each sees what the one before
// it left.
func TestPatchesAreSerialised(t *testing.T) {
	path := saved(t, `{"mcpServers": {"a": {"command": "x"}}}`)
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = PatchServer(t.Context(), path, "a", Patch{Make: func(before *Server) (json.RawMessage, error) {
				return json.Marshal(map[string]any{"tags": append(before.Tags, fmt.Sprint(i))})
			}})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	c, err := Load(LoadOptions{Path: path, Home: "/h"})
	if err != nil || len(c.Servers[0].Tags) != n {
		t.Fatalf("%v, %v", c.Servers, err)
	}
}

func TestReferences(t *testing.T) {
	c, err := Parse([]byte(`{"mcpServers": {"a": {"command": "$$x", "args": ["${A}", "y", "${file:z}${B:-c}"], "env": {"K": "a${keyring:k}"}}}}`),
		LoadOptions{Home: "/h", Path: filepath.Join(t.TempDir(), "c.json")})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Servers[0].References()); got != `map[args:[${A} ${file:z} ${B:-c}] env.K:[${keyring:k}]]` {
		t.Errorf("got %s", got)
	}
}

// A patch changes what it names to what it says, nothing else, and the second
// time nothing.
func FuzzPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"command":"x"}`, `{"args":["y"]}`},
		{`{"command":"x","args":["a","b",/*c*/],"env":{"A":"1",}}`, `{"args":["b","c"],"env":{"A":null,"B":"2"}}`},
		{`{"url":"https://u:p@x","headers":{"Authorization":"Bearer t"}}`, `{"headers":{"Authorization":"Bearer ****"},"protocol":"sse"}`},
		{`{"command":"x","cwd":"/a","type":"stdio","disabled":true}`, `{"working_dir":"/b","protocol":null,"enabled":true}`},
		{`{"command":"x","isolation":{"image":"i"}}`, `{"isolation":{"extra_args":["a"],"image":null},"tags":[]}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, entry, patch string) {
		file := `{"mcpServers": {"z": {"command": "z"}, "a": ` + entry + `, "y": {"command": "y"}}}`
		doc, err := parseDocument("/c.json", []byte(file))
		if err != nil || len(doc.servers) != 3 || doc.server("a") == nil || doc.server("y") == nil {
			return
		}
		var first, second Patched
		once, err := doc.patched("/c.json", "a", Patch{Make: merge(patch), Hold: true}, &first)
		if err != nil {
			return
		}
		if len(once.servers) != 3 || once.servers[0].Fingerprint() != doc.servers[0].Fingerprint() || once.servers[2].Fingerprint() != doc.servers[2].Fingerprint() {
			t.Fatalf("another server changed:\n%s", once.src)
		}
		if first.Before.Fingerprint() != first.After.Fingerprint() && !first.After.Quarantined {
			t.Fatalf("not held:\n%s", once.src)
		}
		if strings.Contains(patch, hidden) || repeats(t, patch) {
			return
		}
		twice, err := once.patched("/c.json", "a", Patch{Make: merge(patch)}, &second)
		if err != nil || string(twice.src) != string(once.src) {
			t.Fatalf("again: %v\n%s\n%s", err, once.src, twice.src)
		}
	})
}

// repeats reports whether a key may stand twice in a patch, or under two names.
func repeats(t *testing.T, patch string) bool {
	t.Helper()
	v, err := hujson.Parse([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for v := range v.All() {
		if obj, ok := v.Value.(*hujson.Object); ok {
			for i := range obj.Members {
				name := memberName(&obj.Members[i])
				if seen[name] || slices.Contains([]string{"cwd", "type", "disabled"}, name) {
					return true
				}
				seen[name] = true
			}
		}
	}
	return false
}

// saved is the path of a new file.
func saved(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, text)
	return path
}
