package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report prints all figures and reports whether a goal is missed.
func report(out io.Writer, all []figures, queries int) (missed bool) {
	fmt.Fprintln(out, "tokens of cl100k_base; the method stands in testdata/tokens/main.go")
	fmt.Fprintln(out, "\nsurface (tools/list result, instructions besides)")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "catalogue\tmode\ttools listed\tsurface\tinstructions\t")
	for _, f := range all {
		for _, s := range f.surfaces {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t\n", f.set.name, s.mode, s.tools, s.tokens, s.instruction)
		}
		for _, mode := range f.absent {
			fmt.Fprintf(w, "%s\t%s\tabsent\t\t\t\n", f.set.name, mode)
		}
	}
	_ = w.Flush()

	fmt.Fprintf(out, "\nanswers of retrieve_tools to %d queries\n", queries)
	fmt.Fprintln(w, "catalogue\tanswer\tmean\tmedian\tp95\tmax\t")
	for _, f := range all {
		for _, row := range []struct {
			name string
			sample
		}{
			{"full, default limit", f.full}, {"compact, default limit", f.compact}, {"compact, limit 10", f.ten},
			{"its ten entries alone", f.entries}, {"describe_tool, one tool", f.schema},
		} {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t\n", f.set.name, row.name, row.mean(), row.at(.5), row.at(.95), row.at(1))
		}
	}
	_ = w.Flush()

	fmt.Fprintln(out, "\nsession: surface + instructions + n searches of ten compact entries + n schema reads, against direct mode")
	fmt.Fprintln(w, "catalogue\tdirect\tn = 1\t3\t5\t10\tsaved at 5\tbreak-even n\t")
	for _, f := range all {
		direct, menu := f.surface("direct"), f.surface("retrieve_tools")
		step := f.ten.mean() + f.schema.mean()
		base := direct.tokens + direct.instruction
		cost := func(n int) int { return menu.tokens + menu.instruction + n*step }
		even := "never"
		if n := (base - cost(0)) / max(step, 1); n > 0 {
			even = fmt.Sprint(n)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t\n", f.set.name, base,
			cost(1), cost(3), cost(5), cost(10), 100*(1-float64(cost(5))/float64(max(base, 1))), even)
	}
	_ = w.Flush()

	largest := all[len(all)-1]
	fmt.Fprintln(out)
	missed = goal(out, "surface of retrieve_tools", largest.surface("retrieve_tools").tokens, maxSurface)
	return goal(out, "ten compact entries on average", largest.entries.mean(), maxEntries) || missed
}

// goal prints a figure beside its goal and reports whether it is missed.
func goal(out io.Writer, name string, value, most int) (missed bool) {
	verdict := "reached"
	if value > most {
		verdict, missed = "missed", true
	}
	fmt.Fprintf(out, "%s: %d, goal at most %d: %s\n", name, value, most, verdict)
	return missed
}
