package activity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// kindsIn are the kinds found in a text, with their counts.
func kindsIn(text string) string {
	var list []string
	for _, f := range Scan([]byte(text)) {
		kind := f.Kind
		if f.Count > 1 {
			kind += fmt.Sprintf("*%d", f.Count)
		}
		list = append(list, kind)
	}
	return strings.Join(list, " ")
}

// sample is a key of that form.
func (f form) sample() string {
	alphabet := "0a1b2c3d4e5f"
	switch {
	case f.class == digit|upper:
		alphabet = "2Q3W4E5R6T7Y"
	case f.class&upper != 0:
		alphabet = "a7Kq2ZpX9bT4mW"
	}
	return f.prefix + strings.Repeat(alphabet, f.min/len(alphabet)+1)[:f.min]
}

// TestFormsAreFound finds every form where keys turn up: by itself, in JSON, in
// JSON inside of JSON, behind an escape, in an assignment, at the end of a
// sentence.
func TestFormsAreFound(t *testing.T) {
	for _, f := range forms {
		key := f.sample()
		once, err := json.Marshal(map[string]string{"text": "first line\n" + key + "\tand more"})
		if err != nil {
			t.Fatal(err)
		}
		twice, err := json.Marshal(map[string]string{"text": string(once)})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{key, string(once), string(twice), "export X=" + key, "use " + key + ".", "(" + key + ")", "https://h/?k=" + key} {
			if got := kindsIn(text); got != f.kind {
				t.Errorf("%s in %q: found %q, want %q", f.prefix, text, got, f.kind)
			}
		}
		// Part of a longer word it is none. A token of this program is one anywhere.
		if got := kindsIn("x" + key); got == f.kind && f.kind != "mcpproxy_token" {
			t.Errorf("%s is found in x%s", f.prefix, key)
		}
	}
}

// split keeps keys of this file from looking like keys to those who scan it.
func split(parts ...string) string { return strings.Join(parts, "") }

