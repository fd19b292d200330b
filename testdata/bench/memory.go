package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memory of one process, in MB (of 2^20 bytes).
type memory struct{ rss, pss float64 }

// memoryOf reads what the kernel says about a process.
func memoryOf(pid int) (memory, error) {
	rss, err := procField(pid, "status", "VmRSS:")
	if err != nil {
		return memory{}, err
	}
	pss, err := procField(pid, "smaps_rollup", "Pss:")
	return memory{rss / 1024, pss / 1024}, err
}

// procField is a number of a file of /proc, in the unit of that file.
func procField(pid int, file, field string) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, fmt.Errorf("memory can be read on Linux only: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == field {
			return strconv.ParseFloat(words[1], 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/%s", field, pid, file)
}

// rest waits until garbage is collected and start-up work done.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measureIdle takes the memory of an instance that has listed its tools and
// does nothing, alone and beside others.
func measureIdle(ctx context.Context, b *bench) error {
	raw, err := b.storing(ctx, "rawlist", b.size.tools)
	if err != nil {
		return err
	}
	targets, err := b.withProduct([]target{raw}, func() (target, error) { return b.stored(ctx, b.size.tools) })
	if err != nil {
		return err
	}
	var rss, pss, shared series
	for range b.rounds {
		for _, t := range targets {
			alone, err := b.idle(ctx, t, 1)
			if err != nil {
				return err
			}
			among, err := b.idle(ctx, t, 1+b.size.siblings)
			if err != nil {
				return err
			}
			rss.add(t.name, alone.rss)
			pss.add(t.name, alone.pss)
			shared.add(t.name, among.pss)
		}
	}
	about := fmt.Sprintf("idle with %d tools, ", b.size.tools)
	b.report.add(figure{Name: about + "RSS", Unit: "MB", Goal: 35, Of: []string{product}}, &rss)
	b.report.add(figure{Name: about + "PSS alone", Unit: "MB"}, &pss)
	b.report.add(figure{Name: fmt.Sprintf("%sPSS beside %d siblings", about, b.size.siblings), Unit: "MB", Goal: 20, Of: []string{product}}, &shared)
	return nil
}

// idle starts n instances, lets each list, and returns the median memory of
// them all at rest.
func (b *bench) idle(ctx context.Context, t target, n int) (_ memory, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var sessions []*session
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.close())
		}
		if err == nil && t.hub {
			err = b.awaitGone(ctx)
		}
	}()
	for range n {
		s, err := b.open(ctx, t)
		if err != nil {
			return memory{}, err
		}
		sessions = append(sessions, s)
		if _, err := s.handshake(); err != nil {
			return memory{}, err
		}
		if _, err := s.awaitTools(ctx, b.size.tools, everyTool); err != nil {
			return memory{}, err
		}
	}
	if err := rest(ctx, b.size.rest); err != nil {
		return memory{}, err
	}
	var rss, pss []float64
	for _, s := range sessions {
		m, err := memoryOf(s.cmd.Process.Pid)
		if err != nil {
			return memory{}, err
		}
		rss, pss = append(rss, m.rss), append(pss, m.pss)
	}
	return memory{median(rss), median(pss)}, nil
}
