package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const toolsChanged = "notifications/tools/list_changed"

// L01: what a server adds while it runs is announced and listed.
func TestL01AddedToolsAreAnnounced(t *testing.T) {
	s := newStub(t, "s", "").trusted()
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	began := time.Now()
	p.tool("s__addtool", `{"name":"late"}`)
	if m := p.await(toolsChanged); m.At.Sub(began) > 2*time.Second {
		t.Errorf("announced after %v", m.At.Sub(began))
	}
	if _, names := p.list("tools"); !slices.Contains(names, "s__late") {
		t.Errorf("listed are %q", names)
	}
	if m := p.tool("s__late", ""); m.text() != "answer of late · 世界" {
		t.Errorf("late: %s", m.Raw)
	}
}

// L01: a list that was announced as changed and is the same, or that the client
// never asked for, is no news.
func TestL01NoNewsIsNotAnnounced(t *testing.T) {
	s := newStub(t, "s", "")
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	for _, kind := range []string{"tools", "prompts", "resources"} {
		p.tool("s__notify", fmt.Sprintf(`{"method":"notifications/%s/list_changed"}`, kind))
	}
	for end := time.Now().Add(answerTime); len(s.received("tools/list")) < 2; {
		if time.Now().After(end) {
			t.Fatal("the tools were not listed again")
		}
		p.tool("s__slow", `{"ms":50}`)
	}
	p.tool("s__slow", `{"ms":300}`)
	if len(p.inbox) > 0 {
		t.Errorf("the client was told: %s", p.inbox[0].Raw)
	}
}

// L02: clients drop announcements of changes that initialize did not promise.
func TestL02ChangesArePromised(t *testing.T) {
	t.Parallel()
	p := startProxy(t, configOf(newStub(t, "s", "")))
	result := p.initialize("").Result
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if got := at(result, "capabilities", kind, "listChanged"); string(got) != "true" {
			t.Errorf("%s.listChanged is %s", kind, got)
		}
	}
}

// L04: servers that come up one by one after the list was answered are not
// announced one by one.
func TestL04NoStormOfAnnouncements(t *testing.T) {
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprint("t", i))
	}
	var servers []*upstreamStub
	for i := range 10 {
		servers = append(servers, newStub(t, fmt.Sprint("s", i), fmt.Sprintf(`"start_delay_ms":%d,%s`, 3600+90*i, tools(many...))))
	}
	p := startProxy(t, configOf(servers...))
	p.initialize("")
	began := time.Now()
	if _, names := p.list("tools"); len(names) > 0 {
		t.Errorf("%d tools of servers that cannot be there yet", len(names))
	}
	if took := time.Since(began); took > 3500*time.Millisecond {
		t.Errorf("listed after %v", took)
	}
	told := 0
	for last := began; ; told++ {
		m := p.await(toolsChanged)
		if told > 0 && m.At.Sub(last) < 200*time.Millisecond {
			t.Errorf("told again after %v", m.At.Sub(last))
		}
		last = m.At
		if _, names := p.list("tools"); len(names) == 500 {
			break
		}
	}
	// What follows the last change within its second.
	for end := time.Now().Add(time.Second); ; told++ {
		if _, err := p.take(time.Until(end), func(m message) bool { return m.Method == toolsChanged }); err != nil {
			break
		}
	}
	if told++; told > 5 {
		t.Errorf("told %d times", told)
	}
}

