package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/mcp/wire"
)

// argumentError says which argument of a built-in tool is wrong and what it may
// be.
type argumentError struct{ text string }

func (e *argumentError) Error() string { return e.text }

func badArgument(format string, args ...any) error {
	return &argumentError{fmt.Sprintf(format, args...)}
}

// arguments are the arguments of a call, each under its exact name.
type arguments map[string]json.RawMessage

// parseArguments takes arguments apart. None are an empty object.
func parseArguments(raw json.RawMessage) (arguments, error) {
	args := arguments{}
	if raw = bytes.TrimSpace(raw); wire.IsNull(raw) {
		return args, nil
	}
	if raw[0] != '{' || !json.Valid(raw) {
		return nil, badArgument("the arguments must be an object")
	}
	for name, value := range wire.Members(raw) {
		if _, twice := args[name]; twice {
			return nil, badArgument("argument %q stands twice", shorten(name))
		}
		args[name] = value
	}
	return args, nil
}

// only refuses arguments that are not among the allowed ones.
func (a arguments) only(allowed ...string) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(allowed, name) {
			if len(allowed) == 0 {
				return badArgument("unknown argument %q: there are none", shorten(name))
			}
			return badArgument("unknown argument %q%s; the arguments are %s", shorten(name), meant(name, allowed), strings.Join(allowed, ", "))
		}
	}
	return nil
}

// has reports whether an argument is there and not null.
func (a arguments) has(name string) bool { return !wire.IsNull(a[name]) }

// text is a text that must be there, and names something.
func (a arguments) text(name string) (string, error) {
	text, err := a.anyText(name)
	if err == nil && strings.ContainsRune(text, 0) {
		return "", badArgument("argument %q holds a NUL character", name)
	}
	return text, err
}

// anyText is a text that must be there, of any characters.
func (a arguments) anyText(name string) (string, error) {
	text, ok := wire.String(a[name])
	switch {
	case !a.has(name):
		return "", badArgument("argument %q is missing", name)
	case !ok:
		return "", badArgument("argument %q must be a string", name)
	}
	return text, nil
}

// oneOf is a text out of a list.
func (a arguments) oneOf(name string, values []string) (string, error) {
	if !a.has(name) {
		return "", badArgument("argument %q is missing; it is one of %s", name, strings.Join(values, ", "))
	}
	text, err := a.text(name)
	if err == nil && !slices.Contains(values, text) {
		err = badArgument("%s %q is none of %s%s", name, shorten(text), strings.Join(values, ", "), meant(text, values))
	}
	return text, err
}

// integer is a whole number in a range, or what stands for a missing one.
func (a arguments) integer(name string, low, high, missing int) (int, error) {
	if !a.has(name) {
		return missing, nil
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(a[name])))
	if err != nil || n < low || n > high {
		return 0, badArgument("argument %q must be a whole number from %d to %d", name, low, high)
	}
	return n, nil
}

// clamped is a whole number that is brought into a range, or what stands for a
// missing one.
func (a arguments) clamped(name string, low, high, missing int) (int, error) {
	if !a.has(name) {
		return missing, nil
	}
	n, err := strconv.ParseFloat(string(bytes.TrimSpace(a[name])), 64)
	if math.IsInf(n, 0) {
		err = nil // a number, if a large one
	}
	if err != nil || n != math.Trunc(n) {
		return 0, badArgument("argument %q must be a whole number from %d to %d", name, low, high)
	}
	return int(max(float64(low), min(float64(high), n))), nil
}

// texts is a list of texts, none where it is missing. One text alone is a list of
// it.
func (a arguments) texts(name string) (list []string, err error) {
	if !a.has(name) {
		return nil, nil
	}
	raw := bytes.TrimSpace(a[name])
	if text, ok := wire.String(raw); ok {
		return []string{text}, nil
	}
	if raw[0] != '[' {
		return nil, badArgument("argument %q must be a list of strings", name)
	}
	for element := range wire.Elements(raw) {
		text, ok := wire.String(element)
		if !ok {
			return nil, badArgument("argument %q must be a list of strings", name)
		}
		list = append(list, text)
	}
	return list, nil
}

// flag is true or false, false where it is missing.
func (a arguments) flag(name string) (bool, error) {
	switch raw := string(bytes.TrimSpace(a[name])); {
	case !a.has(name), raw == "false":
		return false, nil
	case raw == "true":
		return true, nil
	}
	return false, badArgument("argument %q must be true or false", name)
}

// meant is the words that suggest what was meant, or nothing.
func meant(word string, names []string) string {
	if name := nearest(word, names); name != "" {
		return fmt.Sprintf(", did you mean %q?", name)
	}
	return ""
}

// shorten is a text of a client for an error message.
func shorten(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// nearest returns the name that a word is most likely a slip of, "" for none: one
// within a third of its length in edits.
func nearest(word string, names []string) string {
	if len(word) > 200 {
		return ""
	}
	best, distance := "", len(word)
	word = strings.ToLower(word)
	for _, name := range names {
		if len(name) > 200 {
			continue
		}
		most := min(max(1, (len(name)+1)/3), distance-1)
		if d := edits(word, strings.ToLower(name), most); d <= most {
			best, distance = name, d
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b. Above most it stops counting.
func edits(a, b string, most int) int {
	more := most + 1
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return more
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	least := 0 // of the last row
	for i := range len(a) {
		// Further from the diagonal there are more edits than that.
		from, to := max(0, i-most), min(len(b), i+most+1)
		row[from] = more
		if from == 0 {
			row[0] = i + 1
		}
		low := row[from]
		for j := from; j < to; j++ {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			low = min(low, row[j+1])
		}
		if to < len(b) {
			row[to+1] = more
		}
		if min(low, least) > most {
			return more
		}
		least = low
		before, last, row = last, row, before
	}
	return last[len(b)]
}
