package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// queryLimit bounds one run of a command.
const queryLimit = 20 * time.Second

// measureQuery takes the times of the commands that tell how things are, while
// instances run whose clients have used every server. The command version, which
// opens nothing, shows what is the program's own start.
func measureQuery(ctx context.Context, b *bench) error {
	if b.product == "" {
		return nil // no yardstick has commands
	}
	each := b.size.tools / b.size.servers
	up, err := b.direct(ctx, each)
	if err != nil {
		return err
	}
	servers, v := map[string]server{}, visit{tools: each * b.size.servers, arguments: `{"query":"quarterly report"}`}
	for i := range b.size.servers {
		name := "s" + strconv.Itoa(i)
		servers[name] = server{Command: up.argv[0], Args: up.argv[1:]}
		v.calls = append(v.calls, name+"__tool_0001")
	}
	t, err := b.filled(ctx, "query", servers, v.tools, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.rounds*b.size.queries+3)*queryLimit)
	defer cancel()
	g, _, err := b.gather(ctx, slices.Repeat([]target{t}, b.size.present), v.make)
	if err != nil {
		return err
	}
	var took series
	if err := b.query(ctx, t, &took); err != nil {
		g.kill()
		return err
	}
	if err := errors.Join(g.dismiss(), b.awaitGone(ctx)); err != nil {
		return err
	}
	name := fmt.Sprintf("commands beside %d instances, %d tools of %d servers, p50", b.size.present, v.tools, b.size.servers)
	b.report.add(figure{Name: name, Unit: "ms", Goal: 50, Of: []string{"list", "status", "get"}}, &took)
	return nil
}

// query runs each command often, in turn, and adds the median time of each.
func (b *bench) query(ctx context.Context, t target, took *series) error {
	ask := func(command, want string) (time.Duration, error) {
		options := t.argv[1:5] // those of the configuration and the data folder
		return b.command(ctx, append(strings.Fields(command), options...), want)
	}
	commands := []struct{ name, words, want string }{
		{"version", "version", "go"},
		{"list", "list", "ready"},
		{"status", "status", fmt.Sprintf("%d ready", b.size.servers)},
		{"get", "get s0", "ready"},
	}
	// What runs is written to the store a moment after it was started.
	for deadline := time.Now().Add(queryLimit); ; {
		_, err := ask("status", commands[2].want)
		if err == nil {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	for range b.rounds {
		times := map[string][]float64{}
		for range b.size.queries {
			for _, c := range commands {
				one, err := ask(c.words, c.want)
				if err != nil {
					return err
				}
				times[c.name] = append(times[c.name], milliseconds(one))
			}
		}
		for _, c := range commands {
			took.add(c.name, percentile(times[c.name], 0.50))
		}
	}
	return nil
}

// command runs a command of mcpproxy, whose output must hold a text, and returns
// how long it took.
func (b *bench) command(ctx context.Context, args []string, want string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.product, args...)
	cmd.Dir, cmd.Env = b.dir, b.environ()
	cmd.WaitDelay = 2 * time.Second
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err == nil && !strings.Contains(out.String(), want) {
		err = fmt.Errorf("no %q in %.1000q", want, out.String())
	}
	if err != nil {
		return 0, fmt.Errorf("mcpproxy %s: %w; stderr: %s", strings.Join(args, " "), err, said.String())
	}
	return took, nil
}
