package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// J01: ids come back as they were sent, and ids that merely look alike are not
// the same.
func TestJ01IDsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.send(`{"jsonrpc":"2.0","id":"init-1","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if m := p.waitRaw(`"init-1"`); m.Error != nil {
		t.Fatalf("initialize: %s", m.Raw)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.list("tools")
	ids := []string{`1000`, `"1000"`, `0`, `"0"`, `-1`, `1.5`, `1e3`, `9007199254740993`, `123456789012345678901234567890`, `""`, `"\u0031000"`, `"<&>"`, `"世界"`, `"a b"`}
	for i, id := range ids {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"s__echo","arguments":{"n":%d}}}`, id, i))
	}
	for i, id := range ids {
		if got := at(p.waitRaw(id).Result, "structuredContent", "arguments", "n"); string(got) != strconv.Itoa(i) {
			t.Errorf("id %s got the answer of %s", id, got)
		}
	}
	// Methods of the lifecycle keep ids as well.
	for _, id := range ids {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
		if m := p.waitRaw(id); string(m.Result) != "{}" {
			t.Errorf("ping %s: %s", id, m.Raw)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`)
	if m := p.waitRaw("null"); m.code() != -32600 {
		t.Errorf("id null: %s", m.Raw)
	}
	slow := p.startTool("s__slow", `{"ms":300}`)
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"s__fast"}}`, slow))
	if m := p.wait(slow); m.code() != -32600 {
		t.Errorf("an id that is in use: %s", m.Raw)
	}
	if m := p.wait(slow); m.text() != "slow" {
		t.Errorf("the request that has the id: %s", m.Raw)
	}
}

// J03: a cancellation reaches the right server, with that server's id of the
// request, and no other server.
func TestJ03CancellationIsTranslated(t *testing.T) {
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.list("tools")
	p.tool("a__fast", "")
	p.tool("b__fast", "")
	other := p.startTool("b__slow", `{"ms":1500}`)
	p.send(`{"jsonrpc":"2.0","id":101,"method":"tools/call","params":{"name":"a__hang","arguments":{}}}`)
	calls := func() []message { return a.received("tools/call") }
	for end := time.Now().Add(answerTime); len(calls()) < 2 && time.Now().Before(end); {
		p.tool("b__fast", "")
	}
	theirs := string(calls()[1].ID)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"x":1.0,"requestId":101,"reason":"<changed> my mind"}}`)
	began := time.Now()
	m := a.awaitMessage("notifications/cancelled")
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("the server heard of it after %v", took)
	}
	if want := fmt.Sprintf(`{"x":1.0,"requestId":%s,"reason":"<changed> my mind"}`, theirs); string(m.Params) != want {
		t.Errorf("got  %s\nwant %s", m.Params, want)
	}
	if m := p.wait(other); m.text() != "slow" {
		t.Errorf("the other call: %s", m.Raw)
	}
	if n := len(b.received("notifications/cancelled")); n != 0 {
		t.Errorf("the other server got %d cancellations", n)
	}
	if m, err := p.take(0, func(m message) bool { return string(m.ID) == "101" }); err == nil && m.Error == nil {
		t.Errorf("the cancelled request was answered: %s", m.Raw)
	}
	// Cancelling what is not there, or long answered, is nobody's business.
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"no such"}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	p.tool("a__fast", "")
	if n := len(a.received("notifications/cancelled")); n != 1 {
		t.Errorf("the server got %d cancellations", n)
	}
}

// J04: progress arrives under the client's own token, in order, and before the
// result.
func TestJ04ProgressInOrder(t *testing.T) {
	t.Parallel()
	a, b := newStub(t, "a", ""), newStub(t, "b", "")
	p := startProxy(t, configOf(a, b))
	p.initialize("")
	p.list("tools")
	tokens := map[string]int{}
	for i, token := range []string{`"p1"`, `7`, `9007199254740993`, `"<ü>"`} {
		tokens[token] = p.start("tools/call", fmt.Sprintf(
			`{"name":"%s__progress","arguments":{"n":3,"interval_ms":20},"_meta":{"progressToken":%s}}`, []string{"a", "b"}[i%2], token))
	}
	steps := map[string]int{}
	for open := len(tokens); open > 0; {
		m := p.next(answerTime)
		if m.Method == "notifications/progress" {
			token := string(at(m.Params, "progressToken"))
			steps[token]++
			want := fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":3,"message":"step %d"}`, token, steps[token], steps[token])
			if string(m.Params) != want {
				t.Errorf("got  %s\nwant %s", m.Params, want)
			}
			continue
		}
		open--
		for token, id := range tokens {
			if string(m.ID) == strconv.Itoa(id) && steps[token] != 3 {
				t.Errorf("the result of %s came after %d steps", token, steps[token])
			}
		}
	}
	// Without a token there is nothing to tell.
	p.tool("a__progress", "")
	if more := p.taken("notifications/progress"); len(more) > 0 {
		t.Errorf("there is more: %s", more[0].Raw)
	}
}

