package activity

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// kept is what is kept of a payload.
func kept(m *Masker, raw string, most int) string {
	kept, _ := m.payload([]byte(raw), m.find([]byte(raw)), most)
	return kept
}

// TestPayloadsAreMasked masks what is found, what the configuration calls secret
// and what its name does, and nothing else of the JSON.
func TestPayloadsAreMasked(t *testing.T) {
	m := NewMasker([]string{"hunter2-of-config", "with \"quotes\" & <more>", "line one is long\nline two is long", "short"}, isSecretName)
	key := "ghp_" + strings.Repeat("a7Kq", 9)
	for in, want := range map[string]string{
		`{"a":1,"b":["x",true,null,-2.5e3],"c":{}}`:             `{"a":1,"b":["x",true,null,-2.5e3],"c":{}}`,
		`{"text":"use ` + key + ` now"}`:                        `{"text":"use *** now"}`,
		`{"` + key + `":1}`:                                     `{"***":1}`,
		`{"n": 4111111111111111, "m":2}`:                        `{"n": "***", "m":2}`,
		`{"password":"x"}`:                                      `{"password":"***"}`,
		`{"password" : "a\"b", "next":"c"}`:                     `{"password" : "***", "next":"c"}`,
		`{"password":""}`:                                       `{"password":""}`,
		`{"password":12345,"token":true,"secret":null}`:         `{"password":"***","token":true,"secret":null}`,
		`{"max_tokens":4096,"total_tokens":12345}`:              `{"max_tokens":4096,"total_tokens":12345}`,
		`{"secrets":{"a":"x","b":["y",12345]},"c":"z"}`:         `{"secrets":{"a":"***","b":["***","***"]},"c":"z"}`,
		`[{"secrets":[]},{"c":"z"}]`:                            `[{"secrets":[]},{"c":"z"}]`,
		`{"c":"the secret is hunter2-of-config."}`:              `{"c":"the secret is ***."}`,
		`{"c":"a with \"quotes\" & <more> b"}`:                  `{"c":"a *** b"}`,
		`{"c":"a with \"quotes\" \u0026 \u003cmore\u003e b"}`:   `{"c":"a *** b"}`,
		`{"c":"{\"d\":\"with \\\"quotes\\\" & <more>\"}"}`:      `{"c":"{\"d\":\"***\"}"}`,
		`{"c":"?q=with+%22quotes%22+%26+%3Cmore%3E"}`:           `{"c":"?q=***"}`,
		`{"c":"1: line two is long"}`:                           `{"c":"1: ***"}`,
		`{"c":"short"}`:                                         `{"c":"short"}`,
		`{"text":"{\"password\": \"x\", \"user\": \"u\"}"}`:     `{"text":"{\"password\": \"***\", \"user\": \"u\"}"}`,
		`{"text":"export API_KEY=abc; run"}`:                    `{"text":"export API_KEY=***; run"}`,
		`{"text":"Authorization: Basic dXNlcjpwYXNz\nHost: x"}`: `{"text":"Authorization: Basic ***\nHost: x"}`,
		`{"text":"password: hunter2, user: u"}`:                 `{"text":"password: ***, user: u"}`,
		`{"text":"Password: the one that you chose"}`:           `{"text":"Password: the one that you chose"}`,
		`{"text":"token=${TOKEN} stays"}`:                       `{"text":"token=${TOKEN} stays"}`,
		`{"text":"password='a b', x"}`:                          `{"text":"password='***', x"}`,
		`{"k":"` + split("-----BEGIN ", "PRIVATE KEY-----") + `\nMII\n` + split("-----END ", "PRIVATE KEY-----") + `\n","l":1}`: `{"k":"***\n","l":1}`,
		`not JSON with ` + key + ` and "password": "x"`: `not JSON with *** and "password": "***"`,
		`{"cut off":"` + key:                            `{"cut off":"***`,
		"{\"a\":\"\xff\"}":                              "{\"a\":\"\ufffd\"}",
	} {
		got := kept(m, in, 4096)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if json.Valid([]byte(in)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is no JSON any more: %s", in, got)
		}
	}
}

