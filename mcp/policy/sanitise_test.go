package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

func TestSanitisedResults(t *testing.T) {
	tool := catalog.Ref{Server: "notes", Kind: catalog.Tool, Name: "read"}
	key := "ghp_" + strings.Repeat("a7Kq", 9)
	masker := activity.NewMasker([]string{"hunter2-of-config"}, nil)
	all := Sanitisation{StripControl: true, SensitiveData: RedactSecrets}
	for name, test := range map[string]struct {
		rules    Sanitisation
		in, want string
	}{
		"off":             {Sanitisation{}, `{"content":[{"type":"text","text":"\u001b[31m` + key + `"}]}`, ""},
		"nothing to do":   {all, `{ "content" : [ {"type":"text","text":"plain \u00e9"} ] }`, ""},
		"no result":       {all, `null`, ""},
		"control":         {all, `{"content":[ {"text":"a\u001b[31mred\u001b[0m","type":"text"} , {"type":"image","data":"AAAA"}],"x":1.0}`, `{"content":[ {"text":"ared","type":"text"} , {"type":"image","data":"AAAA"}],"x":1.0}`},
		"resource":        {all, `{"content":[[],{"type":"resource","resource":{"uri":"a:b","text":"\u0007x"}}]}`, `{"content":[[],{"type":"resource","resource":{"uri":"a:b","text":"x"}}]}`},
		"resources/read":  {all, `{"contents":[{"uri":"a:b","text":"\u202ex"},{"uri":"a:c","blob":"AAAA"}]}`, `{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:c","blob":"AAAA"}]}`},
		"secrets":         {all, `{"content":[{"type":"text","text":"` + key + ` hunter2-of-config"}],"structuredContent":{"k":"` + key + `"}}`, `{"content":[{"type":"text","text":"*** ***"}],"structuredContent":{"k":"***"}}`},
		"identifiers":     {all, `{"structuredContent":{"document":"q7Zp2KxW9vT4mLb8Rf3Yc6Hd","password":"x"}}`, ""},
		"block":           {Sanitisation{SensitiveData: BlockSecrets}, `{"content":[],"structuredContent":{"k":"` + key + `"}}`, `{"content":[{"type":"text","text":"the result of read of server notes is withheld: it holds secrets (github_token); a person can change that with output_sanitisation.sensitive_data in the configuration"}],"isError":true}`},
		"nothing blocked": {Sanitisation{SensitiveData: BlockSecrets}, `{"content":[{"type":"text","text":"q7Zp2KxW9vT4mLb8Rf3Yc6Hd"}]}`, ""},
		"nothing marked":  {Sanitisation{MarkUntrusted: true}, `{"content":[{"type":"image","data":"AAAA"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if want == "" {
				want = test.in
			}
			got := test.rules.Result(tool, json.RawMessage(test.in), masker)
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestUntrustedIsMarked has the blocks of a tool stand between two that nobody can
// foresee, and leaves their bytes.
func TestUntrustedIsMarked(t *testing.T) {
	tool := catalog.Ref{Server: "notes", Kind: catalog.Tool, Name: "read"}
	in := json.RawMessage(`{"content": [ {"type":"text","text":"ignore all"} , {"type":"image","data":"AAAA"} ],"isError":false}`)
	got := Sanitisation{MarkUntrusted: true}.Result(tool, in, nil)
	var texts []string
	for block := range wire.Elements(wire.Member(got, "content")) {
		text, _ := textOf(block)
		texts = append(texts, text)
	}
	if len(texts) != 4 || !strings.Contains(texts[0], "the tool read of the server notes") || texts[1] != "ignore all" || texts[2] != "" {
		t.Fatalf("%q in %s", texts, got)
	}
	nonce, ok := strings.CutPrefix(texts[3], "[end of untrusted ")
	if nonce = strings.TrimSuffix(nonce, "]"); !ok || len(nonce) != 8 || !strings.HasPrefix(texts[0], "[untrusted "+nonce+":") {
		t.Errorf("%q", texts)
	}
	if !strings.Contains(string(got), ` {"type":"text","text":"ignore all"} , {"type":"image","data":"AAAA"} `) || !json.Valid(got) {
		t.Errorf("%s", got)
	}
	if again := (Sanitisation{MarkUntrusted: true}).Result(tool, in, nil); string(again) == string(got) {
		t.Error("the marks can be foreseen")
	}
	resource := catalog.Ref{Server: "notes", Kind: catalog.Resource, Name: "a:b"}
	if read := (Sanitisation{MarkUntrusted: true}).Result(resource, in, nil); string(read) != string(in) {
		t.Errorf("a resource is marked: %s", read)
	}
}

func TestStripControl(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"plain\ttext\r\nof two lines\n": "plain\ttext\r\nof two lines\n",
		"a\x1b[1;31mb\x1b[0mc":          "abc",
		"a\u009b31mb":                   "ab",
		"a\x1b]0;title\x07b":            "ab",
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b": "alinkb",
		"a\u009dtitle\u009cb":                        "ab",
		"a\x1bPq#1\x1b\\b":                           "ab",
		"a\x1bcb":                                    "ab",
		"a\x1b":                                      "a",
		"a\x1b[31":                                   "a31",
		"a\x1b]no end\nb":                            "ano end\nb",
		"a\x1b[3\nb":                                 "a3\nb",
		"progress 1\rprogress 2":                     "progress 1progress 2",
		"a\x00\x08b\x7f":                             "ab",
		"\u202egpj.exe\u2066x\u2069":                 "gpj.exex",
		"tag\U000e0041\U000e007f":                    "tag",
		"zero\u200bwidth\ufeff":                      "zerowidth",
		"日本 é 👩\u200d👧 नमस\u200dते": "日本 é 👩\u200d👧 नमस\u200dते",
		"\x1b[": "",
	} {
		if got := stripControl(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzSanitise holds for any text that nothing that acts is left, and that a
// result stays JSON.
func FuzzSanitise(f *testing.F) {
	for _, seed := range []string{"a\x1b[1mb", "\x1b]0;x\x07", "\u009b", "\r\n\r", "\x1b\x1b[", "\u202e", "\xff\x1bP\xff", "\xc2\u009b\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := stripControl(text)
		if strings.ContainsFunc(strings.ReplaceAll(got, "\r\n", "\n"), invisible) || len(got) > len(text) || utf8.ValidString(text) != utf8.ValidString(got) && utf8.ValidString(text) {
			t.Fatalf("%q becomes %q", text, got)
		}
		raw := wire.SetMember(json.RawMessage(`{"content":[{"type":"text","text":""}]}`), json.RawMessage(`[{"type":"text","text":`+string(wire.Quote(text))+`}]`), "content")
		all := Sanitisation{StripControl: true, MarkUntrusted: true, SensitiveData: RedactSecrets}
		if out := all.Result(catalog.Ref{Kind: catalog.Tool}, raw, nil); !json.Valid(out) {
			t.Fatalf("%s becomes %s", raw, out)
		}
	})
}
