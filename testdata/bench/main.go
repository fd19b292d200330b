// Bench measures mcpproxy against yardsticks and prints goal and measured value
// side by side:
//
//	go run ./testdata/bench -mcpproxy BIN [-only start,list,…] [-rounds 7] [-json FILE]
//	go run ./testdata/bench -smoke -mcpproxy BIN
//
// One client: start, list, call, concurrency, large, bad, idle, soak; with
// private servers, or with -shared as they are by default. Several clients:
//
//	hop    calls through the hub, next to private servers
//	crowd  many instances that start together
//	share  processes, memory and time of many clients with many servers from npm
//	query  list, status and get while instances run
//
// No client: search, tools search in a fresh process.
//
// Absolute times move by a factor of two between busy and quiet spells of a
// machine, ratios do not. So whatever is compared runs in turn (A B C A B C …),
// ratios are taken round by round, and medians are shown. A goal that is missed
// is printed as such; the exit status tells only whether everything ran.
//
// BIN should be built like the yardsticks, with -trimpath -ldflags "-s -w". All
// that is started lives in process groups of its own, has a time limit, and is
// ended before the next thing starts, a hub and its servers too. Unix only;
// memory, and whatever starts a hub, need Linux. share needs the packages of
// testdata/npm.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// measurement is one part of the bench, by the name that -only knows.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

// measurements are all of them, in the order in which they run.
func measurements() []measurement {
	return []measurement{
		{"start", measureStart},
		{"list", measureList},
		{"call", measureCall},
		{"concurrency", measureConcurrency},
		{"large", measureLarge},
		{"bad", measureBad},
		{"idle", measureIdle},
		{"soak", measureSoak},
		{"hop", measureHop},
		{"crowd", measureCrowd},
		{"share", measureShare},
		{"query", measureQuery},
		{"search", measureSearch},
	}
}

// bench is what all measurements share.
type bench struct {
	dir     string // temporary folder of this run
	product string // path of mcpproxy, "" to measure the yardsticks alone
	shared  bool   // mcpproxy shares its servers also where one client is measured
	rounds  int
	size    sizes
	report  *report
}

// sizes are how much of everything is done.
type sizes struct {
	tools       int           // tools of the big upstream
	warm        int           // calls before those that count
	calls       int           // calls one after the other
	large       int           // calls with a large result
	largeKB     int           // size of a large result
	outstanding int           // calls under way at a time
	spell       time.Duration // how long calls run concurrently
	late        time.Duration // how late the bad server is
	rest        time.Duration // wait before memory is read
	siblings    int           // instances beside the one measured
	soak        int           // calls of the soak
	clients     int           // clients that share servers
	servers     int           // servers that they share
	crowd       int           // instances that start together
	present     int           // instances that run while the state is asked for
	queries     int           // runs of each command that asks for it
}

// full are the sizes that the goals are stated for.
func full() sizes {
	return sizes{tools: 1000, warm: 100, calls: 1000, large: 100, largeKB: 100, outstanding: 32,
		spell: 2 * time.Second, late: 5 * time.Second, rest: 1500 * time.Millisecond, siblings: 9, soak: 100_000,
		clients: 10, servers: 10, crowd: 20, present: 5, queries: 20}
}

// smoke are sizes that only prove that a measurement works.
func smoke() sizes {
	return sizes{tools: 40, warm: 5, calls: 20, large: 3, largeKB: 100, outstanding: 32,
		spell: 100 * time.Millisecond, late: 500 * time.Millisecond, rest: 50 * time.Millisecond, siblings: 2, soak: 500,
		clients: 2, servers: 2, crowd: 4, present: 2, queries: 3}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	product := flags.String("mcpproxy", "", "mcpproxy binary; without it only the yardsticks are measured")
	only := flags.String("only", strings.Join(names, ","), "measurements to take")
	shared := flags.Bool("shared", false, "let mcpproxy share its servers in the measurements of one client too")
	rounds := flags.Int("rounds", 7, "rounds of each measurement")
	file := flags.String("json", "", "write all samples to this file too")
	quick := flags.Bool("smoke", false, "one small round of each, to prove that it works")
	limit := flags.Duration("limit", 90*time.Minute, "time limit for everything")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown measurement %q, known are %s", name, strings.Join(names, ", "))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()

	b := &bench{shared: *shared, rounds: *rounds, size: full(), report: &report{out: out}}
	if *quick {
		b.rounds, b.size = 1, smoke()
	}
	var err error
	if *product != "" {
		if b.product, err = filepath.Abs(*product); err != nil {
			return err
		}
		if _, err := os.Stat(b.product); err != nil {
			return fmt.Errorf("find mcpproxy: %w", err)
		}
	}
	if b.dir, err = os.MkdirTemp("", "mcpproxy-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.report.begin(b)
	err = b.measure(ctx, chosen)
	// Also what an error or a signal has left behind must not outlive the bench.
	if err := errors.Join(err, b.endAll(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return b.report.write(*file)
}

// measure takes the chosen measurements.
func (b *bench) measure(ctx context.Context, chosen []string) error {
	for _, m := range measurements() {
		if !slices.Contains(chosen, m.name) {
			continue
		}
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
	}
	return nil
}
