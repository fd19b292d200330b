package router

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/mcp/wire"
)

const (
	// deepest is how many members may lie between a text and its records, and how
	// many of them may be strings that hold JSON again.
	deepest = 4
	// fewestRecords is the number of elements below which an array is no list.
	fewestRecords = 2
)

// records are the elements of an array that stands somewhere in a text.
type records struct {
	array []byte // as JSON, in a text of its own where it stands in a string
	count int
	path  string // the members that lead to it, "" for the text itself
	// within are the strings that it stands in, the outermost first, and at where it
	// is in the innermost.
	within []jsonString
	at     int
}

// jsonString is a JSON string in a text that holds JSON again.
type jsonString struct {
	raw []byte // with its quotes
	at  int    // of raw in the text around it
}

// findRecords returns the longest array in text, nil where there is none or where
// more than rest bytes of the text stand outside of it.
func findRecords(text []byte, rest int) *records {
	s := recordSearch{least: len(text) - rest}
	s.text(text, len(text), recordRoute{depth: deepest})
	return s.found
}

// recordSearch looks for the longest array of at least so many bytes.
type recordSearch struct {
	least int
	found *records
	size  int // of what was found, in the outermost text
}

// recordPlace is a value in a text.
type recordPlace struct {
	value []byte
	at    int // in the innermost text
	size  int // in the outermost text, at most
}

// recordRoute is how a place was come to.
type recordRoute struct {
	path   string
	within []jsonString
	depth  int // that is left
}

// text searches a text that may be JSON and takes so many bytes in the outermost.
func (s *recordSearch) text(text []byte, size int, by recordRoute) {
	value := bytes.TrimRight(text, " \t\r\n")
	at := blank(value, 0)
	if at == len(value) || !bytes.ContainsAny(value[at:at+1], `[{"`) || !wire.Valid(value[at:]) {
		return
	}
	s.value(recordPlace{value[at:], at, size}, by)
}

func (s *recordSearch) value(p recordPlace, by recordRoute) {
	if p.size < max(s.least, s.size+1) {
		return
	}
	switch p.value[0] {
	case '[':
		count := 0
		for range wire.Elements(p.value) {
			count++
		}
		if count >= fewestRecords {
			s.found, s.size = &records{p.value, count, by.path, slices.Clone(by.within), p.at}, p.size
		}
	case '"':
		if len(by.within) < deepest {
			by.within = append(by.within, jsonString{p.value, p.at})
			s.text(textOf(p.value), p.size, by)
		}
	case '{':
		if by.depth > 0 {
			s.members(p, by)
		}
	}
}

// members searches the members of an object that are long enough.
func (s *recordSearch) members(p recordPlace, by recordRoute) {
	i := 1
	for name, value := range wire.Members(p.value) {
		i = endOfString(p.value, blank(p.value, i))
		i = blank(p.value, blank(p.value, i)+len(`:`))
		// What stands beside it takes at least as much in the outermost text.
		size := p.size - (len(p.value) - len(value))
		s.value(recordPlace{value, p.at + i, size}, recordRoute{joined(by.path, name), by.within, by.depth - 1})
		i = blank(p.value, i+len(value)) + len(`,`)
	}
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// blank is the offset of what comes after white space.
func blank(b []byte, i int) int {
	for i < len(b) && strings.IndexByte(" \t\r\n", b[i]) >= 0 {
		i++
	}
	return i
}

// endOfString is the offset behind the string at i, of valid JSON.
func endOfString(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// ends are offsets in the outermost text: where the elements begin, behind each of
// the first that end before most bytes of the array, and at last the one of the
// bracket behind all of them.
func (r *records) ends(most int) []int {
	list := []int{r.at + 1}
	i := 1
	for element := range wire.Elements(r.array) {
		end := blank(r.array, i) + len(element)
		if end >= most {
			break
		}
		list = append(list, r.at+end)
		i = blank(r.array, end) + len(`,`)
	}
	list = append(list, r.at+len(r.array)-1)
	for _, s := range slices.Backward(r.within) {
		list = s.outside(list)
	}
	return list
}

// outside turns rising offsets in the text of the string into those in the text
// around it.
func (s jsonString) outside(offsets []int) []int {
	list := make([]int, 0, len(offsets))
	at := 0 // in the text of the string
	var one [utf8.UTFMax]byte
	for i := 1; ; {
		for len(list) < len(offsets) && offsets[len(list)] <= at {
			list = append(list, s.at+i)
		}
		if len(list) == len(offsets) || i >= len(s.raw)-1 {
			return list
		}
		if s.raw[i] != '\\' {
			i, at = i+1, at+1
			continue
		}
		r, n := unescape(s.raw[i:])
		i, at = i+n, at+len(appendRune(one[:0], r))
	}
}
