package index

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
)

// conversation are words of requests that say nothing of what is wanted.
const conversation = "please help want need like would could can me my i you your give let know tell just also " +
	"some any using use provide make sure thanks thank hello hi hey currently looking trying able im id ive dont"

// polite are words that more often belong to the asking than to what is asked
// for: wishes, and when it is to be.
const polite = "need needs needed want wants wanted wish hope love help helps helping kindly suggest suggestion suggestions recommend recommendation recommendations " +
	"advise advice tell know wonder wondering curious trying try interested looking planning going " +
	"since ago yesterday today tomorrow tonight soon currently again " +
	"something anything someone anyone everything thing things really actually maybe perhaps possible possibly"

// maxWord is the length of a word in bytes from which on it is none: a key, a
// picture, an attack.
const maxWord = 64

// word is a run of letters and digits of a text, in small letters.
type word struct {
	text       string
	start, end int // bytes of the text
}

// split cuts a text into words: at everything that is no letter or digit, where
// a capital follows a small letter, and before the last capital of a run that a
// small letter follows. A CJK character is a word. An apostrophe between
// letters is no end: 's is dropped, others join (don't, dont).
func split(text string) []word {
	var words []word
	var b strings.Builder
	start := 0
	end := func(at int) {
		if b.Len() > 0 {
			if b.Len() <= maxWord {
				words = append(words, word{b.String(), start, at})
			}
			b.Reset()
		}
	}
	var before rune // the rune before in the same word, 0 at its start
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case cjk(r):
			end(i)
			words = append(words, word{string(r), i, i + size})
			before = 0
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && before != 0:
			if unicode.IsUpper(r) && before != 0 &&
				(unicode.IsLower(before) || unicode.IsUpper(before) && unicode.IsLower(next)) {
				end(i)
			}
			if b.Len() == 0 {
				start = i
			}
			b.WriteRune(unicode.ToLower(r))
			before = r
		case (r == '\'' || r == '’') && before != 0 && unicode.IsLetter(next):
			if possessive(text[i+size:]) {
				end(i)
				before, size = 0, size+1
			}
		default:
			end(i)
			before = 0
		}
		i += size
	}
	end(len(text))
	return words
}

// possessive reports whether a text begins with the s of a possessive.
func possessive(rest string) bool {
	if rest[0] != 's' && rest[0] != 'S' {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest[1:])
	return !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

func cjk(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// stopWords are the English ones of bleve and those of conversation, without
// apostrophes as in the words of split.
var stopWords = sync.OnceValue(func() analysis.TokenMap {
	words := analysis.NewTokenMap()
	plain := strings.NewReplacer("'s", "", "'", "").Replace(string(en.EnglishStopWords))
	if err := words.LoadBytes([]byte(plain)); err != nil {
		panic("the stop words of bleve are no list: " + err.Error())
	}
	for _, w := range strings.Fields(conversation) {
		words.AddToken(w)
	}
	return words
})

var politeWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(polite) {
		words[w] = true
	}
	return words
})

// stemmer brings the forms of a word together. It remembers what it was asked,
// and is not to be used from several goroutines.
type stemmer struct {
	stop   analysis.TokenMap
	filter analysis.TokenFilter
	known  map[string]string
}

func newStemmer() *stemmer {
	return &stemmer{stopWords(), en.NewEnglishStemmerFilter(), map[string]string{}}
}

// stem is the common form of the forms of a word.
func (s *stemmer) stem(word string) string {
	if stem, ok := s.known[word]; ok {
		return stem
	}
	token := &analysis.Token{Term: []byte(word)}
	stem := string(s.filter.Filter(analysis.TokenStream{token})[0].Term)
	// The stemmer has verifi for verify and verif for verification.
	if len(stem) > 5 && strings.HasSuffix(stem, "ifi") {
		stem = stem[:len(stem)-1]
	}
	s.known[word] = stem
	return stem
}

// terms are the stems of the words of a text that say something, in order.
func (s *stemmer) terms(text string) []string {
	var terms []string
	for _, w := range split(text) {
		if !s.stop[w.text] {
			terms = append(terms, s.stem(w.text))
		}
	}
	return terms
}

// key is a text by its letters and digits alone, in small letters: names that
// differ in their style only have one key.
func key(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
