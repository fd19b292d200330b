package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestFramingOfServers calls a tool of servers that frame their messages in
// every way that the stub knows and a reader can understand (F01, F03, F04,
// F14, F16).
func TestFramingOfServers(t *testing.T) {
	t.Parallel()
	ways := []string{"log", "jsonlog", "scalar", "blank", "bom", "crlf", "trailing", "pretty", "chunks", "two", "twice", "string-id", "no-version"}
	var stubs []*upstreamStub
	for _, way := range ways {
		framing, err := json.Marshal([]string{way})
		if err != nil {
			t.Fatal(err)
		}
		stubs = append(stubs, newStub(t, "f-"+way, `"framing":`+string(framing)+`,"tools":[{"name":"t","inputSchema":{"type":"object"}}]`))
	}
	stubs = append(stubs,
		newStub(t, "windows", `"framing":["bom","crlf"],"tools":[{"name":"t","inputSchema":{"type":"object"}}]`),
		newStub(t, "banner", `"banner":["Server v1.2 starting","","  port 80: {\"a\":1}"],"tools":[{"name":"t","inputSchema":{"type":"object"}}]`))
	p := startProxy(t, configOf(stubs...))
	p.initialize("")
	for _, s := range stubs {
		if m := p.tool(s.name+"__t", ""); m.text() != "answer of t · 世界" {
			t.Errorf("%s: %s", s.name, m.Raw)
		}
	}
	for _, s := range stubs {
		p.awaitTools(s.name + "__t")
	}
	p.close()
	log, err := os.ReadFile(filepath.Join(p.dir, "data", "logs", "banner.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"stdout: Server v1.2 starting\n", `stdout: port 80: {"a":1}` + "\n"} {
		if !strings.Contains(string(log), line) {
			t.Errorf("%q is not in the log: %s", line, log)
		}
	}
}

// TestInvalidUTF8FromServer has bytes in a result that are no UTF-8 (F16).
func TestInvalidUTF8FromServer(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", `"calls":{"fast":{"framing":["invalid-utf8"]}}`)))
	p.initialize("")
	m := p.tool("s__fast", "")
	if m.text() != "bad \uFFFD\uFFFD bytes" && m.text() != "bad \uFFFD bytes" {
		t.Errorf("%s", m.Raw)
	}
	if !utf8.Valid(m.Raw) {
		t.Errorf("no UTF-8: %q", m.Raw)
	}
	if m := p.tool("s__pid", ""); m.text() == "" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}

// TestLargeResults has results up to and beyond what one frame may have; one
// that is too large fails alone (F06).
func TestLargeResults(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize("")
	for _, size := range []int{70 << 10, 5 << 20, 20 << 20} {
		raw, err := json.Marshal(map[string]int{"bytes": size})
		if err != nil {
			t.Fatal(err)
		}
		if m := p.tool("s__big", string(raw)); len(m.Result) != size+len(`{"content":[{"type":"text","text":""}]}`) {
			t.Errorf("%d bytes: got %d: %.200s", size, len(m.Result), m.Raw)
		}
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("after %d bytes: %.200s", size, m.Raw)
		}
	}
	id := p.startTool("s__big", `{"bytes":70000000}`)
	m, err := p.take(time.Minute, func(m message) bool { return string(m.ID) == fmt.Sprint(id) })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(m.Raw), "message is larger than 67108864 bytes") || !strings.Contains(string(m.Raw), "server s") {
		t.Errorf("too large: %.300s", m.Raw)
	}
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("after one that was too large: %.200s", m.Raw)
	}
}

// TestStderrIsDrained has a server that writes more to stderr than a pipe
// holds, before it answers initialize and during a call (F07).
func TestStderrIsDrained(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", `"stderr_bytes":262144`)))
	p.initialize("")
	if m := p.tool("s__stderr", `{"bytes":262144}`); m.text() != "written" {
		t.Errorf("%s", m.Raw)
	}
}

// TestStdoutIsPure lets everything go wrong that gives occasion to talk: what
// is on stdout is JSON-RPC all the same (F09).
func TestStdoutIsPure(t *testing.T) {
	t.Parallel()
	p := startProxy(t, entries(`"no_such_key":1,`,
		newStub(t, "good", `"framing":["log"],"stderr_text":"talk\n","stderr_bytes":1000`).entry(),
		newStub(t, "dies", `"exit_at_start":3,"banner":["I die"],"stderr_text":"config missing\n"`).entry(),
		`{"name":"gone","command":"no-such-binary"}`,
		`{"name":"bad__name","command":"x"}`,
		`{"name":"odd","command":"x","args":7}`,
		`{"name":"unset","command":"x","env":{"A":"${NO_SUCH_VARIABLE}"}}`,
	), "--log-level", "debug")
	p.initialize("")
	p.list("tools")
	p.tool("good__fast", "")
	p.tool("dies__t", "")
	p.tool("gone__t", "")
	p.tool("unset__t", "")
	p.send("hello")
	p.call("ping", "")
	p.close()
	lines := 0
	for {
		m, err := p.take(time.Second, func(message) bool { return true })
		if err != nil {
			break
		}
		lines++
		if string(at(m.Raw, "jsonrpc")) != `"2.0"` {
			t.Errorf("on stdout: %q", m.Raw)
		}
	}
	if lines == 0 {
		t.Error("not even the answer to hello was seen")
	}
}

