//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// generations are the search indexes in the data folder.
func generations(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(dir, "data", "index"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names
}

// manyTools are so many tools of a list, of which the words tell the edition.
func manyTools(count int, edition string) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`{"name":"tool_%d","description":"Does the %s thing number %d."}`, i, edition, i))
	}
	return strings.Join(all, ",")
}

// TestRetrieveIndexFolder: of more than 300 tools the index is written once into
// the data folder, and other instances use it. What is offered anew has a new one,
// and old ones do not pile up.
func TestRetrieveIndexFolder(t *testing.T) {
	t.Parallel()
	const count = 320
	s := newTurncoat(t, "s")
	s.trusted()
	s.write(t, offering{"tools": manyTools(count, "first")})
	dir := place(t, privateConfig("", s.upstreamStub))
	debugOf := func(p *proxy, query string) (generation string) {
		t.Helper()
		answer := p.search(query, `"debug":true,"limit":3`)
		if string(at(answer, "debug", "in_folder")) != "true" {
			t.Fatalf("%s is not searched in a folder: %s", query, at(answer, "debug"))
		}
		return stringAt(answer, "debug", "generation")
	}
	first := retrieving(t, dir)
	first.awaitFound("tool_319", "s:tool_319")
	generation := debugOf(first, "first thing")
	if there := generations(t, dir); !slices.Equal(there, []string{generation}) {
		t.Errorf("of %s there is %q", generation, there)
	}
	info, err := os.Stat(filepath.Join(dir, "data", "index"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the folder is %v %v", info.Mode(), err)
	}
	second := retrieving(t, dir)
	if got := debugOf(second, "first thing"); got != generation {
		t.Errorf("the other instance searches %s, not %s", got, generation)
	}
	for _, query := range []string{"thing number 7", "tool_12", "first"} {
		if one, two := first.search(query), second.search(query); string(one) != string(two) {
			t.Errorf("%s: one answers\n%s, the other\n%s", query, one, two)
		}
	}
	if there := generations(t, dir); !slices.Equal(there, []string{generation}) {
		t.Errorf("of one list there is %q", there)
	}
	second.close()
	all := []string{generation}
	for _, edition := range []string{"second", "third", "fourth", "fifth"} {
		s.write(t, offering{"tools": manyTools(count, edition)})
		if m := first.through("write", "s:notify", `{"method":"notifications/tools/list_changed"}`); refusalOf(m) != "" {
			t.Fatalf("notify gave %s", m.Raw)
		}
		awaitUntil(t, answerTime, "the new list is searched", func() bool {
			return strings.Contains(string(first.search(edition)), "the "+edition+" thing")
		})
		next := debugOf(first, edition)
		if slices.Contains(all, next) {
			t.Errorf("the list of %s has the index of an earlier one", edition)
		}
		all = append(all, next)
	}
	// Two older ones stay, for instances that still have them.
	there := generations(t, dir)
	if len(there) != 3 || !slices.Contains(there, all[len(all)-1]) || slices.Contains(there, all[0]) {
		t.Errorf("of %q there is %q", all, there)
	}
	// Few tools need none.
	s.write(t, offering{"tools": lookTool})
	if m := first.through("write", "s:notify", `{"method":"notifications/tools/list_changed"}`); refusalOf(m) != "" {
		t.Fatalf("notify gave %s", m.Raw)
	}
	awaitUntil(t, answerTime, "a short list is searched in memory", func() bool {
		return string(at(first.search("look", `"debug":true`), "debug", "in_folder")) == "false"
	})
}

// readOn reads what was cut to the end as its notice says, each page by another of
// the instances, and returns the pages.
func readOn(t *testing.T, key string, readers ...*proxy) (pages []json.RawMessage) {
	t.Helper()
	for offset := 0; ; {
		m := readers[len(pages)%len(readers)].readCache(key, offset)
		page := json.RawMessage(m.text())
		size := utf8.RuneCountInString(stringAt(page, "text")) // without its escapes
		if at(page, "records") != nil {
			size = utf8.RuneCountInString(m.text())
		}
		if m.isError() || !json.Valid(page) || size > 20000 {
			t.Fatalf("page %d at %d is %s", len(pages), offset, shorten(m.Raw))
		}
		pages = append(pages, page)
		next := at(page, "meta", "next_offset")
		if next == nil {
			return pages
		}
		was := offset
		var err error
		if offset, err = strconv.Atoi(string(next)); err != nil || offset <= was {
			t.Fatalf("after page %d at %d comes %s", len(pages), was, next)
		}
	}
}

// TestRetrieveCutResults is O03, O04 and O07: a long result is cut within the limit,
// its notice says how to read on, and what other instances read then, also after
// those that had the result are gone, is the original to the byte.
func TestRetrieveCutResults(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := 0; text.Len() < 200_000; i++ {
		fmt.Fprintf(&text, "line %d: \"世界\" \\ 🌍 <&>\t\n", i)
	}
	var records []string
	for i := range 3000 {
		records = append(records, fmt.Sprintf(`{"id":%d,"name":"nämé %d","big":9007199254740993,"n":1.50}`, i, i))
	}
	list := `{"page":{"items":[` + strings.Join(records, ",") + `]},"more":false}`
	quoted := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	s := newStub(t, "s", fmt.Sprintf(`"tools":[{"name":"text"},{"name":"list"},{"name":"structured","outputSchema":{"type":"object"}},{"name":"two"},{"name":"picture"}],"calls":{
		"text":{"result":{"content":[{"type":"text","text":%[1]s}],"_meta":{"k":1}}},
		"list":{"result":{"content":[{"type":"text","text":%[2]s}]}},
		"structured":{"result":{"content":[],"structuredContent":%[3]s}},
		"two":{"result":{"content":[{"type":"text","text":%[1]s},{"type":"text","text":"short"},{"type":"text","text":%[2]s}]}},
		"picture":{"result":{"content":[{"type":"image","mimeType":"image/png","data":%[4]q}]}}}`, quoted(text.String()), quoted(list), list, strings.Repeat("QUJD", 20000)))
	dir := place(t, privateConfig("", s))
	first, second := retrieving(t, dir), retrieving(t, dir)
	cut := func(tool string) (m message, keys []string) {
		t.Helper()
		m = first.through("destructive", "s:"+tool, "{}")
		shown := 0
		for i := 0; at(m.Result, "content", strconv.Itoa(i)) != nil; i++ {
			block := stringAt(m.Result, "content", strconv.Itoa(i), "text")
			shown += utf8.RuneCountInString(block)
			for _, call := range readCall.FindAllStringSubmatch(block, -1) {
				keys = append(keys, call[2])
			}
		}
		if refusalOf(m) != "" || shown > 20000 || shown < 10000 || at(m.Result, "structuredContent") != nil {
			t.Errorf("%s is cut to %d characters: %s", tool, shown, shorten(m.Raw))
		}
		return m, keys
	}
	joined := func(pages []json.RawMessage) string {
		var all strings.Builder
		for _, page := range pages {
			all.WriteString(stringAt(page, "text"))
		}
		return all.String()
	}
	elements := func(pages []json.RawMessage) (all []string) {
		for _, page := range pages {
			var some []json.RawMessage
			if err := json.Unmarshal(at(page, "records"), &some); err != nil {
				t.Fatal(err)
			}
			for _, each := range some {
				all = append(all, string(each))
			}
		}
		return all
	}
	m, keys := cut("text")
	if total := fmt.Sprint(utf8.RuneCountInString(text.String())); len(keys) != 1 || !strings.Contains(m.text(), "of "+total+" characters") || string(at(m.Result, "_meta")) != `{"k":1}` {
		t.Fatalf("the notice is %q", m.text()[max(0, len(m.text())-300):])
	}
	// What is shown ends where the offset of the notice begins.
	notice := readCall.FindStringSubmatch(m.text())[1]
	offset, err := strconv.Atoi(string(at(json.RawMessage(notice), "offset")))
	if shown := string([]rune(text.String())[:offset]); err != nil || !strings.HasPrefix(m.text(), shown+"\n[cut after") {
		t.Errorf("what is shown does not end at %d", offset)
	}
	textKey := keys[0]
	pages := readOn(t, textKey, second, first)
	if joined(pages) != text.String() {
		t.Errorf("%d pages of text are not the original", len(pages))
	}
	if most := utf8.RuneCountInString(text.String())/20000 + 2; len(pages) > most {
		t.Errorf("%d pages, at most %d are needed", len(pages), most)
	}
	_, keys = cut("list")
	if len(keys) != 1 {
		t.Fatalf("the list names %q", keys)
	}
	listKey := keys[0]
	pages = readOn(t, listKey, first, second)
	if !slices.Equal(elements(pages), records) || stringAt(pages[0], "meta", "record_path") != "page.items" || string(at(pages[0], "meta", "total_records")) != "3000" {
		t.Errorf("%d pages of records are not the original: %s", len(pages), at(pages[0], "meta"))
	}
	_, keys = cut("structured")
	if len(keys) != 1 || !slices.Equal(elements(readOn(t, keys[0], second)), records) {
		t.Errorf("the structured result under %q is not the original", keys)
	}
	m, keys = cut("two")
	if len(keys) != 2 || keys[0] == keys[1] || !strings.Contains(string(m.Raw), `"short"`) || joined(readOn(t, keys[0], second)) != text.String() || !slices.Equal(elements(readOn(t, keys[1], second)), records) {
		t.Errorf("the two texts under %q are not the original", keys)
	}
	if m := first.through("destructive", "s:picture", "{}"); len(stringAt(m.Result, "content", "0", "data")) != 80000 {
		t.Errorf("a picture is cut: %s", shorten(m.Raw))
	}
	first.close()
	second.close()
	calls := len(s.received("tools/call"))
	later := retrieving(t, dir)
	if joined(readOn(t, textKey, later)) != text.String() || !slices.Equal(elements(readOn(t, listKey, later)), records) {
		t.Error("after a restart the pages are not the original")
	}
	if n := len(s.received("tools/call")); n != calls {
		t.Errorf("reading on made %d calls", n-calls)
	}
}
