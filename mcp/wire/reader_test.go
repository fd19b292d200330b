package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// readAll reads to the end and returns the messages' raw text and the garbage.
func readAll(t *testing.T, r io.Reader, max int) (messages []string, garbage []Garbage) {
	t.Helper()
	in := NewReader(r, max, func(g Garbage) { garbage = append(garbage, g) })
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			return messages, garbage
		}
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		messages = append(messages, string(m.Raw))
	}
}

func TestReaderForgives(t *testing.T) {
	const a = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const b = `{"jsonrpc":"2.0","id":2,"result":{"text":"é"}}`
	pretty := "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 3,\n  \"result\": {\n    \"a\": [\n      1,\n      {}\n    ]\n  }\n}"
	cases := []struct {
		name, input string
		want        []string
		garbage     []string
	}{
		{"one", a + "\n", []string{a}, nil},
		{"no final newline", a, []string{a}, nil},
		{"byte order mark and CRLF", "\xef\xbb\xbf" + a + "\r\n" + b + "\r\n", []string{a, b}, nil},
		{"white space around", "  " + a + " \t \n\n\n" + b + " \n", []string{a, b}, nil},
		{"two in a line", a + b + "\n", []string{a, b}, nil},
		{"two in a line with a space", a + " " + b + "\n", []string{a, b}, nil},
		{"over several lines", pretty + "\n" + a + "\n", []string{`{ "jsonrpc": "2.0", "id": 3, "result": { "a": [ 1, {} ] } }`, a}, nil},
		{"over several lines with CRLF", strings.ReplaceAll(pretty, "\n", "\r\n") + "\r\n", []string{`{ "jsonrpc": "2.0", "id": 3, "result": { "a": [ 1, {} ] } }`}, nil},
		{"banner", "Server v1.2 starting\n" + a + "\n", []string{a}, []string{"Server v1.2 starting"}},
		{"scalar", "42\n" + a + "\n", []string{a}, []string{"42"}},
		{"text before a message", "listening..." + a + "\n", []string{a}, []string{"listening..."}},
		{"text behind a message", a + " bye\n" + b + "\n", []string{a, b}, []string{"bye"}},
		{"log line in JSON", `{"level":"info","msg":"x"}` + "\n" + a + "\n", []string{a}, []string{`{"level":"info","msg":"x"}`}},
		{"log line with a method", `{"level":"info","method":"GET"}` + "\n" + a + "\n", []string{a}, []string{`{"level":"info","method":"GET"}`}},
		{"a lone bracket", "{\n" + a + "\n", []string{a}, []string{"{"}},
		{"a bracket and text", "{ starting\n" + a + "\n", []string{a}, []string{"{ starting"}},
		{"an open member", `{"a":` + "\n" + a + "\n", []string{a}, []string{`{"a":`}},
		{"open at the end", a + "\n{\"a\":", []string{a}, []string{`{"a":`}},
		{"version missing, id there", `{"id":7,"result":{}}` + "\n", []string{`{"id":7,"result":{}}`}, nil},
		{"batch", "[" + a + "," + b + "]\n", []string{a, b}, nil},
		{"array that is no batch", "[1,2]\n" + a + "\n", []string{a}, []string{"[1,2]"}},
		{"raw tab in a string", "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":\"a\tb\"}\n" + a + "\n", []string{a}, []string{"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":\"a\tb\"}"}},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"x\xff\xfey\"}\n", []string{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"x\uFFFDy\"}"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			messages, dropped := readAll(t, strings.NewReader(c.input), 0)
			if !slices.Equal(messages, c.want) {
				t.Errorf("messages\n got %q\nwant %q", messages, c.want)
			}
			var lines []string
			for _, g := range dropped {
				lines = append(lines, string(g.Line))
			}
			if !slices.Equal(lines, c.garbage) {
				t.Errorf("garbage\n got %q\nwant %q", lines, c.garbage)
			}
		})
	}
}

// oneByte delivers a stream byte by byte, which splits every character.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

func TestReaderJoinsSplitCharacters(t *testing.T) {
	const m = `{"jsonrpc":"2.0","id":1,"result":{"text":"日本語 😀"}}`
	messages, garbage := readAll(t, oneByte{strings.NewReader(m + "\n")}, 0)
	if len(messages) != 1 || messages[0] != m || garbage != nil {
		t.Fatalf("got %q, garbage %v", messages, garbage)
	}
}

func TestReaderNamesTheAnswerThatCannotBeRead(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":5,"result":"` + strings.Repeat("x", 200<<10) + `"}`
	late := `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 200<<10) + `","id":6}`
	broken := `{"jsonrpc":"2.0","id":8,"result":NaN}`
	const after = `{"jsonrpc":"2.0","id":7,"result":{}}`
	messages, garbage := readAll(t, strings.NewReader(big+"\n"+late+"\n"+broken+"\n"+after+"\n"), 100<<10)
	if len(messages) != 1 || messages[0] != after {
		t.Fatalf("messages %q", messages)
	}
	var ids []string
	for _, g := range garbage {
		if !g.Response {
			t.Errorf("garbage %v is not seen as an answer", g.ID)
		}
		ids = append(ids, string(g.ID))
	}
	if !slices.Equal(ids, []string{"5", "6", "8"}) {
		t.Fatalf("ids %v", ids)
	}
}

func TestReaderTakesLargeMessages(t *testing.T) {
	for _, size := range []int{64<<10 - 20, 64 << 10, 5 << 20, 20 << 20} {
		m := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("é", size/2) + `"}`
		messages, garbage := readAll(t, strings.NewReader(m+"\n"), 0)
		if len(messages) != 1 || messages[0] != m || garbage != nil {
			t.Fatalf("%d bytes: %d messages, %d garbage", size, len(messages), len(garbage))
		}
	}
}

func TestReaderTakesDeepMessages(t *testing.T) {
	const depth = 200_000
	m := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	messages, _ := readAll(t, strings.NewReader(m+"\n"), 0)
	if len(messages) != 1 || messages[0] != m {
		t.Fatalf("%d messages", len(messages))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"))
	f.Add([]byte("banner{\"jsonrpc\":\"2.0\"}\n{\n[{\"id\":1,\"result\":2}]\n"))
	f.Add([]byte("{\"a\":\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r\n\xff\xfe"))
	f.Fuzz(func(t *testing.T, input []byte) {
		const last = `{"jsonrpc":"2.0","id":"last","result":{}}`
		stream := append(append(bytes.Clone(input), '\n'), last...)
		in := NewReader(bytes.NewReader(stream), 1<<16, nil)
		var got []string
		for {
			m, err := in.Next()
			if err != nil {
				break
			}
			if !json.Valid(m.Raw) || !utf8.Valid(m.Raw) {
				t.Fatalf("message %q is no JSON in UTF-8", m.Raw)
			}
			got = append(got, string(m.Raw))
		}
		if len(got) == 0 || got[len(got)-1] != last {
			t.Fatalf("after %q the next message was lost: %q", input, got)
		}
	})
}