// L06: all pages of a server are read, and a cursor that does not advance ends
// the list with one warning.
func TestL06PagesAreFollowed(t *testing.T) {
	t.Parallel()
	page := func(from, to int) string {
		var items []string
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"name":"t%d","uri":"x:%d","uriTemplate":"x:%d/{a}","inputSchema":{"type":"object"}}`, i, i, i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	pages := fmt.Sprintf(`{"pages":[{"items":%s,"next":"8"},{"cursor":"8","items":%s}]}`, page(0, 8), page(8, 14))
	endless := fmt.Sprintf(`{"pages":[{"items":%s,"next":"8"},{"cursor":"8","items":%s,"next":"8"}]}`, page(0, 8), page(8, 9))
	empty := fmt.Sprintf(`{"pages":[{"items":%s,"next":""}]}`, page(0, 8))
	null := fmt.Sprintf(`{"pages":[{"items":%s,"next":null}]}`, page(0, 8))
	number := fmt.Sprintf(`{"pages":[{"items":%s,"next":8},{"cursor":8,"items":%s}]}`, page(0, 8), page(8, 14))
	all := func(pages string) string {
		return fmt.Sprintf(`"tools":%s,"prompts":%s,"resources":%s,"templates":%s`, pages, pages, pages, pages)
	}
	for _, c := range []struct {
		name, pages string
		want        int
	}{{"two pages", pages, 14}, {"endless", endless, 9}, {"empty cursor", empty, 8}, {"cursor null", null, 8}, {"cursor is a number", number, 14}} {
		t.Run(c.name, func(t *testing.T) {
			p := startProxy(t, configOf(newStub(t, "s", all(c.pages))))
			p.initialize("")
			for _, kind := range []string{"tools", "prompts", "resources", "resourceTemplates"} {
				if _, names := p.list(kind); len(names) != c.want {
					t.Errorf("%d %s: %q", len(names), kind, names)
				}
			}
			if m := p.call("tools/list", ""); at(m.Result, "nextCursor") != nil {
				t.Errorf("the list has a cursor")
			}
			p.close()
			warnings := strings.Count(p.readerSaid(), "tools/list: the cursor")
			if want := map[bool]int{true: 1}[c.name == "endless"]; warnings != want {
				t.Errorf("%d warnings: %s", warnings, p.stderrText())
			}
		})
	}
}

// L09: what a server dropped is neither listed nor known.
func TestL09DroppedToolsAreGone(t *testing.T) {
	t.Parallel()
	b := newStub(t, "b", "")
	p := startProxy(t, configOf(b))
	p.initialize("")
	p.list("tools")
	p.tool("b__droptool", `{"name":"fast"}`)
	p.await(toolsChanged)
	if _, names := p.list("tools"); slices.Contains(names, "b__fast") || len(names) == 0 {
		t.Errorf("listed are %q", names)
	}
	m := p.tool("b__fast", "")
	if m.code() != -32602 || !strings.Contains(m.errorText(), "'b__fast'") {
		t.Errorf("fast: %s", m.Raw)
	}
	if called := b.calledNames(); slices.Contains(called, "fast") {
		t.Errorf("the server was called by the names %q", called)
	}
}

// L04: a server that calls its list changed whenever it is asked for it is not
// asked without end.
func TestL04ListsThatAlwaysChange(t *testing.T) {
	s := newStub(t, "s", `"methods":{"tools/list":{"after":[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}]}}`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.list("tools")
	p.tool("s__slow", `{"ms":1000}`)
	if n := len(s.received("tools/list")); n < 2 || n > 4 {
		t.Errorf("the tools were listed %d times in a second", n)
	}
	if told := p.taken(toolsChanged); len(told) > 0 {
		t.Errorf("the client was told %d times", len(told))
	}
}

// L06: an answer without a list is no reason for silence, nor for the loss of
// what else the server has.
func TestL06AnswersWithoutList(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`null`, `[]`, `"tools"`, `{}`, `{"tools":null}`, `{"tools":{"t":{}}}`} {
		s := newStub(t, "s", `"prompts":[{"name":"p"}],"methods":{"tools/list":{"result":`+result+`}}`)
		p := startProxy(t, configOf(s))
		p.initialize("")
		_, names := p.list("tools")
		if _, prompts := p.list("prompts"); len(names) > 0 || len(prompts) != 1 {
			t.Errorf("%s: listed are %q and %q", result, names, prompts)
		}
		p.close()
		if want := `server s: tools/list: the answer has no list "tools"`; strings.Count(p.readerSaid(), want) != 1 {
			t.Errorf("%s: stderr %q", result, p.stderrText())
		}
	}
}
