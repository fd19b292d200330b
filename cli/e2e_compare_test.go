package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// member is one member of a JSON object, its value as it was sent.
type member struct {
	key string
	raw json.RawMessage
}

// item is one listed tool, resource, template or prompt: its members in the
// order in which they were sent.
type item []member

// listing maps a list method to what was listed, in order.
type listing map[string][]item

// listKeys maps each list method to the member of its result that holds the list.
func listKeys() map[string]string {
	return map[string]string{
		"tools/list":               "tools",
		"resources/list":           "resources",
		"resources/templates/list": "resourceTemplates",
		"prompts/list":             "prompts",
	}
}

// parseListing reads the output of list-raw.mjs.
func parseListing(t *testing.T, stdout string) listing {
	t.Helper()
	var output map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &output); err != nil {
		t.Fatalf("read the listing: %v: %s", err, tail(stdout))
	}
	l := listing{}
	for method, key := range listKeys() {
		var pages []string
		if output[method] == nil {
			continue
		}
		if err := json.Unmarshal(output[method], &pages); err != nil {
			t.Fatalf("read %s: %v", method, err)
		}
		for _, page := range pages {
			l[method] = append(l[method], itemsOf(t, key, page)...)
		}
	}
	return l
}

// itemsOf returns the items under key of the result in one response line.
func itemsOf(t *testing.T, key, line string) []item {
	t.Helper()
	var response struct {
		Result map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &response); err != nil {
		t.Fatalf("read a list: %v: %s", err, tail(line))
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(response.Result[key], &raws); err != nil {
		t.Fatalf("read the %s: %v: %s", key, err, tail(line))
	}
	items := make([]item, len(raws))
	for i, raw := range raws {
		items[i] = membersOf(t, raw)
	}
	return items
}

// membersOf splits an object into its members without touching their values.
func membersOf(t *testing.T, raw json.RawMessage) item {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		t.Fatalf("not an object: %s", tail(string(raw)))
	}
	var members item
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatalf("read a key of %s: %v", tail(string(raw)), err)
		}
		m := member{key: key.(string)}
		if err := decoder.Decode(&m.raw); err != nil {
			t.Fatalf("read %s of %s: %v", m.key, tail(string(raw)), err)
		}
		members = append(members, m)
	}
	return members
}

// text returns the string under key, or "".
func (i item) text(key string) string {
	for _, m := range i {
		if m.key == key {
			var s string
			_ = json.Unmarshal(m.raw, &s)
			return s
		}
	}
	return ""
}

// rewritten returns the item with the string under key replaced.
func (i item) rewritten(t *testing.T, key string, edit func(string) string) item {
	t.Helper()
	out := slices.Clone(i)
	for n, m := range out {
		if m.key != key {
			continue
		}
		raw, err := json.Marshal(edit(i.text(key)))
		if err != nil {
			t.Fatal(err)
		}
		out[n].raw = raw
		return out
	}
	t.Fatalf("%s has no %s to rewrite", i.text("name"), key)
	return nil
}

// add appends what the proxy is to list for a server that lists direct. The
// documented rewrites are the name of tools and prompts, `server__name`, and the
// description of tools, which starts with `[server] `.
func (l listing) add(t *testing.T, server string, direct listing) {
	t.Helper()
	named := func(name string) string { return server + "__" + name }
	described := func(text string) string { return "[" + server + "] " + text }
	for method, items := range direct {
		for _, i := range items {
			switch method {
			case "tools/list":
				i = i.rewritten(t, "name", named).rewritten(t, "description", described)
			case "prompts/list":
				i = i.rewritten(t, "name", named)
			}
			l[method] = append(l[method], i)
		}
	}
}

// assertEqual fails the test where got differs: in the items, their order,
// their members, the order of these, or a single byte of a value that is not a
// rewritten string.
func (l listing) assertEqual(t *testing.T, got listing) {
	t.Helper()
	for _, method := range slices.Sorted(maps.Keys(listKeys())) {
		want, have := l[method], got[method]
		if w, h := namesOf(want), namesOf(have); !slices.Equal(w, h) {
			t.Errorf("%s: names or their order differ\nwant %q\n got %q", method, w, h)
			continue
		}
		for i := range want {
			if w, h := want[i].render(), have[i].render(); w != h {
				t.Errorf("%s: %s differs\nwant %s\n got %s", method, have[i].text("name"), w, h)
			}
		}
	}
}

