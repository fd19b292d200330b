package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
	"mcpproxy/store"
)

// keeper is Pages in a test, with what they work with.
type keeper struct {
	*Pages
	u         *upstreams
	gate      *policy.Gate
	approvals *policy.Approvals
	db        *store.DB
	limit     int
	size      int64
	now       time.Time
	reads     []PageRead
	errors    []error
}

// pageRules are those of a test: every server, and three profiles.
func pageRules() policy.Rules {
	return policy.Rules{
		Servers: map[string]policy.Rule{"s": {Unannotated: catalog.Destructive}, "o": {Unannotated: catalog.Destructive}},
		Profiles: map[string]policy.Profile{
			"s-only": {Servers: []string{"s"}, Tier: catalog.Destructive},
			"s-read": {Servers: []string{"s"}, Tier: catalog.Read},
			"both":   {Servers: []string{"o", "s"}, Tier: catalog.Destructive},
			"o-only": {Servers: []string{"o"}, Tier: catalog.Destructive},
		},
	}
}

// keeping is Pages over a store of their own, with servers s and o that have tools r,
// w and d, each of the tier that begins so.
func keeping(t testing.TB, limit int) *keeper {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	k := &keeper{u: &upstreams{}, db: db, limit: limit, size: 256 << 20, now: time.UnixMilli(1_700_000_000_000)}
	k.offer("d")
	k.approvals = policy.NewApprovals(policy.ApprovalOptions{Store: func() *store.DB { return db }, DataDir: dir})
	k.gate = policy.NewGate(k.u, pageRules(), policy.Options{Approvals: k.approvals})
	k.gate.Catalog(t.Context())
	k.Pages = NewPages(PageOptions{
		Gate: k.gate, Store: func() *store.DB { return k.db }, Limit: func() int { return k.limit }, Size: func() int64 { return k.size },
		Now:    func() time.Time { return k.now },
		Record: func(r PageRead) { k.reads = append(k.reads, r) }, OnError: func(err error) { k.errors = append(k.errors, err) },
	})
	return k
}

// offer has both servers offer their tools, with a description of d.
func (k *keeper) offer(description string) {
	var servers []*catalog.Server
	for _, name := range []string{"s", "o"} {
		server := &catalog.Server{Name: name, Prefix: name, Known: true}
		for tool, hints := range map[string]string{"r": `{"readOnlyHint":true}`, "w": `{"destructiveHint":false}`, "d": `{"destructiveHint":true}`} {
			text := tool
			if tool == "d" {
				text = description
			}
			raw := fmt.Appendf(nil, `{"name":%q,"description":%q,"annotations":%s}`, tool, text, hints)
			server.Tools = append(server.Tools, catalog.New(catalog.Ref{Server: name, Kind: catalog.Tool, Name: tool}, raw, nil))
		}
		servers = append(servers, server)
	}
	k.u.set(servers...)
}

// tool is a tool of server s.
func (k *keeper) tool(name string) *catalog.Item {
	for _, item := range k.u.Loaded().Server("s").Tools {
		if item.Name == name {
			return item
		}
	}
	panic(name)
}

func asking(caller auth.Caller) asker { return asker{Session: session(), caller: caller} }

// fit is a result as a local user gets it from tool r.
func (k *keeper) fit(t testing.TB, result string) json.RawMessage {
	t.Helper()
	got := k.Fit(t.Context(), asking(auth.Local()), k.tool("r"), json.RawMessage(result))
	if !json.Valid(got) || !utf8.Valid(got) {
		t.Fatalf("the result is no valid JSON: %.300q", got)
	}
	return got
}

// textsOf are the texts of a result.
func textsOf(result json.RawMessage) (texts []string) {
	for block := range wire.Elements(wire.Member(result, "content")) {
		for _, path := range [][]string{{"text"}, {"resource", "text"}} {
			if raw := wire.Member(block, path...); raw != nil {
				texts = append(texts, string(textOf(raw)))
			}
		}
	}
	return texts
}

func textOfResult(text string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, appendQuoted(nil, []byte(text)))
}

var noticed = regexp.MustCompile(`read_cache (\{"key": "([0-9a-f]{32})", "offset": (\d+)\})\]$`)

// keysIn are the keys that notices name, with the offsets.
func keysIn(t testing.TB, texts []string) (keys []string, offsets []int) {
	t.Helper()
	for _, text := range texts {
		if m := noticed.FindStringSubmatch(text); m != nil {
			if !json.Valid([]byte(m[1])) {
				t.Errorf("the call is %s", m[1])
			}
			var offset int
			fmt.Sscan(m[3], &offset)
			keys, offsets = append(keys, m[2]), append(offsets, offset)
		}
	}
	return keys, offsets
}