// TestPayloadsAreCut keeps as much as there is room for, and says so.
func TestPayloadsAreCut(t *testing.T) {
	var none *Masker
	long := `{"text":"` + strings.Repeat("ä", 500) + `"}`
	for most, want := range map[int]string{
		0: "", -1: "", 9: `{"text":"`, 10: `{"text":"`, 11: `{"text":"ä`,
		100:       long[:99-len("… (cut, 1011 bytes in all)")] + "… (cut, 1011 bytes in all)",
		len(long): long, 5000: long,
	} {
		if got := kept(none, long, most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
	// A secret that ends behind the cut is masked all the same.
	key := "ghp_" + strings.Repeat("a7Kq", 9)
	for lead := range 120 {
		raw := `{"text":"` + strings.Repeat(".", lead) + " " + key + strings.Repeat(" more", 100) + `"}`
		if got := kept(none, raw, 100); strings.Contains(got, "ghp") || len(got) > 100 {
			t.Errorf("%d: %s", lead, got)
		}
	}
}

// TestTexts masks short texts, and leaves identifiers.
func TestTexts(t *testing.T) {
	m := NewMasker([]string{"hunter2-of-config"}, isSecretName)
	for in, want := range map[string]string{
		"":                                  "",
		"connect: password=hunter2 refused": "connect: password=*** refused",
		"hunter2-of-config":                 "***",
		"q7Zp2KxW9vT4mLb8Rf3Yc6Hd":          "q7Zp2KxW9vT4mLb8Rf3Yc6Hd",
		"no such tool mcp_agt_" + strings.Repeat("0a", 32): "no such tool ***",
	} {
		if got := m.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestNames leaves the colons of names alone.
func TestNames(t *testing.T) {
	m := NewMasker([]string{"hunter2-of-config"}, isSecretName)
	for in, want := range map[string]string{
		"token:refresh-all-of-them":           "token:refresh-all-of-them",
		"db://host/x?token=abc&a=b":           "db://host/x?token=***&a=b",
		"a hunter2-of-config":                 "a ***",
		"mcp_agt_" + strings.Repeat("0a", 32): "***",
	} {
		if got := m.name(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestRedact masks what is found and keeps what the caller wants to keep.
func TestRedact(t *testing.T) {
	m := NewMasker([]string{"hunter2-of-config"}, isSecretName)
	raw := []byte(`{ "password":"x", "a":"q7Zp2KxW9vT4mLb8Rf3Yc6Hd","b":"hunter2-of-config"}`)
	got := m.Redact(raw, func(kind string) bool { return kind == HighEntropy })
	if want := `{ "password":"x", "a":"q7Zp2KxW9vT4mLb8Rf3Yc6Hd","b":"***"}`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := m.Redact(raw, nil); string(got) != `{ "password":"x", "a":"***","b":"***"}` {
		t.Errorf("%s", got)
	}
	clean := []byte(`{"a":1}`)
	if got := m.Redact(clean, nil); &got[0] != &clean[0] {
		t.Error("what holds nothing is copied")
	}
}

// FuzzPayload holds for any bytes that what is kept is short enough, valid
// UTF-8, JSON where it was JSON and whole, and without the secrets.
func FuzzPayload(f *testing.F) {
	token := "mcp_agt_" + strings.Repeat("0a", 32)
	f.Add([]byte(`{"password":"x","text":"Bearer `+token+`"}`), 40)
	f.Add([]byte(`{"a":"\u0000hunter2-of-config","b":[1,{"secrets":["x"]}]}`), 1000)
	f.Add([]byte(`"\\`), 5)
	f.Add([]byte(`{"text":"password=\"hunter2-of-config`), 30)
	f.Add([]byte(`-----BEGIN PRIVATE KEY "}`), 100)
	m := NewMasker([]string{"hunter2-of-config"}, isSecretName)
	f.Fuzz(func(t *testing.T, raw []byte, most int) {
		most %= 10_000
		got := kept(m, string(raw), most)
		if len(got) > max(0, most) || !utf8.ValidString(got) {
			t.Fatalf("%d bytes of %d: %q", len(got), most, got)
		}
		if strings.Contains(got, "hunter2-of-config") || strings.Contains(got, token[:20]) {
			t.Fatalf("a secret is left: %q", got)
		}
		if utf8.Valid(raw) && json.Valid(raw) {
			whole := kept(m, string(raw), 3*len(raw)+10)
			if !json.Valid([]byte(whole)) {
				t.Fatalf("%s is no JSON any more: %s", raw, whole)
			}
			if redacted := m.Redact(raw, nil); !json.Valid(redacted) || bytes.Contains(redacted, []byte("hunter2-of-config")) {
				t.Fatalf("%s is redacted to %s", raw, redacted)
			}
		}
	})
}