func namesOf(items []item) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.text("name")
	}
	return names
}

// render writes an item with one member a line; name and description, which
// are rewritten, by their text, everything else by its bytes.
func (i item) render() string {
	var b strings.Builder
	for _, m := range i {
		value := string(m.raw)
		if m.key == "name" || m.key == "description" {
			value = i.text(m.key)
		}
		b.WriteString(m.key + ": " + value + "\n")
	}
	return b.String()
}

// What a second run of server-everything cannot repeat.
var (
	clockTime  = regexp.MustCompile(`\d{1,2}:\d\d:\d\d[ \x{202f}][AP]M`)
	randomUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	base64Blob = regexp.MustCompile(`"blob":"([A-Za-z0-9+/=]+)"`)
	randomLog  = regexp.MustCompile(`"level":"[a-z]+","data":"[A-Z][a-z]+[- ]level[- ]message( - SessionId [^"]+)?"`)
	sessionID  = regexp.MustCompile(`session (undefined|<uuid>)`)
	envText    = regexp.MustCompile(`"text":"(\{\\n {2}\\"[A-Z0-9_]+\\":.*?\\n\})"`)
)

// normalise reduces received lines to what two runs must have in common, and
// keeps the rest byte for byte. Left out: the ids and the version of the
// envelope, which belong to a connection. Replaced: times of day (also inside
// base64 text), random UUIDs, the random level and text of simulated log
// messages, the session id that the server prints and has over HTTP only.
// Sorted: the variables that get-env prints, without the one by which the
// program recognises itself further down.
func normalise(t *testing.T, lines []string) []string {
	t.Helper()
	var out []string
	for _, line := range lines {
		var b strings.Builder
		for _, m := range membersOf(t, json.RawMessage(line)) {
			if m.key != "id" && m.key != "jsonrpc" {
				b.WriteString(m.key + ": " + normaliseValue(t, string(m.raw)) + "\n")
			}
		}
		out = append(out, b.String())
	}
	return out
}

func normaliseValue(t *testing.T, raw string) string {
	t.Helper()
	raw = base64Blob.ReplaceAllStringFunc(raw, func(match string) string {
		text, err := base64.StdEncoding.DecodeString(base64Blob.FindStringSubmatch(match)[1])
		if err != nil || !clockTime.Match(text) {
			return match
		}
		return `"blob":"<` + string(text) + `>"`
	})
	raw = envText.ReplaceAllStringFunc(raw, func(match string) string {
		var block map[string]string
		if err := json.Unmarshal([]byte("{"+match+"}"), &block); err != nil {
			t.Fatalf("read the environment: %v: %s", err, match)
		}
		lines := strings.Split(strings.Trim(block["text"], "{}\n"), ",\n")
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, `  "MCPPROXY_PARENT":`)
		})
		slices.Sort(lines)
		return `"text":"` + strings.Join(lines, "\n") + `"`
	})
	raw = clockTime.ReplaceAllString(raw, "<time>")
	raw = randomUUID.ReplaceAllString(raw, "<uuid>")
	raw = strings.ReplaceAll(raw, "from session <uuid>", "")
	raw = sessionID.ReplaceAllString(raw, "<session>")
	return randomLog.ReplaceAllString(raw, `"level":"<level>","data":"<message>"`)
}

// answersLast moves the answers behind the requests and notifications, and
// leaves the order within both as it is.
func answersLast(events []string) []string {
	sorted := slices.Clone(events)
	rank := func(event string) int {
		if strings.HasPrefix(event, "method: ") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return rank(a) - rank(b) })
	return sorted
}

// assertSameEvents fails the test unless the same messages came in the same order.
func assertSameEvents(t *testing.T, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			t.Errorf("message %d is missing: %s", i, tail(want[i]))
		case i >= len(want):
			t.Errorf("message %d is too much: %s", i, tail(got[i]))
		case want[i] != got[i]:
			t.Errorf("message %d differs\nwant %s\n got %s", i, tail(want[i]), tail(got[i]))
		}
	}
}