// ask calls read_cache.
func (k *keeper) ask(t testing.TB, caller auth.Caller, args string) (answer string, failed bool) {
	t.Helper()
	result, failure := k.Builtin().Call(t.Context(), asking(caller), json.RawMessage(args))
	if failure != nil || !json.Valid(result) || !utf8.Valid(result) {
		t.Fatalf("%s, %v", result, failure)
	}
	texts := textsOf(result)
	if len(texts) != 1 {
		t.Fatalf("%d texts: %s", len(texts), result)
	}
	return texts[0], string(wire.Member(result, "isError")) == "true"
}

// pageMeta is meta of an answer.
type pageMeta struct {
	Key          string
	TotalRecords *int `json:"total_records"`
	Offset       int
	Limit        *int
	TotalSize    int     `json:"total_size"`
	RecordPath   *string `json:"record_path"`
	NextOffset   *int    `json:"next_offset"`
}

// whole reads a page from an offset to its end, and holds that each answer fits. What
// it returns is the text, or the records with a line break behind each.
func (k *keeper) whole(t testing.TB, key string, offset, limit int) (all string, calls int, meta pageMeta) {
	t.Helper()
	most := max(k.limit, leastLimit)
	for {
		answer, failed := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q,"offset":%d,"limit":%d}`, key, offset, limit))
		if calls++; failed || !wire.Valid([]byte(answer)) || calls > 100_000 {
			t.Fatalf("call %d at %d: %.300s", calls, offset, answer)
		}
		meta = pageMeta{}
		if err := json.Unmarshal(wire.Member([]byte(answer), "meta"), &meta); err != nil || meta.Key != key || meta.Offset != offset {
			t.Fatalf("%s, %v", wire.Member([]byte(answer), "meta"), err)
		}
		next := offset
		if meta.TotalRecords != nil {
			if n := length([]byte(answer)); n > most {
				t.Fatalf("a page of records has %d characters, limit %d", n, most)
			}
			for record := range wire.Elements(wire.Member([]byte(answer), "records")) {
				all += string(record) + "\n"
				next++
			}
			if next-offset > limit {
				t.Fatalf("%d records, limit %d", next-offset, limit)
			}
		} else {
			text := textOf(wire.Member([]byte(answer), "text"))
			if n := length(text); n > most {
				t.Fatalf("a page of text has %d characters, limit %d", n, most)
			}
			all += string(text)
			next += length(text)
		}
		if meta.NextOffset == nil {
			return all, calls, meta
		}
		if *meta.NextOffset != next || next == offset {
			t.Fatalf("next_offset %d after %d to %d", *meta.NextOffset, offset, next)
		}
		offset = next
	}
}

// sent checks what every cut result has to be, and returns its texts.
func (k *keeper) sent(t testing.TB, result json.RawMessage) []string {
	t.Helper()
	texts := textsOf(result)
	if n := length([]byte(strings.Join(texts, ""))); n > max(k.limit, leastLimit) {
		t.Fatalf("%d characters were sent, limit %d: %.300q", n, k.limit, texts)
	}
	if wire.Member(result, "structuredContent") != nil {
		t.Fatal("structured content was sent")
	}
	return texts
}

// readable holds that a text, sent alone as a result, can be read to the end.
func (k *keeper) readable(t testing.TB, text string) {
	t.Helper()
	original := textOfResult(text)
	result := k.fit(t, original)
	size := length([]byte(text))
	if size <= max(k.limit, leastLimit) {
		if string(result) != original {
			t.Fatalf("a result of %d characters was changed, limit %d", size, k.limit)
		}
		return
	}
	texts := k.sent(t, result)
	keys, offsets := keysIn(t, texts)
	if len(keys) != 1 {
		t.Fatalf("%d keys in %q", len(keys), texts)
	}
	all, calls, meta := k.whole(t, keys[0], 0, 1000)
	if meta.TotalSize != size || !strings.Contains(strings.Join(texts, ""), fmt.Sprint(size)) {
		t.Fatalf("total size %d, notice %q; want %d", meta.TotalSize, texts[len(texts)-1], size)
	}
	if meta.TotalRecords != nil {
		k.sameRecords(t, text, texts[0], all, offsets[0], meta)
		return
	}
	if all != text {
		t.Fatalf("the pages are %.300q, the text %.300q", all, text)
	}
	most := max(k.limit, leastLimit)
	if bound := (size+most-1)/most + 1; calls > bound {
		t.Fatalf("%d calls for %d characters, limit %d; want %d", calls, size, most, bound)
	}
	// What was sent is what stands in front of the offset that the notice names.
	rest, _, _ := k.whole(t, keys[0], offsets[0], 1000)
	if shown := texts[0][:strings.LastIndex(texts[0], "\n[")]; shown+rest != text {
		t.Fatalf("%q was sent, and then comes %.100q", shown, rest)
	}
}

// sameRecords holds that records are the elements of an array in the text, byte for
// byte, and that what was sent is the text with the first of them.
func (k *keeper) sameRecords(t testing.TB, text, shown, all string, offset int, meta pageMeta) {
	t.Helper()
	array := []byte(text)
	path := ""
	if meta.RecordPath != nil {
		path = *meta.RecordPath
	}
	short := []byte(shown)
	for step := range strings.SplitSeq("."+path, ".") {
		if step != "" {
			array, short = wire.Member(array, step), wire.Member(short, step)
		}
		for _, text := range []*[]byte{&array, &short} {
			for *text = bytes.TrimSpace(*text); len(*text) > 0 && (*text)[0] == '"'; {
				*text = bytes.TrimSpace(textOf(*text))
			}
		}
	}
	count := 0
	want, first := "", ""
	for element := range wire.Elements(array) {
		if want += string(element) + "\n"; count < offset {
			first = want
		}
		count++
	}
	if all != want || count != *meta.TotalRecords {
		t.Fatalf("%d records %.300q; want %d, %.300q", *meta.TotalRecords, all, count, want)
	}
	got := ""
	for element := range wire.Elements(short) {
		got += string(element) + "\n"
	}
	if !wire.Valid([]byte(shown)) || got != first || offset >= count {
		t.Fatalf("sent was %.300q; want the first %d records in it", shown, offset)
	}
}

// pagedTexts are texts of about so many characters, of every sort.
func pagedTexts(size int) map[string]string {
	fill := func(piece string) string {
		n := length([]byte(piece))
		return strings.Repeat(piece, size/n) + string([]rune(piece)[:size%n])
	}
	list := func(record func(i int) string) string {
		var b strings.Builder
		b.WriteString("[")
		for i := 0; b.Len() < size-1; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(record(i))
		}
		return b.String() + "]"
	}
	plain := list(func(i int) string { return fmt.Sprintf(`{"id": %d, "t": "é\"\u00e9\\"}`, i) })
	quote := func(s string) string { return string(appendQuoted(nil, []byte(s))) }
	return map[string]string{
		"ascii":       fill("a"),
		"emoji":       fill("😀"),
		"mixed":       fill("aé€😀"),
		"quotes":      fill(`"`),
		"backslashes": fill(`\`),
		"escapes":     fill(`\"é\u00e9\ud83d\ude00\\`),
		"control":     fill("\x01\n"),
		"surrogates":  fill("a") + "\xed\xa0\x80" + "b" + "\xed\xb0\x80",
		"array":       plain,
		"spaced":      "\n" + strings.ReplaceAll(plain, ", {", "\n,\t{") + "\n ",
		"numbers":     list(func(i int) string { return fmt.Sprint(i) }),
		"object":      `{"total":3,"items":` + plain + `,"next":null}`,
		"deep":        `{"a":{"b":{"c":{"d":` + plain + `}}}}`,
		"too deep":    `{"a":{"b":{"c":{"d":{"e":` + plain + `}}}}}`,
		"string":      `{"result":` + quote(plain) + `}`,
		"strings":     quote(`{"body":` + quote(`{"x":`+quote(plain)+`}`) + `,"\"":1}`),
		"huge":        `[{"a":"` + fill("x") + `"},{"a":"` + fill(`\"`) + `"}]`,
		"surrogate records": list(func(i int) string {
			return `["` + "\xed\xa0\x80" + `","\ud800"]`
		}),
	}
}