// TestFound finds what has no prefix, or more than a prefix.
func TestFound(t *testing.T) {
	pem := split("-----BEGIN ", "RSA PRIVATE KEY-----") + `\nMIIEowIBAAKCAQEAn2Q8\nAbCd\n` + split("-----END ", "RSA PRIVATE KEY-----")
	random := "q7Zp2KxW9vT4mLb8Rf3Yc6Hd"
	for text, want := range map[string]string{
		`{"k":"` + pem + `\n"}`:    "private_key",
		`{"k":"` + pem[:60] + `"}`: "private_key",
		split("-----BEGIN ", "PGP PRIVATE KEY BLOCK-----") + "\nlQdG\n":                             "private_key",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----":                                "",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U":      "jwt",
		"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.":                                                  "jwt",
		`{"nextCursor":"eyJwYWdlIjoyLCJsYXN0IjoiYWJjMTIzIn0"}`:                                      "",
		"Authorization: Bearer " + random:                                                           "bearer_token",
		"authorization: bearer 0123456789abcdef0123":                                                "bearer_token",
		"Authorization: Bearer ghp_" + strings.Repeat("a7Kq", 9):                                    "github_token",
		"the bearer authentication_is_required_here":                                                "",
		"postgres://app:hunter2@db.example:5432/x":                                                  "url_password",
		"https://user@example.com/ and https://example.com:8080/a@b":                                "",
		"postgres://app:${PASSWORD}@db":                                                             "",
		"DefaultEndpointsProtocol=https;AccountKey=" + strings.Repeat("aB3+", 21) + "aB==;":         "azure_storage_key",
		"AZURE_SECRET=abc8Q~" + strings.Repeat("aB3.", 8) + "aB":                                    "azure_client_secret",
		"https://hooks.slack.com/services/" + "T0123ABCD/B0123ABCD/" + "abcdefghijklmnopqrstuvwx":   "slack_webhook",
		"https://api.telegram.org/bot123456789:AA" + "q7Zp2KxW9vT4mLb8Rf3Yc6Hd0-_q7Zp2K" + "/getMe": "telegram_token",
		"x_mcp_agt_0123456789abcdef":                                                                "mcpproxy_token",
		"mcp_agt_":                                                                                  "",
		random:                                                                                      "high_entropy",
		`{"a":"` + random + `","b":"` + random + `x1"}`:                                             "high_entropy*2",
		"aws_secret=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzXbQ9TkEqw":                                       "high_entropy",
		"https://api.example/v1/hook/" + random + "/run":                                            "high_entropy",
		split("AK", "IAIOSFODNN7EXAMPLE"):                                                           "",
		"ghp_" + strings.Repeat("x", 36):                                                            "",

		// What is no secret.
		"550e8400-e29b-41d4-a716-446655440000":                                    "",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709":                                "",
		"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855":        "",
		"sha512-q7Zp2KxW9vT4mLb8Rf3Yc6Hdq7Zp2KxW9vT4mLb8Rf3Yc6Hd==":               "",
		"golang.org/x/net v0.1.0 h1:q7Zp2KxW9vT4mLb8Rf3Yc6Hdq7Zp2KxW9vT4mLb8Rf3=": "",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf":          "",
		`{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf"}`:      "",
		"src/Components/UserProfile2/EditFormV3.tsx":                              "",
		"getUserProfileByIdAndVersion2WithOptions":                                "",
		"2026-03-01T12:00:00.000000Z":                                             "",
		"https://example.com/a/very/long/path/with/Many/Words?page=12&x=1":        "",
	} {
		if got := kindsIn(text); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

// TestBlocksOfBase64 holds lines of base64 for data, however they are broken.
func TestBlocksOfBase64(t *testing.T) {
	line := "q7Zp2KxW9vT4mLb8Rf3Yc6Hdq7Zp2KxW9vT4mLb8Rf3+c6/dq7Zp2KxW9vT4mLb8"
	for _, text := range []string{
		strings.Repeat(line+"\n", 5), strings.Repeat(line+"\r\n", 5), strings.Repeat(line+`\n`, 5), strings.Repeat(line+`\\n`, 5),
		strings.Repeat(line, 40), line + "\n" + line[:30] + "==",
	} {
		if got := kindsIn(text); got != "" {
			t.Errorf("%.80q: found %q", text, got)
		}
	}
}

// TestCards finds card numbers and nothing like them.
func TestCards(t *testing.T) {
	for text, want := range map[string]string{
		"4111111111111111":                  "card_number",
		"card 4111 1111 1111 1111, please":  "card_number",
		"4111-1111-1111-1111.":              "card_number",
		"4111 1111 1111 1111 12/27":         "card_number",
		`{"number":5555555555554444}`:       "card_number",
		`{"number":"378282246310005"}`:      "card_number",
		"3782 822463 10005":                 "card_number",
		"30569309025904 6011111111111117":   "card_number*2",
		`"\n4111111111111111"`:              "card_number",
		"n=4111111111111111&m=2":            "card_number",
		"2223003122003222":                  "card_number",
		"4111111111111112":                  "", // checksum
		"4444444444444444":                  "", // a stand-in
		"41111111111111111111":              "", // longer
		"94111111111111111":                 "",
		"4111 1111 1111 1111 1111":          "",
		"1234 4111 1111 1111 1111":          "",
		"4111 11 11 1111 1111 11":           "", // no groups of a card
		"4111-1111 1111-1111":               "",
		"0.4111111111111111":                "",
		"4111111111111111.25":               "",
		"a4111111111111111":                 "",
		"4111111111111111a":                 "",
		"9111111111111111":                  "", // nobody's
		"1700000000000000000 1751500800000": "", // times
		`{"user_id":4111111111111111}`:      "",
		`{"userId": "4111111111111111"}`:    "",
		"00000000-4111-1111-1111-111111111": "",
	} {
		if got := kindsIn(text); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

// TestScanLimit looks no further than it says.
func TestScanLimit(t *testing.T) {
	text := strings.Repeat("word ", ScanLimit/5) + " 4111111111111111"
	if got := kindsIn(text); got != "" {
		t.Errorf("found %q behind the limit", got)
	}
	if got := kindsIn(text[100:]); got != "card_number" {
		t.Errorf("found %q before the limit", got)
	}
}

// FuzzScan holds for any bytes that what is found has a place in them, in order
// and apart.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"", "4111 1111 1111 1111", `"\nghp_` + strings.Repeat("a7Kq", 9) + `"`, "AAeyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.",
		"://a:bcd@", "Bearer 0123456789abcdef0123", "-----BEGIN PRIVATE KEY", "1234567890:AA", `\u`, "mcp_agt_0123456789",
		"AccountKey=", "abc8Q~", "hooks.slack.com/services/", "q7Zp2KxW9vT4mLb8Rf3Yc6Hd\nq7Zp2KxW9vT4mLb8Rf3Yc6Hd",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end := 0
		for _, s := range find(b) {
			if s.start < end || s.end <= s.start || s.end > len(b) || s.kind == "" {
				t.Fatalf("%+v in %d bytes, behind %d", s, len(b), end)
			}
			end = s.end
		}
	})
}

// TestRandomIsFound holds the measure of what looks random against what is.
func TestRandomIsFound(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	source := rand.New(rand.NewPCG(1, 2))
	for _, length := range []int{24, 32, 40, 64, 100} {
		found := 0
		for range 1000 {
			text := make([]byte, length)
			for i := range text {
				text[i] = alphabet[source.IntN(len(alphabet))]
			}
			if looksRandom(text) {
				found++
			}
		}
		if found < 800 || length >= 40 && found < 900 {
			t.Errorf("of 1000 random texts of %d characters %d look random", length, found)
		}
		t.Logf("%d characters: %d", length, found)
	}
}
