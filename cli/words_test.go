package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/wire"
)

var errNoSpace = errors.New("no space")

// TestFirstWord finds the command among options and their values.
func TestFirstWord(t *testing.T) {
	for line, want := range map[string]int{
		"": -1, "list": 0, "--json list": 1, "--config list": -1, "--config x list": 2, "--config=x list": 1,
		"--mode direct": -1, "--data-dir a --log-level b --profile c --token-file d get x": 8,
		"-- list": -1, "-q -": 1, "-h": -1,
	} {
		args := strings.Fields(line)
		if _, at := firstWord(args); at != want {
			t.Errorf("%q: %d, want %d", line, at, want)
		}
	}
}

// TestValueOptions holds the options that firstWord knows against the grammar.
func TestValueOptions(t *testing.T) {
	known := map[string]bool{}
	for _, name := range valueOptions() {
		known[name] = true
	}
	found := 0
	for _, typ := range []reflect.Type{reflect.TypeFor[globals](), reflect.TypeFor[runCmd]()} {
		for i := range typ.NumField() {
			field := typ.Field(i)
			if field.Type.Kind() == reflect.Bool {
				continue
			}
			found++
			var name strings.Builder
			for _, r := range field.Name {
				if strings.ToLower(string(r)) != string(r) {
					name.WriteByte('-')
				}
				name.WriteRune(r)
			}
			if option := "-" + strings.ToLower(name.String()); !known[option] {
				t.Errorf("firstWord takes the value of %s for a command", option)
			}
		}
	}
	if found != len(known) {
		t.Errorf("%d options take values, firstWord knows %d", found, len(known))
	}
}

// TestNearest checks what counts as a slip.
func TestNearest(t *testing.T) {
	names := []string{"add", "list", "get", "remove", "enable", "disable", "logs", "status", "version"}
	for word, want := range map[string]string{
		"lst": "list", "lsit": "list", "ls": "", "ad": "add", "remvoe": "remove", "enabel": "enable", "log": "logs",
		"stat": "status", "ver": "version", "dis": "disable", "xyzzy": "", "": "", "l": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestHelpOfEveryCommand checks that each command is explained with two
// examples and each of its options with a text.
func TestHelpOfEveryCommand(t *testing.T) {
	for _, e := range entries() {
		got := invokeWith(t, nil, e.name, "--help")
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s --help: exit code %d, stderr %q", e.name, got.code, got.stderr)
		}
		if !strings.Contains(got.stdout, "\n"+e.help+"\n") {
			t.Errorf("%s --help lacks its sentence:\n%s", e.name, got.stdout)
		}
		if n := strings.Count(got.stdout, "\n    mcpproxy ") + strings.Count(got.stdout, "\n    claude "); n < 2 && !(e.hidden && n == 1) {
			t.Errorf("%s --help has %d examples:\n%s", e.name, n, got.stdout)
		}
		typ := reflect.TypeOf(e.build()).Elem()
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && f.Tag.Get("help") == "" {
				t.Errorf("%s: %s has no help", e.name, f.Name)
			}
		}
	}
}

// TestExitCodes finds the code of an error by its type, however deep it is.
func TestExitCodes(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"other":            {t.Context(), errors.New("exit 5"), exitFailed},
		"misuse":           {t.Context(), misuse("", "x"), exitUsage},
		"hinted":           {t.Context(), hinted("y", "x"), exitFailed},
		"silent":           {t.Context(), silent(5), exitUnavailable},
		"configuration":    {t.Context(), &config.Error{Rule: "x"}, exitConfig},
		"reference":        {t.Context(), &config.ReferenceError{}, exitConfig},
		"recursion":        {t.Context(), &config.RecursionError{}, exitConfig},
		"command":          {t.Context(), &config.CommandError{}, exitUnavailable},
		"unreachable":      {t.Context(), &wire.Error{Code: wire.CodeUnavailable}, exitUnavailable},
		"refused":          {t.Context(), &wire.Error{Code: wire.CodeRefused}, exitFailed},
		"interrupted":      {ended, context.Canceled, exitInterrupted},
		"ended otherwise":  {ended, misuse("", "x"), exitUsage},
		"cancelled within": {t.Context(), context.Canceled, exitFailed},
	} {
		err := fmt.Errorf("outer: %w", errors.Join(errors.New("first"), test.err))
		if got := exitCode(test.ctx, err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := hintOf(fmt.Errorf("outer: %w", errors.Join(errNoSpace, hinted("type this", "x")))); got != "type this" {
		t.Errorf("hint %q", got)
	}
}

// TestEscape checks that nothing that steers a terminal comes through, and that
// text does.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"日本 é 👩‍👩‍👧":        "日本 é 👩‍👩‍👧",
		"a\tb\nc\rd":        `a\tb\nc\rd`,
		"\x1b]0;title\x07":  `\x1b]0;title\x07`,
		"\u009b31m":         `\u009b31m`,
		"a\x7fb\x00":        `a\x7fb\x00`,
		"\u202egpj.exe":     `\u202egpj.exe`,
		"a\u2028b\u2066c":   `a\u2028b\u2066c`,
		"\ufeffx\u200bx":    `\ufeffx\u200bx`,
		"tag\U000e0041":     `tag\U000e0041`,
		"bad \xff\xfe \xc3": `bad \xff\xfe \xc3`,
		"\ufffd":            "\ufffd",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := cleanText("a\tb\n\x1b[0m"); got != "a\tb\n\\x1b[0m" {
		t.Errorf("%q", got)
	}
	text := "\u009b\u202e\U000e0041\u2028 é"
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(cleanJSON(raw), &back); err != nil || back != text {
		t.Errorf("%s: %q, %v", cleanJSON(raw), back, err)
	}
	if strings.ContainsFunc(string(cleanJSON(raw)), harmful) {
		t.Errorf("%q still steers", cleanJSON(raw))
	}
}
