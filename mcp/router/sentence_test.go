package router

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFirstSentence(t *testing.T) {
	for _, test := range []struct{ description, want string }{
		{"", ""},
		{" \n\t ", ""},
		{"List issues", "List issues"},
		{"List issues. Then more.", "List issues."},
		{"Is it up? Ask.", "Is it up?"},
		{"Reads v1.2 of file.txt from example.com. More.", "Reads v1.2 of file.txt from example.com."},
		{"Converts units, e.g. metres, i.e. lengths (cf. SI). More.", "Converts units, e.g. metres, i.e. lengths (cf. SI)."},
		{"Files, folders, etc. are listed. More.", "Files, folders, etc. are listed."},
		{"Files, folders, etc. More.", "Files, folders, etc."},
		{"1. Look. 2. Leap.", "1. Look."},
		{"The answer is 42. More.", "The answer is 42."},
		{"Create an issue\n\nArgs:\n  title: x", "Create an issue"},
		{"Create an issue\nArgs:\n  title: x", "Create an issue"},
		{"Create an issue\n- one\n- two", "Create an issue"},
		{"Create an issue\r\n  in a repository\tof yours. More.", "Create an issue in a repository of yours."},
		{"\n\n  Create an issue", "Create an issue"},
		{"使用必应搜索。返回列表。", "使用必应搜索。"},
		{"検索しますか？はい", "検索しますか？"},
		{"red \x1b[31m and \u2028 bell \a", "red [31m and bell"},
		{"not \xff UTF-8. More.", "not \uFFFD UTF-8."},
		{strings.Repeat("word ", 60), strings.TrimSpace(strings.Repeat("word ", 23)) + "…"},
		{strings.Repeat("x", 250), strings.Repeat("x", 119) + "…"},
		{strings.Repeat("字", 250), strings.Repeat("字", 119) + "…"},
		{strings.Repeat("x", 119) + ".", strings.Repeat("x", 119) + "."},
	} {
		if got := firstSentence(test.description); got != test.want {
			t.Errorf("first sentence of %q\n got %q\nwant %q", test.description, got, test.want)
		}
	}
}

func FuzzFirstSentence(f *testing.F) {
	for _, text := range []string{"One. Two.", "etc. x", "。", "1.\n\n2.", "\xff.\x80 ", strings.Repeat("a ", 300)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := firstSentence(text)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxSentence || strings.ContainsFunc(got, notInOneLine) {
			t.Errorf("%q", got)
		}
		if strings.TrimSpace(got) != got || got == "" && strings.ContainsFunc(text, func(r rune) bool { return !spacing(r) }) {
			t.Errorf("%q of %q", got, text)
		}
	})
}
