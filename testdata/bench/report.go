package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
)

// series are the samples of one figure, one per round, of several targets.
type series struct {
	names  []string
	values map[string][]float64
}

// add appends the sample of a round.
func (s *series) add(name string, value float64) {
	if s.values == nil {
		s.values = map[string][]float64{}
	}
	if _, known := s.values[name]; !known {
		s.names = append(s.names, name)
	}
	s.values[name] = append(s.values[name], value)
}

// ratio is the median over the rounds of name's sample divided by base's.
func (s *series) ratio(name, base string) (float64, bool) {
	var ratios []float64
	for i, v := range s.values[name] {
		if i < len(s.values[base]) && s.values[base][i] > 0 {
			ratios = append(ratios, v/s.values[base][i])
		}
	}
	return median(ratios), len(ratios) > 0
}

// median of values, 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if mid := len(sorted) / 2; len(sorted)%2 == 0 {
		return (sorted[mid-1] + sorted[mid]) / 2
	} else {
		return sorted[mid]
	}
}

// percentile p (0 to 1) of values.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// figure is one thing that was measured, and what it should be.
type figure struct {
	Name string
	Unit string
	// Base is the target that ratios are to, "" for none.
	Base string
	// Goal applies to the targets Of: the ratio of each, or without a base the
	// value, is to be at most (AtLeast: at least) this.
	Goal    float64
	Of      []string
	AtLeast bool
}

// row is one line of the table and of the JSON file.
type row struct {
	Figure  string    `json:"figure"`
	Target  string    `json:"target"`
	Unit    string    `json:"unit"`
	Median  float64   `json:"median"`
	Base    string    `json:"base,omitempty"`
	Ratio   float64   `json:"ratio,omitempty"`
	Goal    string    `json:"goal,omitempty"`
	Met     *bool     `json:"met,omitempty"`
	Samples []float64 `json:"samples"`
}

// report prints tables as they are complete and keeps all rows.
type report struct {
	out  io.Writer
	rows []row
}

// begin says under which circumstances the figures are taken.
func (r *report) begin(b *bench) {
	fmt.Fprintf(r.out, "%s/%s, %d processors, %s, rounds: %d, medians\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.rounds)
}

// add prints the table of a figure.
func (r *report) add(f figure, s *series) {
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	heading := ""
	if f.Base != "" {
		heading = "ratio to " + f.Base
	}
	fmt.Fprintf(table, "\n%s\t%s\t%s\tgoal\t\n", f.Name, f.Unit, heading)
	for _, name := range s.names {
		line := row{Figure: f.Name, Target: name, Unit: f.Unit, Median: median(s.values[name]), Samples: s.values[name]}
		ratio, judged := "", line.Median
		if f.Base != "" {
			var known bool
			if line.Ratio, known = s.ratio(name, f.Base); known {
				line.Base, ratio, judged = f.Base, fmt.Sprintf("%.2f", line.Ratio), line.Ratio
			}
		}
		verdict := ""
		if slices.Contains(f.Of, name) {
			sign, met := "<=", judged <= f.Goal
			if f.AtLeast {
				sign, met = ">=", judged >= f.Goal
			}
			line.Goal, line.Met = fmt.Sprintf("%s %g", sign, f.Goal), &met
			if verdict = "met"; !met {
				verdict = "MISSED"
			}
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", name, amount(line.Median), ratio, line.Goal, verdict)
		r.rows = append(r.rows, line)
	}
	table.Flush()
}

// amount prints a value with about three digits.
func amount(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// write puts all rows into a JSON file, if there is to be one.
func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Rows []row `json:"rows"`
	}{r.rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
