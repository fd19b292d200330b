package cli

import (
	"fmt"
	"strings"
	"time"
)

// field is one line of an answer about one thing.
type field struct {
	key   string
	value cell
}

// printFields writes fields to stdout, without those that are empty: aligned
// for a person, "key<TAB>value" for a program.
func (a *app) printFields(fields []field) error {
	width := 0
	for _, f := range fields {
		if !f.value.empty() {
			width = max(width, len(f.key))
		}
	}
	person := a.IsTerminal(Stdout)
	var b strings.Builder
	for _, f := range fields {
		switch {
		case f.value.empty():
		case person:
			fmt.Fprintf(&b, "%-*s  %s\n", width, f.key, f.value.short(a.Now()))
		default:
			b.WriteString(f.key + "\t" + f.value.whole() + "\n")
		}
	}
	return a.print(b.String())
}

// empty reports whether there is nothing in a field.
func (c cell) empty() bool { return c.text == "" && c.at.IsZero() }

// whole is the value as a program reads it.
func (c cell) whole() string {
	if !c.at.IsZero() {
		return c.at.UTC().Format(time.RFC3339)
	}
	columns := []string{clean(c.text)}
	for _, text := range c.more {
		columns = append(columns, clean(text))
	}
	return strings.Join(columns, "\t")
}
