package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// measureSearch takes the time of tools search in a fresh process over the tools of
// a stored upstream: with the folder of the index there, and with the folder to be
// made. The base is a program that links the same and ends at once.
func measureSearch(ctx context.Context, b *bench) error {
	if b.product == "" {
		return nil // no yardstick searches
	}
	linked, err := b.yardstick(ctx, "linked")
	if err != nil {
		return err
	}
	// Below some hundreds there is no folder.
	t, err := b.stored(ctx, max(b.size.tools, 400))
	if err != nil {
		return err
	}
	options := t.argv[1:5]
	folder := filepath.Join(options[3], "index")
	search := func() (time.Duration, error) {
		return b.command(ctx, append([]string{"tools", "search", "--limit", "5", "search part 7 for an exact phrase"}, options...), "tool_0007")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.rounds*b.size.queries*3+3)*queryLimit)
	defer cancel()
	var took series
	for range b.rounds {
		times := map[string][]float64{}
		for range b.size.queries {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
			for _, step := range []struct {
				name string
				run  func() (time.Duration, error)
			}{
				{"linked", func() (time.Duration, error) { return endsAtOnce(ctx, linked) }},
				{product + ", folder made", search},
				{product, search},
			} {
				one, err := step.run()
				if err != nil {
					return err
				}
				times[step.name] = append(times[step.name], milliseconds(one))
			}
			if _, err := os.Stat(folder); err != nil {
				return fmt.Errorf("the index has no folder: %w", err)
			}
		}
		for name, list := range times {
			took.add(name, percentile(list, 0.50))
		}
	}
	name := fmt.Sprintf("tools search in a fresh process, %d tools, p50", max(b.size.tools, 400))
	b.report.add(figure{Name: name, Unit: "ms", Base: "linked", Goal: 4, Of: []string{product}}, &took)
	return nil
}

// endsAtOnce is how long a program takes that is called wrongly.
func endsAtOnce(ctx context.Context, path string) (time.Duration, error) {
	began := time.Now()
	err := exec.CommandContext(ctx, path, "x").Run()
	took := time.Since(began)
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		return 0, fmt.Errorf("%s x: %w", path, err)
	}
	return took, nil
}
