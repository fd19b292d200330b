package cli_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// corpusCase is one section of a corpus file with the sections that belong to
// it.
type corpusCase struct {
	name string
	sent []byte
	want []byte // nil when there is no such section
	warn string
}

// readCorpus reads a file of testdata/corpus, whose head says what it holds.
func readCorpus(t *testing.T, file string) []corpusCase {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "testdata", "corpus", file))
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	for _, f := range archive.Files {
		data := bytes.TrimSuffix(expand(t, f.Data), []byte("\n"))
		of := func(name string) *corpusCase {
			i := slices.IndexFunc(cases, func(c corpusCase) bool { return c.name == name })
			if i < 0 {
				t.Fatalf("%s: section %q belongs to none", file, f.Name)
			}
			return &cases[i]
		}
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			of(name).want = data
		} else if name, ok := strings.CutSuffix(f.Name, ".warn"); ok {
			of(name).warn = string(data)
		} else {
			cases = append(cases, corpusCase{name: f.Name, sent: data})
		}
	}
	return cases
}

// placeholder is what stands in a corpus file for bytes that cannot be read or
// written well.
var placeholder = regexp.MustCompile(`\{\{(?:(\d+) (.+?)|hex ([0-9a-f]+))\}\}`)

func expand(t *testing.T, text []byte) []byte {
	t.Helper()
	return placeholder.ReplaceAllFunc(text, func(hit []byte) []byte {
		parts := placeholder.FindSubmatch(hit)
		if parts[3] != nil {
			raw, err := hex.DecodeString(string(parts[3]))
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		n, err := strconv.Atoi(string(parts[1]))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Repeat(parts[2], n)
	})
}

// shorten keeps the output of a failed comparison readable.
func shorten(raw []byte) string {
	const limit = 600
	if len(raw) > limit {
		return fmt.Sprintf("%s ... (%d bytes)", raw[:limit], len(raw))
	}
	return string(raw)
}

func sameBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("\ngot  %s\nwant %s", shorten(got), shorten(want))
	}
}

// TestCorpusOfResults sends every odd answer as that of a tool, a resource and
// a prompt.
func TestCorpusOfResults(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t, "results.txtar")
	if len(cases) < 34 {
		t.Fatalf("%d cases", len(cases))
	}
	var tools, prompts, calls, reads, gets []string
	for i, c := range cases {
		kind := "result"
		if strings.HasSuffix(c.name, ".error") {
			kind = "error"
		}
		answer := fmt.Sprintf(`{%q:%s}`, kind, c.sent)
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		prompts = append(prompts, fmt.Sprintf(`{"name":"t%d"}`, i))
		calls = append(calls, fmt.Sprintf(`"t%d":%s`, i, answer))
		reads = append(reads, fmt.Sprintf(`"x:%d":%s`, i, answer))
		gets = append(gets, fmt.Sprintf(`"t%d":%s`, i, answer))
	}
	s := newStub(t, "s", fmt.Sprintf(`"tools":[%s],"prompts":[%s],"calls":{%s},"reads":{%s},"gets":{%s}`,
		strings.Join(tools, ","), strings.Join(prompts, ","), strings.Join(calls, ","), strings.Join(reads, ","), strings.Join(gets, ",")))
	p := startProxy(t, configOf(s))
	p.initialize("")
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			relayed := c.sent
			if bytes.ContainsRune(c.want, '\uFFFD') {
				relayed = c.want
			}
			called := relayed
			if c.want != nil {
				called = c.want
			}
			outcome := func(m message) []byte {
				if strings.HasSuffix(c.name, ".error") {
					return m.Error
				}
				return m.Result
			}
			sameBytes(t, outcome(p.tool(fmt.Sprintf("s__t%d", i), "")), called)
			sameBytes(t, outcome(p.call("resources/read", fmt.Sprintf(`{"uri":"x:%d"}`, i))), relayed)
			sameBytes(t, outcome(p.call("prompts/get", fmt.Sprintf(`{"name":"s__t%d"}`, i))), relayed)
		})
	}
}

// TestCorpusOfTools lists all odd tools of one server, once as the server sent
// them and once more as they were stored.
func TestCorpusOfTools(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t, "tools.txtar")
	if len(cases) < 20 {
		t.Fatalf("%d cases", len(cases))
	}
	var definitions []string
	for _, c := range cases {
		definitions = append(definitions, string(c.sent))
	}
	s := newStub(t, "s", fmt.Sprintf(`"tools":[%s]`, strings.Join(definitions, ",")))
	p := startProxy(t, configOf(s))
	p.initialize("")
	listed := p.call("tools/list", "").Result
	compareTools(t, listed, cases)
	p.close()
	for _, c := range cases {
		if !strings.Contains(p.stderrText(), c.warn) {
			t.Errorf("%s: stderr lacks %q: %s", c.name, c.warn, p.stderrText())
		}
	}
	if code := p.close(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	again := startProxyIn(t, p.dir, "")
	again.initialize("")
	sameBytes(t, again.call("tools/list", "").Result, listed)
	if starts := len(s.events("start")); starts != 1 {
		t.Errorf("the server was started %d times for lists that are stored", starts)
	}
}

func compareTools(t *testing.T, listed json.RawMessage, cases []corpusCase) {
	t.Helper()
	var got []json.RawMessage
	if err := json.Unmarshal(at(listed, "tools"), &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.want == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if len(got) == 0 {
				t.Fatal("it is not listed")
			}
			sameBytes(t, got[0], c.want)
		})
		got = got[min(1, len(got)):]
	}
	for _, more := range got {
		t.Errorf("listed, and not expected: %s", shorten(more))
	}
}

// TestCorpusOfRequests compares the params that a server received.
func TestCorpusOfRequests(t *testing.T) {
	t.Parallel()
	cases := readCorpus(t, "requests.txtar")
	if len(cases) < 8 {
		t.Fatalf("%d cases", len(cases))
	}
	s := newStub(t, "s", `"tools":[{"name":"t","inputSchema":{"type":"object"}}],"prompts":[{"name":"t"}],"resources":[{"uri":"x:r","name":"r"}],
		"calls":{"t":{"result":{"content":[]}}}`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	token := regexp.MustCompile(`"progressToken":\d+`)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			method, params, _ := strings.Cut(string(c.sent), " ")
			if m := p.call(method, params); m.Error != nil {
				t.Fatalf("error %s", shorten(m.Error))
			}
			received := s.received(method)
			if len(received) == 0 {
				t.Fatal("the server got nothing")
			}
			got := received[len(received)-1].Params
			if bytes.Contains(c.want, []byte("{{token}}")) {
				got = token.ReplaceAll(got, []byte(`"progressToken":{{token}}`))
			}
			sameBytes(t, got, c.want)
		})
	}
	if exits := s.events("exit"); len(exits) > 0 {
		t.Errorf("the server ended: %v", exits)
	}
}
