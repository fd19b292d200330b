package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"mcpproxy/index"
)

// table collects rows and prints them for a person or for a program: aligned
// under a header and cut to the terminal's width, or tab-separated and whole.
type table struct {
	a       *app
	headers []string
	rows    [][]cell
}

// cell is one field of a table, either a text or a time.
type cell struct {
	text  string
	aside string   // what a person is told in brackets
	more  []string // the same for a program: further columns
	at    time.Time
	tint  tint
	// asked is a search: the words of the text that it asks for are marked.
	asked string
}

// tint is how a field stands out where colours are shown. It repeats what the
// word in the field says.
type tint int

const (
	plain tint = iota
	heading
	good
	odd
	bad
)

// txt is a field of text, which may come from a server.
func txt(s string) cell { return cell{text: s} }

// num is a field with a count.
func num(n int) cell { return cell{text: fmt.Sprint(n)} }

// when is a field with a time; the zero time is an empty field.
func when(t time.Time) cell { return cell{at: t} }

// newTable returns an empty table. The headers are shown to a person only.
func (a *app) newTable(headers ...string) *table {
	return &table{a: a, headers: headers}
}

// row adds one row; it has as many fields as there are headers.
func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// print writes the table to stdout.
func (t *table) print() error {
	if t.a.IsTerminal(Stdout) {
		return t.a.print(t.forPerson())
	}
	return t.a.print(t.forProgram())
}

// forProgram is the table with tabs, without a header, with whole values.
func (t *table) forProgram() string {
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(c.whole())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// forPerson is the table as a terminal shows it, without the columns that are
// empty in every row.
func (t *table) forPerson() string {
	if len(t.rows) == 0 {
		return ""
	}
	lines := make([][]cell, 1+len(t.rows))
	for i, header := range t.headers {
		if !slices.ContainsFunc(t.rows, func(row []cell) bool { return !row[i].empty() }) {
			continue
		}
		lines[0] = append(lines[0], cell{text: header, tint: heading})
		for n, row := range t.rows {
			lines[n+1] = append(lines[n+1], cell{text: row[i].short(t.a.Now()), tint: row[i].tint, asked: row[i].asked})
		}
	}
	widths := fit(lines, t.a.columns())
	looks := t.looks()
	var b strings.Builder
	for _, line := range lines {
		last := len(line) - 1
		for last > 0 && line[last].text == "" {
			last--
		}
		for i, c := range line[:last+1] {
			text := cut(c.text, widths[i])
			b.WriteString(c.shown(text, looks[c.tint]))
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(text)+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// shown is the text of a field, as far as there is room for it.
func (c cell) shown(text string, look lipgloss.Style) string {
	if c.asked == "" {
		return look.Render(text)
	}
	var b strings.Builder
	from := 0
	plainly := func(part string) {
		if part != "" { // the style would make something of nothing
			b.WriteString(look.Render(part))
		}
	}
	for _, span := range index.Spans(c.asked, text) {
		plainly(text[from:span.Start])
		b.WriteString(look.Bold(true).Render(text[span.Start:span.End]))
		from = span.End
	}
	plainly(text[from:])
	return b.String()
}

// short is a field as a person reads it.
func (c cell) short(now time.Time) string {
	text := clean(c.text)
	if !c.at.IsZero() {
		text = ago(c.at, now)
	}
	if c.aside != "" {
		text += " (" + c.aside + ")"
	}
	return text
}

// looks are how fields of each tint are shown; without colours all are alike.
func (t *table) looks() map[tint]lipgloss.Style {
	r := lipgloss.NewRenderer(t.a.Stdout)
	r.SetColorProfile(termenv.Ascii)
	if t.a.styled(Stdout) {
		r.SetColorProfile(termenv.ANSI)
	}
	coloured := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return map[tint]lipgloss.Style{
		plain:   r.NewStyle(),
		heading: r.NewStyle().Bold(true),
		good:    coloured("2"),
		odd:     coloured("3"),
		bad:     coloured("1"),
	}
}

// columns is the width of the terminal behind stdout; 80 where nobody knows.
func (a *app) columns() int {
	if n := a.Columns(); n > 0 {
		return n
	}
	return 80
}

// fit returns the widths of the columns so that a line, with two blanks between
// columns, is no wider than total. The widest columns give first; none gets
// narrower than eight.
func fit(lines [][]cell, total int) []int {
	widths := make([]int, len(lines[0]))
	sum := 2 * (len(widths) - 1)
	for i := range widths {
		for _, line := range lines {
			widths[i] = max(widths[i], lipgloss.Width(line[i].text))
		}
		sum += widths[i]
	}
	for ; sum > total; sum-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 8 {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut shortens a text to a width in terminal cells and marks that it did.
func cut(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := lipgloss.Width(string(r))
		if used+w > width-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + "…"
}

// ago says how long before now a time was, in its largest unit.
func ago(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < 0:
		return "in the future"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	}
	return fmt.Sprintf("%dd ago", d/(24*time.Hour))
}
