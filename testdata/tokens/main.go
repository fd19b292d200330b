// Command tokens measures what mcpproxy costs a model, in tokens of cl100k_base:
//
//	go run ./testdata/tokens -mcpproxy ./mcpproxy [-check]
//
// It starts the program with real tools behind it: those recorded in
// testdata/catalogue and those of the retrieval set livemcp, listed by stub
// servers. What is counted is text as a client gets it:
//
//   - surface: the result of tools/list, and besides the instructions;
//   - answer: the text of a result of retrieve_tools, for all queries of livemcp
//     that a person or an agent would type;
//   - entries: the member "tools" of an answer of ten compact entries;
//   - schema read: the text of a result of describe_tool for the first hit;
//   - session: surface + n searches (ten compact entries each) + n schema reads,
//     against the surface of direct mode with the same tools.
//
// A provider's own frame around tools and results is the same for both sides and
// not counted, nor are the calls themselves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"mcpproxy/testdata/stub"
)

// Goals that -check holds, in tokens.
const (
	maxSurface = 1200 // of mode retrieve_tools, management tools off
	maxEntries = 450  // ten compact entries on average
)

// limit is how long everything together may take.
const limit = 10 * time.Minute

func main() {
	if len(os.Args) > 1 && os.Args[1] == "stub" {
		os.Exit(stub.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	product := flag.String("mcpproxy", "mcpproxy", "the program to measure")
	retrieval := flag.String("retrieval", "index/testdata/retrieval", "folder of the retrieval sets")
	check := flag.Bool("check", false, "fail where a goal is missed")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx, *product, *retrieval, *check); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, product, retrieval string, check bool) error {
	product, err := filepath.Abs(product)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tokens-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	count, err := newCounter()
	if err != nil {
		return err
	}
	sets, err := toolSets(retrieval)
	if err != nil {
		return err
	}
	queries, err := readQueries(retrieval)
	if err != nil {
		return err
	}
	var figures []figures
	for _, set := range sets {
		m := &measurement{dir: filepath.Join(dir, set.name), product: product, self: self, count: count, set: set}
		f, err := m.run(ctx, queries)
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
		figures = append(figures, f)
	}
	missed := report(os.Stdout, figures, len(queries))
	if check && missed {
		return errors.New("a goal is missed")
	}
	return nil
}
