package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// soakLimit bounds the soak of one target.
const soakLimit = 10 * time.Minute

// held is what a process holds after very many calls.
type held struct{ rss, threads, files float64 }

// measureSoak makes very many calls in one session, once, and compares memory,
// threads and open files after a tenth of the calls with those after all.
func measureSoak(ctx context.Context, b *bench) error {
	targets, err := b.callTargets(ctx)
	if err != nil {
		return err
	}
	early, late := b.size.soak/10, b.size.soak
	atEarly, atLate := fmt.Sprintf("after %d", early), fmt.Sprintf("after %d", late)
	for _, t := range targets {
		var rss, threads, files series
		err := b.with(ctx, t, soakLimit, func(ctx context.Context, s *session) error {
			if err := s.warm(b.size.warm); err != nil {
				return err
			}
			for _, part := range []struct {
				when  string
				calls int
			}{{atEarly, early}, {atLate, late - early}} {
				h, err := b.soak(ctx, s, part.calls)
				if err != nil {
					return err
				}
				rss.add(part.when, h.rss)
				threads.add(part.when, h.threads)
				files.add(part.when, h.files)
			}
			return nil
		})
		if err != nil {
			return err
		}
		growth := func(what, unit string) figure {
			return figure{Name: "soak of " + t.name + ": " + what, Unit: unit, Base: atEarly}
		}
		memory := growth("RSS", "MB")
		if t.name == product {
			memory.Goal, memory.Of = 1.1, []string{atLate}
		}
		b.report.add(memory, &rss)
		b.report.add(growth("threads", "-"), &threads)
		b.report.add(growth("open files", "-"), &files)
	}
	return nil
}

// soak makes n calls, lets the process rest, and reads what it holds.
func (b *bench) soak(ctx context.Context, s *session, n int) (held, error) {
	if _, err := s.flood(b.size.outstanding, func(answers int) bool { return answers+b.size.outstanding <= n }); err != nil {
		return held{}, err
	}
	if err := rest(ctx, b.size.rest); err != nil {
		return held{}, err
	}
	pid := s.cmd.Process.Pid
	m, err := memoryOf(pid)
	if err != nil {
		return held{}, err
	}
	threads, err := procField(pid, "status", "Threads:")
	if err != nil {
		return held{}, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return held{m.rss, threads, float64(len(files))}, err
}
