package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const npx = `{"command": "npx", "args": ["-y", "x"], "env": {"A": "<&>"}}`

// Edits of the text of a file, each with the whole text that must come out.
func TestEdits(t *testing.T) {
	add := func(path string) error { return AddServer(t.Context(), path, "new", json.RawMessage(npx)) }
	remove := func(name string) func(string) error {
		return func(path string) error { return RemoveServer(t.Context(), path, name) }
	}
	quarantine := func(name string, on bool) func(string) error {
		return func(path string) error { return SetQuarantined(t.Context(), path, name, on) }
	}
	enable := func(name string, on bool) func(string) error {
		return func(path string) error { return SetEnabled(t.Context(), path, name, on) }
	}
	for name, test := range map[string]struct {
		edit     func(string) error
		in, want string
	}{
		"add to nothing": {add, "{}", `{
  "mcpServers": [
    {
      "name": "new",
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "A": "<&>"
      }
    }
  ]
}`},
		"add to a list": {add, `// mine
{
    "unknown": {"a": [1.50, 1e2]}, // kept
    "mcpServers": [
        {"name": "a", "command": "x", "odd": true} // the first
        // more to come
    ], "z": 1
}
`, `// mine
{
    "unknown": {"a": [1.50, 1e2]}, // kept
    "mcpServers": [
        {"name": "a", "command": "x", "odd": true}, // the first
        // more to come
        {
            "name": "new",
            "command": "npx",
            "args": ["-y", "x"],
            "env": {
                "A": "<&>"
            }
        }
    ], "z": 1
}
`},
		"add to a map with a comma at the end": {add, `{
	"mcpServers": {
		"a": {"command": "x"},
	},
}`, `{
	"mcpServers": {
		"a": {"command": "x"},
		"new": {
			"command": "npx",
			"args": ["-y", "x"],
			"env": {
				"A": "<&>"
			}
		},
	},
}`},
		"add to one line": {
			add, `{"mcpServers":[{"name":"a","command":"x"}],"tools_limit":3}`,
			`{"mcpServers":[{"name":"a","command":"x"}, {"name": "new", "command": "npx", "args": ["-y", "x"], "env": {"A": "<&>"}}],"tools_limit":3}`,
		},
		"add to one line with a comma at the end": {
			add, `{"mcpServers":{"a":{"command":"x"},}}`,
			`{"mcpServers":{"a":{"command":"x"}, "new": {"command": "npx", "args": ["-y", "x"], "env": {"A": "<&>"}},}}`,
		},
		"add where there is no mcpServers": {
			add, "{\r\n\t\"tools_limit\": 3\r\n}\r\n",
			"{\r\n\t\"tools_limit\": 3,\r\n\t\"mcpServers\": [\r\n\t\t{\r\n\t\t\t\"name\": \"new\",\r\n\t\t\t\"command\": \"npx\",\r\n\t\t\t\"args\": [\"-y\", \"x\"],\r\n\t\t\t\"env\": {\r\n\t\t\t\t\"A\": \"<&>\"\r\n\t\t\t}\r\n\t\t}\r\n\t]\r\n}\r\n",
		},
		"add where mcpServers is null": {add, "\xef\xbb\xbf{\n  \"mcpServers\": null // none\n}", "\xef\xbb\xbf" + `{
  "mcpServers": [
    {
      "name": "new",
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "A": "<&>"
      }
    }
  ] // none
}`},
		"add to an empty map with a comment": {add, `{
  "mcpServers": {
    // nothing yet
  }
}`, `{
  "mcpServers": {
    // nothing yet
    "new": {
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "A": "<&>"
      }
    }
  }
}`},
		"remove the first": {remove("a"), `{"mcpServers": [
  // about a and b
  {"name": "a", "command": "x"},
  {"name": "b", "command": "x"} // b
]}`, `{"mcpServers": [
  // about a and b
  {"name": "b", "command": "x"} // b
]}`},
		"remove the last": {remove("b"), `{"mcpServers": [
  {"name": "a", "command": "x"}, // a
  {"name": "b", "command": "x"}
]}`, `{"mcpServers": [
  {"name": "a", "command": "x"} // a
]}`},
		"remove the last with a comma": {
			remove("b"), "{\"mcpServers\": {\r\n  \"a\": {\"command\": \"x\"},\r\n  \"b\": {\"command\": \"x\"},\r\n}}",
			"{\"mcpServers\": {\r\n  \"a\": {\"command\": \"x\"},\r\n}}",
		},
		"remove with a comment behind": {remove("a"), `{"mcpServers": [
  {"name": "a", "command": "x"} /* why */ , // was a
  {"name": "b", "command": "x"}
]}`, `{"mcpServers": [
  /* why */  // was a
  {"name": "b", "command": "x"}
]}`},
		"remove in one line, first":  {remove("a"), `{"mcpServers": {"a": {"command":"x"}, "b": {"command":"y"}}}`, `{"mcpServers": {"b": {"command":"y"}}}`},
		"remove in one line, last":   {remove("b"), `{"mcpServers": {"a": {"command":"x"}, "b": {"command":"y"}}}`, `{"mcpServers": {"a": {"command":"x"}}}`},
		"remove the only one":        {remove("a"), `{"mcpServers": [{"name": "a"}]}`, `{"mcpServers": []}`},
		"remove every one of a name": {remove("a"), `{"mcpServers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}`, `{"mcpServers": [{"name": "b"}]}`},
		"remove an invalid one":      {remove("a b"), `{"mcpServers": {"a b": 7}}`, `{"mcpServers": {}}`},
		"remove beside other mistakes": {
			remove("a"), `{"tools_limit": 500, "mcpServers": {"a": {}}}`, `{"tools_limit": 500, "mcpServers": {}}`,
		},

		"disable":               {enable("a", false), `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x", "enabled": false}}}`},
		"disable, lines":        {enable("a", false), "{\"mcpServers\": {\n\"a\": {\n  \"command\": \"x\" // c\n}}}", "{\"mcpServers\": {\n\"a\": {\n  \"command\": \"x\", // c\n  \"enabled\": false\n}}}"},
		"disable, key there":    {enable("a", false), `{"mcpServers": [{"name": "a", "enabled" : /* on */ true , "command": "x"}]}`, `{"mcpServers": [{"name": "a", "enabled" : /* on */ false , "command": "x"}]}`},
		"disable, other key":    {enable("a", false), `{"mcpServers": {"a": {"command": "x", "disabled": false}}}`, `{"mcpServers": {"a": {"command": "x", "disabled": true}}}`},
		"enable, both keys":     {enable("a", true), `{"mcpServers": {"a": {"enabled": true, "disabled": true}}}`, `{"mcpServers": {"a": {"enabled": true, "disabled": false}}}`},
		"enable what is":        {enable("a", true), `{ "mcpServers": {"a": {"command": "x"}}}`, `{ "mcpServers": {"a": {"command": "x"}}}`},
		"disable what is":       {enable("a", false), `{ "mcpServers": {"a": {"disabled": true}}}`, `{ "mcpServers": {"a": {"disabled": true}}}`},
		"disable, empty object": {enable("a", false), `{"mcpServers": {"a": {}}}`, "{\"mcpServers\": {\"a\": {\n  \"enabled\": false\n}}}"},

		"hold":                {quarantine("a", true), `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x", "quarantined": true}}}`},
		"hold, key there":     {quarantine("a", true), `{"mcpServers": [{"name": "a", "quarantined": false /* ok */}]}`, `{"mcpServers": [{"name": "a", "quarantined": true /* ok */}]}`},
		"hold what is held":   {quarantine("a", true), `{"mcpServers": {"a": {"quarantined" :true}}}`, `{"mcpServers": {"a": {"quarantined" :true}}}`},
		"release":             {quarantine("a", false), `{"mcpServers": {"b": {}, "a": {"quarantined": true, "enabled": true}}}`, `{"mcpServers": {"b": {}, "a": {"quarantined": false, "enabled": true}}}`},
		"release what is not": {quarantine("a", false), `{ "mcpServers": {"a": {"command": "x"}}}`, `{ "mcpServers": {"a": {"command": "x"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.json")
			write(t, path, test.in)
			if err := test.edit(path); err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What an edit refuses leaves the file as it is (K07).
func TestRefusedEdits(t *testing.T) {
	ctx := t.Context()
	add := func(name, entry string) func(string) error {
		return func(path string) error { return AddServer(ctx, path, name, json.RawMessage(entry)) }
	}
	const valid = `{"mcpServers": {"a": {"command": "x"}, "b": 7}}`
	for name, test := range map[string]struct {
		in   string
		edit func(string) error
		want string
	}{
		"syntax error":       {`{"mcpServers": [{"name": "a"]}`, add("new", npx), ":1:29: not valid JSON"},
		"empty file":         {"", add("new", npx), "the file is empty"},
		"bare map":           {`{"a": {"command": "x"}}`, add("new", npx), `servers stand under "mcpServers"`},
		"two mcpServers":     {`{"mcpServers": [], "mcpServers": []}`, add("new", npx), "stands twice"},
		"mcpServers a word":  {`{"mcpServers": "x"}`, add("new", npx), "must be a list"},
		"taken name":         {valid, add("a", npx), ErrServerExists.Error()},
		"bad name":           {valid, add("a__b", npx), "without __"},
		"not an object":      {valid, add("new", `["x"]`), "is not a JSON object"},
		"not JSON":           {valid, add("new", `{`), "is not a JSON object"},
		"no command":         {valid, add("new", `{"args": []}`), "needs command or url"},
		"wrong type":         {valid, add("new", `{"command": 1}`), "must be a string"},
		"alias of another":   {valid, add("new", `{"command": "x", "alias": "a"}`), "taken by server"},
		"remove unknown":     {valid, func(p string) error { return RemoveServer(ctx, p, "z") }, ErrServerNotFound.Error()},
		"enable unknown":     {valid, func(p string) error { return SetEnabled(ctx, p, "z", true) }, ErrServerNotFound.Error()},
		"hold unknown":       {valid, func(p string) error { return SetQuarantined(ctx, p, "z", true) }, ErrServerNotFound.Error()},
		"disable a non-item": {valid, func(p string) error { return SetEnabled(ctx, p, "b", false) }, "must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.json")
			write(t, path, test.in)
			err := test.edit(path)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if got := read(t, path); got != test.in {
				t.Errorf("the file was changed:\n%s", got)
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "none")
	if err := RemoveServer(ctx, filepath.Join(dir, "c.json"), "a"); !errors.Is(err, ErrServerNotFound) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an edit that fails made a folder")
	}
	if err := AddServer(ctx, "c.json", "a", json.RawMessage(npx)); err == nil {
		t.Error("a relative path is not refused")
	}
}

// An unresolved reference is no reason to refuse an entry.
func TestAddWithReference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	if err := AddServer(t.Context(), path, "a", json.RawMessage(`{"name": "other", "url": "https://x/", "headers": {"Authorization": "Bearer ${TOKEN}"}}`)); err != nil {
		t.Fatal(err)
	}
	c, err := Load(LoadOptions{Path: path, Home: "/h"})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Servers) != 1 || c.Servers[0].Name != "a" {
		t.Errorf("%+v", c.Servers)
	}
}

func TestEditKeepsTheFileItself(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no permission bits
	}
	home := t.TempDir()
	path := filepath.Join(home, "deep", "er", "mcp_config.json")
	if err := AddServer(t.Context(), path, "a", json.RawMessage(npx)); err != nil {
		t.Fatal(err)
	}
	mode := func(p string) os.FileMode {
		t.Helper()
		info, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if mode(path) != 0o600 || mode(filepath.Dir(path)).Perm() != 0o700 {
		t.Errorf("created with %v in %v", mode(path), mode(filepath.Dir(path)))
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := SetEnabled(t.Context(), link, "a", false); err != nil {
		t.Fatal(err)
	}
	if mode(path) != 0o640 || mode(link)&os.ModeSymlink == 0 || !strings.Contains(read(t, path), `"enabled": false`) {
		t.Errorf("mode %v, link %v", mode(path), mode(link))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 { // the file and its lock
		t.Errorf("left behind: %v, %v", entries, err)
	}

	if err := os.Symlink(filepath.Join(home, "nowhere"), filepath.Join(home, "broken")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{filepath.Join(home, "broken"), home, "/dev/null/x"} {
		if err := AddServer(t.Context(), p, "b", json.RawMessage(npx)); err == nil {
			t.Errorf("%s is not refused", p)
		}
	}
}

// Edits by several at one time are all kept.
func TestEditsAreSerialised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = AddServer(t.Context(), path, fmt.Sprintf("s%d", i), json.RawMessage(npx)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	c, err := Load(LoadOptions{Path: path, Home: "/h"})
	if err != nil || len(c.Servers) != n {
		t.Fatalf("%d servers, %v", len(c.Servers), err)
	}
}

func TestEditWaitsNoLongerThanItMay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	unlock, err := Lock(t.Context(), path+".lock")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := AddServer(ctx, path, "a", json.RawMessage(npx)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := AddServer(t.Context(), path, "a", json.RawMessage(npx)); err != nil {
		t.Error(err)
	}
}
