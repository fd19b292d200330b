package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// goneLimit bounds the wait for the end of what was started: a hub that nobody
// has come to stays for 5 s, and it and its guard stop servers for 4 s each.
const goneLimit = 20 * time.Second

// process is one that this run has started, or one that such a process has.
type process struct {
	pid  int
	argv []string
}

// processes are all that run with this run's home folder.
func (b *bench) processes() ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("processes can be found on Linux only: %w", err)
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		folder := filepath.Join("/proc", entry.Name())
		environ, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+b.dir) {
			continue // if it cannot be read it has ended, or is another user's
		}
		argv, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil {
			continue
		}
		found = append(found, process{pid, strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")})
	}
	return found, nil
}

// awaitGone waits until all that was started has ended.
func (b *bench) awaitGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, goneLimit)
	defer cancel()
	for {
		left, err := b.processes()
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			err := fmt.Errorf("wait for the end of all: %w", ctx.Err())
			for _, p := range left {
				err = fmt.Errorf("%w; left is %d %q", err, p.pid, p.argv)
			}
			return err
		}
	}
}

// endAll sees that nothing is left when the bench ends. What has to be killed is
// a failure.
func (b *bench) endAll(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return nil // nothing that could be left can be started there
	}
	err := b.awaitGone(ctx)
	if err == nil {
		return nil
	}
	left, lost := b.processes()
	for _, p := range left {
		lost = errors.Join(lost, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	return errors.Join(err, lost)
}

// The kinds of processes, as tables name them.
const (
	instanceKind = "instances"
	hubKind      = "hub"
	guardKind    = "guards"
	serverKind   = "servers"
)

// kind is what a process is for.
func (b *bench) kind(p process) string {
	switch {
	case filepath.Base(p.argv[0]) != filepath.Base(b.product):
		return serverKind
	case len(p.argv) > 1 && p.argv[1] == "hub-run":
		return hubKind
	case len(p.argv) > 1 && p.argv[1] == "guard":
		return guardKind
	}
	return instanceKind
}

// census is how many processes run and what memory they have, by kind.
type census struct {
	count, pss           map[string]float64
	totalCount, totalPSS float64
}

// kinds are those of which there are any.
func (c census) kinds() []string {
	var present []string
	for _, kind := range []string{instanceKind, hubKind, guardKind, serverKind} {
		if c.count[kind] > 0 {
			present = append(present, kind)
		}
	}
	return present
}

// census counts what runs.
func (b *bench) census() (census, error) {
	c := census{count: map[string]float64{}, pss: map[string]float64{}}
	running, err := b.processes()
	if err != nil {
		return c, err
	}
	for _, p := range running {
		m, err := memoryOf(p.pid)
		if err != nil {
			return c, fmt.Errorf("%q: %w", p.argv, err)
		}
		kind := b.kind(p)
		c.count[kind]++
		c.pss[kind] += m.pss
		c.totalCount++
		c.totalPSS += m.pss
	}
	return c, nil
}