// TestPagingAroundTheLimit: whatever a text is, and however long, what is sent and every
// page is within the limit, and the pages are the original.
func TestPagingAroundTheLimit(t *testing.T) {
	for _, limit := range []int{1, 100, 299, 777} {
		k := keeping(t, limit)
		for _, size := range []int{limit - 1, limit, limit + 1, 2 * limit, 5*limit + 7} {
			for name, text := range pagedTexts(max(1, size)) {
				if !t.Run(fmt.Sprintf("%d/%d/%s", limit, size, name), func(t *testing.T) { k.readable(t, text) }) {
					return
				}
			}
		}
		if len(k.errors) > 0 {
			t.Fatal(k.errors)
		}
	}
}

// FuzzPaging holds the same of any text: what is given is a JSON string without its
// quotes if it can be one, and else the text.
func FuzzPaging(f *testing.F) {
	for _, size := range []int{90, 400, 1500} {
		for _, text := range pagedTexts(size) {
			for _, limit := range []uint16{100, 333} {
				quoted := appendQuoted(nil, []byte(text))
				f.Add(string(quoted[1:len(quoted)-1]), limit, uint8(1))
			}
		}
	}
	k := keeping(f, 0)
	k.size = 4 << 20
	f.Fuzz(func(t *testing.T, text string, limit uint16, repeat uint8) {
		if raw := `"` + text + `"`; utf8.ValidString(text) && json.Valid([]byte(raw)) {
			text = string(textOf([]byte(raw)))
		} else {
			text = strings.ToValidUTF8(text, "?")
		}
		k.limit = int(limit)
		if k.reads = nil; k.limit == 0 || len(text)*int(repeat) > 12*max(k.limit, leastLimit) {
			return
		}
		k.readable(t, strings.Repeat(text, max(1, int(repeat))))
		if len(k.errors) > 0 {
			t.Fatal(k.errors)
		}
	})
}
