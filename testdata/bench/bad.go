package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Ten servers s0 to s9 of fifty tools each; s9 is the bad one.
const (
	badServers = 10
	badTools   = 50
	badPrefix  = `"name":"s9__`
	goodCall   = `{"name":"s0__tool_0001","arguments":{"query":"quarterly report"}}`
)

// mood is how the bad server behaves; text is for the file that tells it.
type mood struct{ name, text string }

// trouble is mcpproxy in front of the ten servers.
type trouble struct {
	*bench
	config string            // file
	mood   string            // file
	left   map[string]string // by mood: the data folder that a first start left
}

// answers are the times from process start to the first answers of each kind.
type answers struct{ initialize, list, nine, call series }

// measureBad takes the time to the first answers while one of ten servers hangs
// or is late, against all well: at the very first start, at a second start of
// which the first was well, and at a second start after an equally bad first.
func measureBad(ctx context.Context, b *bench) error {
	if b.product == "" {
		return nil // no yardstick has ten servers
	}
	moods := []mood{{"all well", ""}, {"one hangs", "hang"}, {fmt.Sprintf("one is %s late", b.size.late), b.size.late.String()}}
	tr, err := b.prepareTrouble(ctx, moods)
	if err != nil {
		return err
	}
	for _, start := range []struct {
		name string
		from func(mood) string // the data folder to start with, "" for an empty one
	}{
		{"first start", func(mood) string { return "" }},
		{"second start", func(mood) string { return tr.left[moods[0].name] }},
		{"second start, as bad before", func(m mood) string { return tr.left[m.name] }},
	} {
		var took answers
		for range b.rounds {
			for _, m := range moods {
				data, err := tr.data(ctx, start.from(m))
				if err != nil {
					return err
				}
				if err := tr.answer(ctx, m, data, &took); err != nil {
					return fmt.Errorf("%s, %s: %w", start.name, m.name, err)
				}
			}
		}
		judge := func(what string, s *series) {
			b.report.add(figure{Name: start.name + ": " + what, Unit: "ms", Base: moods[0].name, Goal: 1.2,
				Of: []string{moods[1].name, moods[2].name}}, s)
		}
		judge("initialize", &took.initialize)
		judge("first tools/list, whatever is in it", &took.list)
		judge("tools/list with the healthy nine", &took.nine)
		judge("first call of a healthy server", &took.call)
	}
	return nil
}

// prepareTrouble configures the ten servers and makes a first start in each
// mood, for what it leaves in the data folder.
func (b *bench) prepareTrouble(ctx context.Context, moods []mood) (*trouble, error) {
	up, err := b.direct(ctx, badTools)
	if err != nil {
		return nil, err
	}
	tr := &trouble{bench: b, mood: filepath.Join(b.dir, "mood"), left: map[string]string{}}
	servers := map[string]server{}
	for i := range badServers {
		args := up.argv[1:]
		if i == badServers-1 {
			args = append(args[:len(args):len(args)], "-mood", tr.mood)
		}
		servers["s"+strconv.Itoa(i)] = server{Command: up.argv[0], Args: args}
	}
	if tr.config, err = b.configure("ten", servers, b.shared); err != nil {
		return nil, err
	}
	for _, m := range moods {
		data, err := tr.data(ctx, "")
		if err != nil {
			return nil, err
		}
		if err := tr.answer(ctx, m, data, &answers{}); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", m.name, err)
		}
		tr.left[m.name] = data
	}
	return tr, nil
}

// data is a new data folder with the files of another, if there is another.
func (tr *trouble) data(ctx context.Context, from string) (string, error) {
	dir, err := os.MkdirTemp(tr.dir, "ten-data-")
	if err != nil || from == "" {
		return dir, err
	}
	// Modes matter: mcpproxy refuses what others could write.
	if out, err := exec.CommandContext(ctx, "cp", "-a", from+"/.", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy data folder: %w: %s", err, out)
	}
	return dir, nil
}

// answer starts mcpproxy with the bad server in a mood and adds the times of
// the first answers. With all well it stays until the tools of all ten are
// there, so that the data folder holds them.
func (tr *trouble) answer(ctx context.Context, m mood, data string, took *answers) error {
	if err := os.WriteFile(tr.mood, []byte(m.text), 0o600); err != nil {
		return err
	}
	nine := func(line []byte) int {
		return bytes.Count(line, []byte(toolMark)) - bytes.Count(line, []byte(badPrefix))
	}
	return tr.with(ctx, tr.onData(tr.config, data, tr.shared), startLimit, func(ctx context.Context, s *session) error {
		add := func(to *series, d time.Duration) { to.add(m.name, milliseconds(d)) }
		init, err := s.handshake()
		if err != nil {
			return err
		}
		count, err := s.countTools(nine)
		if err != nil {
			return err
		}
		list := time.Since(s.began)
		complete := list
		if count < (badServers-1)*badTools {
			if complete, err = s.awaitTools(ctx, (badServers-1)*badTools, nine); err != nil {
				return err
			}
		}
		before := time.Now()
		if _, err := s.request("tools/call", goodCall); err != nil {
			return err
		}
		call := time.Since(before)
		add(&took.initialize, init)
		add(&took.list, list)
		add(&took.nine, complete)
		add(&took.call, complete+call)
		if m.text == "" {
			_, err = s.awaitTools(ctx, badServers*badTools, everyTool)
		}
		return err
	})
}