// TestGarbageFromClient sends what is no message; the session goes on (F10).
func TestGarbageFromClient(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize("")
	for _, line := range []string{"hello", "42", `"text"`, `[1,2]`, `{"level":"info"}`, "\x00\x01", "}{"} {
		p.send(line)
		m := p.next(answerTime)
		if string(m.ID) != "null" || m.code() != -32700 {
			t.Errorf("%q: %s", line, m.Raw)
		}
		if m := p.call("ping", ""); m.Error != nil {
			t.Errorf("after %q: %s", line, m.Raw)
		}
	}
	// What might be the start of a message is known to be none once a whole one
	// follows.
	p.send(`{"jsonrpc":"2.0","id":900,"method":"ping"`)
	if m := p.call("ping", ""); m.Error != nil {
		t.Errorf("after half a message: %s", m.Raw)
	}
	if m := p.next(answerTime); m.code() != -32700 {
		t.Errorf("half a message: %s", m.Raw)
	}
	p.awaitTools("s__fast")
}

// TestFramingOfClients accepts from a client what is accepted from servers
// (F04).
func TestFramingOfClients(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize("")
	for id, text := range map[string]string{
		"101": "\uFEFF" + `{"jsonrpc":"2.0","id":101,"method":"ping"}` + "\r",
		"102": "\r\n \t\r\n" + `{"jsonrpc":"2.0","id":102,"method":"ping"} ` + "\t \r",
		"103": "{\r\n  \"jsonrpc\": \"2.0\",\n\n  \"id\": 103,\n  \"method\": \"ping\"\n}",
		"104": `{"jsonrpc":"2.0","method":"notifications/x"}{"jsonrpc":"2.0","id":104,"method":"ping"}`,
		"105": `{"id":105,"method":"ping"}`,
	} {
		p.send(text)
		if m := p.waitRaw(id); m.Error != nil {
			t.Errorf("%q: %s", text, m.Raw)
		}
	}
	// In pieces, one of which ends inside a character.
	text := `{"jsonrpc":"2.0","id":106,"method":"tools/call","params":{"name":"s__echo","arguments":{"a":"世界"}}}` + "\n"
	cut := strings.Index(text, "世") + 1
	for _, piece := range []string{text[:20], text[20:cut], text[cut : cut+3], text[cut+3:]} {
		if _, err := p.stdin.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // so that they arrive as pieces
	}
	if m := p.waitRaw("106"); stringAt(m.Result, "structuredContent", "arguments", "a") != "世界" {
		t.Errorf("%s", m.Raw)
	}
	// What is no UTF-8 does not go on as it is.
	p.send(`{"jsonrpc":"2.0","id":107,"method":"tools/call","params":{"name":"s__echo","arguments":{"a":"` + "\xff" + `"}}}`)
	if m := p.waitRaw("107"); stringAt(m.Result, "structuredContent", "arguments", "a") != "\uFFFD" {
		t.Errorf("%s", m.Raw)
	}
}

// TestHugeMessageFromClient is larger than a frame may be: it is refused by its
// id where that can be found, and the next is served.
func TestHugeMessageFromClient(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize("")
	p.send(`{"jsonrpc":"2.0","id":500,"method":"tools/call","params":{"name":"s__echo","arguments":{"a":"` + strings.Repeat("x", 65<<20) + `"}}}`)
	m, err := p.take(time.Minute, func(m message) bool { return string(m.ID) == "500" })
	if err != nil {
		t.Fatal(err)
	}
	if m.code() != -32700 || !strings.Contains(m.errorText(), "larger than") {
		t.Errorf("%.300s", m.Raw)
	}
	if m := p.tool("s__fast", ""); m.text() != "fast" {
		t.Errorf("afterwards: %s", m.Raw)
	}
}

// TestContentLength is spoken to as language servers are; a person is told what
// is wrong (F11).
func TestContentLength(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf())
	begun := time.Now()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	if _, err := p.stdin.Write([]byte("Content-Length: 147\r\n\r\n" + body)); err != nil {
		t.Fatal(err)
	}
	p.awaitStderr("newline-delimited JSON is expected")
	if m := p.next(answerTime); m.code() != -32700 || string(m.ID) != "null" {
		t.Errorf("%s", m.Raw)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestAnswersAreNotHeldBack answers while stdin stays open (F13).
func TestAnswersAreNotHeldBack(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initialize("")
	begun := time.Now()
	if m := p.call("ping", ""); m.Error != nil {
		t.Errorf("%s", m.Raw)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestBatch sends arrays, which protocol 2025-03-26 had.
func TestBatch(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	p.initializeAs("test", "2025-03-26", "")
	p.send(`[{"jsonrpc":"2.0","id":11,"method":"ping"},` +
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},` +
		`{"jsonrpc":"2.0","id":"12","method":"tools/call","params":{"name":"s__slow","arguments":{"ms":200}}},` +
		`{"jsonrpc":"2.0","id":13,"method":"no/such"},` +
		`{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"s__fast"}}]`)
	var answers []message
	m := p.next(answerTime)
	if err := json.Unmarshal(m.Raw, &answers); err != nil {
		t.Fatalf("no array: %s", m.Raw)
	}
	byID := map[string]message{}
	for _, answer := range answers {
		byID[string(answer.ID)] = answer
	}
	if len(answers) != 4 || byID["11"].Error != nil || byID[`"12"`].text() != "slow" || byID["13"].code() != -32601 || byID["14"].text() != "fast" {
		t.Errorf("%s", m.Raw)
	}
	// Notifications alone get no answer, also not an empty array.
	p.send(`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	if m := p.call("ping", ""); m.Error != nil {
		t.Errorf("%s", m.Raw)
	}
	p.send(`[]`)
	if m := p.next(answerTime); m.code() != -32700 && m.code() != -32600 {
		t.Errorf("an empty array: %s", m.Raw)
	}
}
