package router

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSentence is the length of a first sentence in characters.
const maxSentence = 120

// abbreviations are words whose full stop ends no sentence.
var abbreviations = []string{"e.g", "i.e", "vs", "cf", "ca", "approx", "incl", "max", "min", "fig", "no", "mr", "mrs", "dr", "st"}

// firstSentence is the first sentence of a description in one line: up to its
// full stop, an empty line, or a line that does not go on with a small letter.
// What is longer than 120 characters ends in "…".
func firstSentence(description string) string {
	text := strings.TrimFunc(strings.ToValidUTF8(description, "\uFFFD"), spacing)
	end := len(text)
	for i, r := range text {
		if endsSentence(text, i, r) {
			end = i + utf8.RuneLen(r)
			break
		}
	}
	sentence := strings.Join(strings.FieldsFunc(text[:end], spacing), " ")
	if utf8.RuneCountInString(sentence) <= maxSentence {
		return sentence
	}
	runes := []rune(sentence)[:maxSentence-1]
	// A word is left whole where one ends nearby.
	if space := strings.LastIndexByte(string(runes[maxSentence*3/4:]), ' '); space >= 0 {
		short := string(runes[:maxSentence*3/4]) + string(runes[maxSentence*3/4:])[:space]
		return strings.TrimRightFunc(short, unicode.IsSpace) + "…"
	}
	return string(runes) + "…"
}

// spacing reports whether a character separates words; control characters must not
// reach a terminal.
func spacing(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// endsSentence reports whether the character at i is the last of a sentence.
func endsSentence(text string, i int, r rune) bool {
	after := text[i+utf8.RuneLen(r):]
	switch r {
	case '。', '！', '？':
		return true
	case '.', '!', '?':
		next, _ := utf8.DecodeRuneInString(after)
		return (after == "" || unicode.IsSpace(next)) && (r != '.' || !abbreviated(text[:i], after))
	case '\n':
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " \t\r"))
		return !unicode.IsLower(next)
	}
	return false
}

// abbreviated reports whether the full stop between two texts belongs to a word
// or to the number of a list.
func abbreviated(before, after string) bool {
	start := strings.LastIndexFunc(before, unicode.IsSpace) + 1
	word := strings.ToLower(strings.TrimLeft(before[start:], "([\"'*_`"))
	if strings.Trim(word, "0123456789") == "" {
		return start == 0
	}
	if word == "etc" {
		next, _ := utf8.DecodeRuneInString(strings.TrimSpace(after))
		return unicode.IsLower(next)
	}
	return slices.Contains(abbreviations, word)
}
