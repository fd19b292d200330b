package router

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/wire"
)

// TestCutInAnEscape: wherever the limit falls, what is sent is valid, and what can be
// parsed whole can be parsed cut.
func TestCutInAnEscape(t *testing.T) {
	k := keeping(t, 0)
	for shift := range 40 {
		text := `[{"a":"` + strings.Repeat("x", shift) + strings.Repeat(`\"😀\\é\u00e9\ud83d\ude00`, 60) + `"}]`
		for _, limit := range []int{100, 101, 102, 103, 400} {
			k.limit = limit
			texts := k.sent(t, k.fit(t, textOfResult(text)))
			shown, _, _ := strings.Cut(texts[0], "\n[")
			if !strings.HasPrefix(text, shown) || shown == "" {
				t.Fatalf("limit %d: %q", limit, shown)
			}
			// Closed, it is JSON again: nothing was cut in two.
			if closed := shown + `"}]`; len(shown) > 7 && !json.Valid([]byte(closed)) {
				t.Errorf("limit %d: %s", limit, closed)
			}
			if rest, found := strings.CutSuffix(shown, `\ud83d`); found {
				t.Errorf("limit %d: half a character after %q", limit, rest)
			}
		}
	}
}

// TestKeysAreDistinct: each oversized block has a key of its own, and each call other
// ones.
func TestKeysAreDistinct(t *testing.T) {
	k := keeping(t, 1000)
	a, b := strings.Repeat("a", 3000), strings.Repeat("b", 4000)
	result := fmt.Sprintf(`{"content":[{"type":"text","text":%q},{"type":"text","text":%q}]}`, a, b)
	seen := map[string]bool{}
	for range 20 {
		keys, _ := keysIn(t, k.sent(t, k.fit(t, result)))
		if len(keys) != 2 {
			t.Fatal(keys)
		}
		for i, key := range keys {
			if seen[key] {
				t.Errorf("%s twice", key)
			}
			seen[key] = true
			if all, _, _ := k.whole(t, key, 0, 50); all != []string{a, b}[i] {
				t.Errorf("block %d is %.50s…", i, all)
			}
		}
	}
}

