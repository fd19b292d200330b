package cli

import (
	"strings"
	"testing"
)

// marked is a diff with marks.
func marked(list []segment) string {
	var b strings.Builder
	for _, s := range list {
		switch s.Op {
		case went:
			b.WriteString("[-" + s.Text + "-]")
		case came:
			b.WriteString("{+" + s.Text + "+}")
		default:
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func TestTextDiff(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"", "", ""},
		{"same", "same", "same"},
		{"", "new", "{+new+}"},
		{"old", "", "[-old-]"},
		{"reads a note", "reads every note", "reads [-a-]{+every+} note"},
		{"reads a note", "reads a note and sends it", "reads a note{+ and sends it+}"},
		{"one two three four", "one 2 3 four", "one [-two three-]{+2 3+} four"},
		{"limit_1", "limit_2", "[-limit_1-]{+limit_2+}"},
		{`{"maximum": 10}`, `{"maximum": 100}`, `{"maximum": [-10-]{+100+}}`},
		{"ab", "a\u200bb", "[-ab-]{+a\u200bb+}"},
		{"a b", "a\u00a0b", "a[- -]{+\u00a0+}b"},
		{"ein Tür", "eine Tür", "[-ein-]{+eine+} Tür"},
		{"x\xff", "x\xfe", "x[-\xff-]{+\xfe+}"},
		{"a\nb\n", "a\nc\n", "a\n[-b-]{+c+}\n"},
		{"a: {\n  x\n}\n", "a: {\n  x\n},\nb: {\n  x\n}\n", "a: {\n  x\n{+},\nb: {\n  x\n+}}\n"},
	} {
		if got := marked(textDiff(test.before, test.after)); got != test.want {
			t.Errorf("%q to %q: %q, want %q", test.before, test.after, got, test.want)
		}
	}
	words := func(n, from int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("w")
			for k := from + i; k > 0; k /= 26 {
				b.WriteByte(byte('a' + k%26))
			}
			b.WriteByte(' ')
		}
		return b.String()
	}
	// More words than characters up to the gap.
	before, after := words(60_000, 0), words(60_000, 100)
	checkDiff(t, before, after)
}

func checkDiff(t *testing.T, before, after string) {
	t.Helper()
	var old, now strings.Builder
	for _, s := range textDiff(before, after) {
		if s.Op != came {
			old.WriteString(s.Text)
		}
		if s.Op != went {
			now.WriteString(s.Text)
		}
		if s.Text == "" {
			t.Error("an empty segment")
		}
	}
	if old.String() != before || now.String() != after {
		t.Errorf("the diff of %.100q and %.100q is of %.100q and %.100q", before, after, old.String(), now.String())
	}
}

// FuzzTextDiff checks that no diff loses or makes up anything.
func FuzzTextDiff(f *testing.F) {
	f.Add("reads a note", "reads every note\u200b")
	f.Add("a b c d", "d c b a")
	f.Add("\xff\x00 \U0001f600 x", "x \ufffd")
	f.Fuzz(checkDiff)
}

func TestReveal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünïcode, 日本語, 😀":                     "plain, ünïcode, 日本語, 😀",
		"\x1b[31mred\x07":                            `\x1b[31mred\x07`,
		"a\u200bb\u200cc\u200dd\u2060e\ufefff":       `a\u200bb\u200cc\u200dd\u2060e\ufefff`,
		"\u202egnp.exe\u2066":                        `\u202egnp.exe\u2066`,
		"tag\U000e0041\U000e007f\U000e0101":          `tag\U000e0041\U000e007f\U000e0101`,
		"blank\u00a0\u2003\u3000\u2800\u3164\u115f.": `blank\u00a0\u2003\u3000\u2800\u3164\u115f.`,
		"❤\ufe0f\u034f\ue000":                        `❤\ufe0f\u034f\ue000`,
		"line\nand\ttab\rand\u2028":                  `line\nand\ttab\rand\u2028`,
		"bad \xff":                                   `bad \xff`,
	} {
		if got := reveal(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := revealText("a\n\tb\u200b\r"); got != "a\n\tb"+`\u200b\r` {
		t.Errorf("%q", got)
	}
}