// J07: clients take an error on these probes for fatal.
func TestJ07ListsAlwaysAnswer(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"no servers":          `{"mcpServers":[]}`,
		"a server with tools": configOf(newStub(t, "s", `"capabilities":{"tools":{}}`)),
		"a dead server":       configOf(newStub(t, "s", `"exit_at_start":1`)),
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, config)
			p.initialize("")
			for method, want := range map[string]string{
				"prompts/list": `{"prompts":[]}`, "resources/list": `{"resources":[]}`, "resources/templates/list": `{"resourceTemplates":[]}`,
			} {
				if m := p.call(method, ""); string(m.Result) != want {
					t.Errorf("%s: %s", method, m.Raw)
				}
			}
			if m := p.call("tools/list", "{}"); m.Error != nil || !valid(at(m.Result, "tools")) {
				t.Errorf("tools/list: %s", m.Raw)
			}
		})
	}
}

// J08: a server is not asked for what it did not announce, and one that
// announced more than it knows works all the same.
func TestJ08NothingUnannouncedIsAsked(t *testing.T) {
	t.Parallel()
	plain := newStub(t, "plain", `"capabilities":{"tools":{}}`)
	boast := newStub(t, "boast", `"methods":{"resources/list":{"error":{"code":-32601,"message":"?"}},"resources/templates/list":{"error":{"code":-32601,"message":"?"}},
		"prompts/list":{"error":{"code":-32601,"message":"?"}},"logging/setLevel":{"error":{"code":-32601,"message":"?"}}}`)
	p := startProxy(t, configOf(plain, boast))
	p.initialize("")
	_, names := p.list("tools")
	if got := strings.Join(names, " "); !strings.Contains(got, "plain__fast") || !strings.Contains(got, "boast__fast") {
		t.Errorf("listed are %s", got)
	}
	p.list("resources")
	p.list("prompts")
	if m := p.call("logging/setLevel", `{"level":"debug"}`); m.Error != nil {
		t.Errorf("logging/setLevel: %s", m.Raw)
	}
	for _, name := range []string{"plain__fast", "boast__fast"} {
		if m := p.tool(name, ""); m.text() != "fast" {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	for _, line := range plain.events("recv") {
		switch m := parse(line); m.Method {
		case "initialize", "notifications/initialized", "tools/list", "tools/call":
		default:
			t.Errorf("the server that has only tools got %s", line)
		}
	}
}

// J09: a version that nobody knows is answered with one that we do, to clients;
// a server that answers one is not used, and says so.
func TestJ09UnknownVersions(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"protocol":"2024-11-05"`)
	for _, version := range []string{"2099-01-01", "", "draft", "2026-07-28", "2024-10-07"} {
		p := startProxy(t, configOf(s))
		m := p.initializeAs("test", version, "")
		if got := stringAt(m.Result, "protocolVersion"); !supported(got) {
			t.Errorf("version %q was answered with %q", version, got)
		}
		if m := p.tool("s__fast", ""); m.text() != "fast" {
			t.Errorf("version %q: %s", version, m.Raw)
		}
	}
	s = newStub(t, "odd", `"protocol":"2099-01-01"`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	if m := p.tool("odd__fast", ""); !m.isError() || !strings.Contains(m.text(), `"2099-01-01"`) {
		t.Errorf("a server with an unknown version: %s", m.Raw)
	}
}

// J11: whatever the params are, the call is answered and the next one works.
func TestJ11RandomParams(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"t","inputSchema":{"type":"object"}}],"calls":{"t":{"result":{"content":[]}}}`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	random := rand.New(rand.NewPCG(1, 2))
	const total, together = 10_000, 100
	for range total / together {
		var ids []int
		var sent []string
		for range together {
			params := randomParams(random)
			if !json.Valid([]byte(params)) {
				t.Fatalf("the test made no JSON: %s", params)
			}
			ids, sent = append(ids, p.start("tools/call", params)), append(sent, params)
		}
		for i, id := range ids {
			m := p.wait(id)
			if (m.Result == nil) == (m.Error == nil) || m.Error != nil && m.code() >= 0 {
				t.Errorf("%s: %s", sent[i], m.Raw)
			}
		}
	}
	if m := p.tool("s__t", ""); string(m.Result) != `{"content":[]}` {
		t.Errorf("afterwards: %s", m.Raw)
	}
	if len(p.inbox) > 0 {
		t.Errorf("there is more: %s", p.inbox[0].Raw)
	}
	if n := len(s.events("start")); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
}

// randomParams is an object that sometimes makes a call, or nearly does.
func randomParams(random *rand.Rand) string {
	pick := func(choice ...string) string { return choice[random.IntN(len(choice))] }
	var members []string
	for range random.IntN(6) {
		key := pick("name", "name", "arguments", "_meta", "task", "nam\\u0065", "", "x", "progressToken", "uri", "ref")
		value := randomJSON(random, 4)
		if strings.HasPrefix(key, "nam") && random.IntN(2) == 0 {
			value = pick(`"s__t"`, `"s__t"`, `"s__"`, `"__t"`, `"s"`, `"t"`, `"s__u"`, `"\ud800"`, `"x__y"`)
		}
		if key == "_meta" && random.IntN(2) == 0 {
			value = `{"progressToken":` + randomJSON(random, 1) + `}`
		}
		members = append(members, `"`+key+`"`+pick(":", " : ")+value)
	}
	return "{" + strings.Join(members, pick(",", " , ")) + "}"
}

func randomJSON(random *rand.Rand, depth int) string {
	n := random.IntN(12)
	if depth == 0 {
		n = random.IntN(9)
	}
	switch n {
	case 0:
		return "null"
	case 1:
		return strconv.FormatBool(random.IntN(2) == 0)
	case 2:
		return strconv.FormatInt(random.Int64()-random.Int64(), 10)
	case 3:
		return []string{"1e400", "-0.0", "1.0", "9007199254740993", "1E-7"}[random.IntN(5)]
	case 4, 5, 6:
		return []string{`""`, `"\ud800"`, `"\u0000"`, `"世界"`, `"\\"`, `"\""`, `"<&>"`, `"{"`, `"]"`, `"a|b:c"`}[random.IntN(10)]
	case 7:
		return "{}"
	case 8:
		return "[]"
	}
	var parts []string
	for range random.IntN(4) {
		part := randomJSON(random, depth-1)
		if n > 9 {
			part = fmt.Sprintf(`"%s":%s`, []string{"a", "name", "", `\u0061`, "type"}[random.IntN(5)], part)
		}
		parts = append(parts, part)
	}
	if n > 9 {
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}