// TestOneHugeRecord is read in pages of the usual limit, and in no more calls than that
// takes.
func TestOneHugeRecord(t *testing.T) {
	k := keeping(t, 20000)
	for name, text := range map[string]string{
		"object":       `{"blob":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
		"one record":   `[{"blob":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}]`,
		"among others": `[{"id":1},{"blob":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"},{"id":2}]`,
	} {
		keys, _ := keysIn(t, k.sent(t, k.fit(t, textOfResult(text))))
		if len(keys) != 1 {
			t.Fatal(keys)
		}
		all, calls := "", 0
		for offset := 0; ; calls++ {
			answer, failed := k.ask(t, auth.Local(), fmt.Sprintf(`{"key":%q,"offset":%d}`, keys[0], offset))
			if failed || len(answer) > k.limit {
				t.Fatalf("%s: %d characters: %.100s", name, len(answer), answer)
			}
			page, _ := wire.String(wire.Member([]byte(answer), "text"))
			all += page
			next := wire.Member([]byte(answer), "meta", "next_offset")
			if next == nil {
				break
			}
			offset += len(page)
			if string(next) != fmt.Sprint(offset) {
				t.Fatalf("%s: next is %s, not %d", name, next, offset)
			}
		}
		if most := (len(text)+k.limit-1)/k.limit + 1; all != text || calls+1 > most {
			t.Errorf("%s: %d calls, want %d; the same: %v", name, calls+1, most, all == text)
		}
	}
}

// TestNotice: 200,000 characters are within the default limit with the notice, which
// says all that is needed.
func TestNotice(t *testing.T) {
	k := keeping(t, 20000)
	for text, want := range map[string]string{
		strings.Repeat("x", 200_000):                                        `\n\[cut after 19\d\d\d of 200000 characters; read on within 2 hours: read_cache \{"key": "[0-9a-f]{32}", "offset": 19\d\d\d\}\]$`,
		`{"n":1,"rows":[` + strings.Repeat(`{"id":1234567},`, 9999) + `0]}`: `^\[cut after \d+ of 10000 records \(\d+ characters in all\); read on within 2 hours: read_cache \{"key": "[0-9a-f]{32}", "offset": \d+\}\]$`,
	} {
		texts := k.sent(t, k.fit(t, textOfResult(text)))
		if last := texts[len(texts)-1]; !regexp.MustCompile(want).MatchString(last) {
			t.Errorf("the notice is %q", last[max(0, len(last)-300):])
		}
		if n := len(strings.Join(texts, "")); n < 19500 {
			t.Errorf("only %d characters were sent", n)
		}
	}
}

// TestWhatIsNotText stays as and where it is.
func TestWhatIsNotText(t *testing.T) {
	k := keeping(t, 1000)
	long, blob := strings.Repeat("text ", 1000), strings.Repeat("QUJD", 5000)
	image := fmt.Sprintf(`{ "type":"image", "data":%q,"mimeType":"image/png"}`, blob)
	audio := fmt.Sprintf(`{"type":"audio","data":%q,"mimeType":"audio/wav"}`, blob)
	embedded := fmt.Sprintf(`{"type":"resource","resource":{"uri":"x:1","blob":%q}}`, blob)
	link := `{"type":"resource_link","uri":"x:2","name":"n"}`
	whole := `{"content":[` + strings.Join([]string{image, audio, embedded, link}, ", ") + `,{"type":"text","text":"short"}]}`
	if got := k.fit(t, whole); string(got) != whole {
		t.Error("what is not too long was changed")
	}
	result := fmt.Sprintf(`{"_meta":{"k":9007199254740993},"content":[%s,{"type":"text","text":%q,"annotations":{"priority":1.0}},%s,%s,{"type":"resource","resource":{"uri":"x:3","text":%q,"mimeType":"text/plain"}},%s,{"type":"odd","text":7}],"isError":true,"more":[1]}`,
		image, long, audio, embedded, long, link)
	got := k.fit(t, result)
	k.sent(t, got)
	var blocks []string
	for block := range wire.Elements(wire.Member(got, "content")) {
		blocks = append(blocks, string(block))
	}
	for i, want := range []string{image, "", audio, embedded, "", link, `{"type":"odd","text":7}`} {
		if want != "" && (i >= len(blocks) || blocks[i] != want) {
			t.Errorf("block %d is %.200s", i, blocks[min(i, len(blocks)-1)])
		}
	}
	if len(blocks) != 7 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for path, want := range map[string]string{"_meta": `{"k":9007199254740993}`, "isError": "true", "more": "[1]"} {
		if string(wire.Member(got, path)) != want {
			t.Errorf("%s is %s", path, wire.Member(got, path))
		}
	}
	for i, path := range map[int][]string{1: {"annotations", "priority"}, 4: {"resource", "mimeType"}} {
		if wire.Member([]byte(blocks[i]), path...) == nil {
			t.Errorf("block %d is %s", i, blocks[i])
		}
	}
	keys, _ := keysIn(t, textsOf(got))
	for _, key := range keys {
		if all, _, _ := k.whole(t, key, 0, 50); all != long {
			t.Errorf("%.50s…", all)
		}
	}
	if len(keys) != 2 {
		t.Error(keys)
	}
}

// TestStructuredContent is left out of a result that is too long, and stands in the
// text if it did not before.
func TestStructuredContent(t *testing.T) {
	value := `{"rows": [` + strings.Repeat(`{"id":1,"é":"\u00e9"}, `, 20) + `{"id":2.50}],"total":21}`
	quote := func(s string) string { return string(appendQuoted(nil, []byte(s))) }
	text := func(s string) string { return `{"type":"text","text":` + quote(s) + `}` }
	for name, test := range map[string]struct {
		content, structured string
		held                bool
	}{
		"the same":            {text(value), value, true},
		"written differently": {text(" " + strings.ReplaceAll(strings.ReplaceAll(value, ", ", ",\n\t"), `\u00e9`, "é") + "\n"), value, true},
		"in another order":    {text(`{"total":21,` + strings.Replace(value, `,"total":21`, "", 1)[1:]), value, true},
		"behind others":       {text("Found 21 rows") + "," + text(value), value, true},
		"wrapped":             {text(value), `{"result":` + value + `}`, true},
		"wrapped text":        {text(strings.Repeat("line\n", 100)), `{"result":` + quote(strings.Repeat("line\n", 100)) + `}`, true},
		"wrapped list":        {text(`{"a":1}`) + "," + text(strings.Repeat("é", 300)), `{"result":[{"a": 1},` + quote(strings.Repeat("é", 300)) + `]}`, true},
		"another":             {text(strings.Replace(value, "2.50", "2.51", 1)), value, false},
		"a summary":           {text("Found 21 rows"), value, false},
		"nothing":             {"", value, false},
		"only an image":       {`{"type":"image","data":"AAAA"}`, value, false},
	} {
		t.Run(name, func(t *testing.T) {
			result := fmt.Sprintf(`{"content":[%s],"structuredContent":%s}`, test.content, test.structured)
			both := takeApart(json.RawMessage(result)).size
			alone := takeApart(json.RawMessage(`{"content":[` + test.content + `]}`)).size
			// It fits.
			k := keeping(t, both)
			if got := k.fit(t, result); string(got) != result {
				t.Errorf("it became %s", got)
			}
			// It does not, together.
			k.limit--
			got := k.fit(t, result)
			texts := k.sent(t, got)
			keys, _ := keysIn(t, texts)
			if test.held {
				if want := `{"content":[` + test.content + `]}`; alone <= k.limit && string(got) != want {
					t.Errorf("it became %s", got)
				}
				return
			}
			if len(keys) == 0 {
				t.Fatalf("nothing is kept: %s", got)
			}
			for _, kind := range []string{"Found 21 rows", `"data":"AAAA"`} {
				if strings.Contains(test.content, kind) && !strings.Contains(string(got), kind) {
					t.Errorf("%s is gone: %s", kind, got)
				}
			}
			if all, _, meta := k.whole(t, keys[len(keys)-1], 0, 50); all != test.structured && (meta.RecordPath == nil || *meta.RecordPath != "rows") {
				t.Errorf("kept is %s", all)
			}
		})
	}
}

// TestManyBlocks: where there are too many to cut each, the first stay, and the others
// are kept as they are.
func TestManyBlocks(t *testing.T) {
	k := keeping(t, 0)
	for _, limit := range []int{100, 400, 1000, 20000} {
		for _, test := range []struct{ blocks, size int }{{2, 2 * limit}, {3, 700}, {20, 1000}, {300, 90}, {12, limit / 11}, {10, limit/10 + 1}} {
			k.limit = limit
			var blocks, want []string
			for i := range test.blocks {
				blocks = append(blocks, fmt.Sprintf(`{"type":"text", "text":"%d%s"}`, i, strings.Repeat("x", test.size)))
			}
			result := `{"content":[` + strings.Join(blocks, ",") + `]}`
			got := k.fit(t, result)
			if takeApart(json.RawMessage(result)).size <= limit {
				continue
			}
			texts := k.sent(t, got)
			keys, _ := keysIn(t, texts)
			if len(keys) == 0 {
				t.Fatalf("limit %d, %d blocks of %d: no key in %q", limit, test.blocks, test.size, texts)
			}
			// What is whole, and what can be read, is the original in its order.
			for i, block := range blocks {
				original, _ := wire.String(wire.Member(json.RawMessage(block), "text"))
				switch {
				case i < len(texts) && texts[i] == original:
				case i < len(texts) && noticed.MatchString(texts[i]) && len(keys) > 1, i < len(texts) && noticed.MatchString(texts[i]) && strings.HasPrefix(texts[i], fmt.Sprint(i)):
					key, _ := keysIn(t, texts[i:i+1])
					if all, _, _ := k.whole(t, key[0], 0, 50); all != original {
						t.Fatalf("block %d is %.100s", i, all)
					}
				default:
					want = append(want, block)
				}
			}
			if len(want) == 0 {
				continue
			}
			all, _, meta := k.whole(t, keys[len(keys)-1], 0, 1000)
			if meta.TotalRecords == nil {
				var raws []json.RawMessage
				if err := json.Unmarshal([]byte(all), &raws); err != nil {
					t.Fatal(err)
				}
				all = ""
				for _, raw := range raws {
					all += string(raw) + "\n"
				}
			}
			if all != strings.Join(want, "\n")+"\n" {
				t.Errorf("limit %d, %d blocks of %d: kept are %.300s; want %.300s", limit, test.blocks, test.size, all, strings.Join(want, "\n"))
			}
		}
	}
}

// TestOddResults are never made worse.
func TestOddResults(t *testing.T) {
	k := keeping(t, 100)
	pad := strings.Repeat("x", 500)
	for _, result := range []string{
		`"` + pad + `"`, `[` + strings.Repeat("1,", 200) + `1]`, `{"content":"` + pad + `"}`, `{"content":[7,null,"` + pad + `",{}]}`,
		`{"content":[{"type":"text"},{"type":"text","text":null},{"type":"resource"},{"type":7,"text":"` + pad + `"}]}`, `{"contents":[{"uri":"x","text":"` + pad + `"}]}`,
		`{"structuredContent":null,"x":"` + pad + `"}`,
	} {
		if got := k.fit(t, result); string(got) != result {
			t.Errorf("%s became %s", result, got)
		}
	}
	for _, result := range []string{
		`{"structuredContent":"` + pad + `"}`, `{"content":null,"structuredContent":{"a":"` + pad + `"}}`,
		`{"content":[{"type":"text","text":"` + pad + `"}],"content":[{"type":"text","text":"` + pad + `"}]}`,
		`{"content":[{"type":"text","text":"a","text":"` + pad + `"}],"structuredContent":1,"structuredContent":{}}`,
	} {
		got := k.fit(t, result)
		if keys, _ := keysIn(t, k.sent(t, got)); len(keys) != 1 || strings.Contains(string(got), pad) {
			t.Errorf("%s became %s", result, got)
		}
	}
}
