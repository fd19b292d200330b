package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// demoLimit is how long the demonstration may take; on a slow machine it takes
// a few seconds.
const demoLimit = time.Minute

// demoCmd shows what the program does.
type demoCmd struct{}

// Help implements kong.HelpProvider.
func (*demoCmd) Help() string {
	return `It needs no configuration and leaves nothing behind: in a temporary folder, an MCP server over a few notes is put behind mcpproxy, both as real processes; a client lists and calls through it, and each step is printed with the time it took.

    mcpproxy demo
    mcpproxy demo --json | jq '.parts[].steps[] | {step, ms}'`
}

// demoAnswer is the answer of demo --json.
type demoAnswer struct {
	Parts []*demoPart `json:"parts"`
}

// demoPart is one connection of the demonstration's client and what it did.
type demoPart struct {
	Mode  string     `json:"mode"`
	Title string     `json:"title"`
	Steps []demoStep `json:"steps"`
}

// demoStep is one thing the client did.
type demoStep struct {
	Step   string   `json:"step"`
	MS     float64  `json:"ms"`
	Result string   `json:"result"`
	More   []string `json:"more,omitempty"`
}

// demoAct is one part of the demonstration: a mode, and what a client does
// once mcpproxy serves it in that mode.
type demoAct struct {
	mode  string
	title string
	run   func(ctx context.Context, c *demoClient) error
}

// demoActs are the parts in their order. All have the same data folder, so a
// later one finds what an earlier one has learned.
func demoActs() []demoAct {
	return []demoAct{
		{modeDirect, "first start: nothing is known of the server yet", demoFirstStart},
		{modeDirect, "second start: what the server offers is known from the first", demoSecondStart},
		{modeRetrieve, "a search in place of a list", demoRetrieve},
	}
}

// run plays all parts.
func (*demoCmd) run(ctx context.Context, a *app) error {
	limited, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "mcpproxy-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	stage := &demoStage{a: a, dir: dir}
	err = errors.Join(stage.play(limited), os.RemoveAll(dir))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && a.JSON:
		return a.writeJSON(stage.answer)
	}
	return err
}

// demoStage is the temporary folder with the demonstration's configuration, its
// data and its notes, and what was done there.
type demoStage struct {
	a      *app
	dir    string
	answer demoAnswer
}

// play sets the stage and plays all parts on it.
func (d *demoStage) play(ctx context.Context) error {
	if err := d.set(); err != nil {
		return fmt.Errorf("prepare the demonstration: %w", err)
	}
	if err := d.print("one MCP server with two notes, behind mcpproxy, all in a temporary folder\n"); err != nil {
		return err
	}
	for _, act := range demoActs() {
		if err := d.act(ctx, act); err != nil {
			return fmt.Errorf("%s mode, %s: %w", act.mode, act.title, err)
		}
	}
	return d.print("\nnothing is left of it; to use mcpproxy with servers of yours: mcpproxy add --help\n")
}

// set writes the notes and the configuration.
func (d *demoStage) set() error {
	if err := os.Mkdir(d.path("notes"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"groceries": "# Groceries\n- milk\n- bread\n",
		"travel":    "# Travel\nThe train leaves at 9:40.\n",
	} {
		if err := os.WriteFile(d.path("notes", name+".md"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	entry := newServer{Command: d.a.Executable, Args: []string{"demo-server", d.path("notes")}}
	// A shared server would outlive the demo for a while.
	text, err := json.Marshal(map[string]any{"share_upstreams": false, "mcpServers": map[string]newServer{"notes": entry}})
	if err != nil {
		return err
	}
	return os.WriteFile(d.path("mcp_config.json"), text, 0o600)
}

// path is a path below the stage's folder.
func (d *demoStage) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// act plays one part: it starts mcpproxy as a client would, lets the part use
// it, and sees it end.
func (d *demoStage) act(ctx context.Context, act demoAct) error {
	part := &demoPart{Mode: act.mode, Title: act.title}
	d.answer.Parts = append(d.answer.Parts, part)
	if err := d.print("\n" + act.mode + " mode, " + act.title + "\n"); err != nil {
		return err
	}
	c := &demoClient{stage: d, part: part, progress: make(chan string, 16), changed: make(chan struct{}, 1)}
	said := &lockedBuffer{}
	err := c.connect(ctx, d.command(act.mode, said))
	if err == nil {
		err = act.run(ctx, c)
		err = errors.Join(err, c.leave())
	}
	if err != nil && said.String() != "" {
		err = fmt.Errorf("%w; mcpproxy wrote to stderr: %s", err, strings.TrimSpace(said.String()))
	}
	return err
}

// command is this program, serving a client in a mode. Settings of the user's
// environment do not reach it.
func (d *demoStage) command(mode string, stderr *lockedBuffer) *exec.Cmd {
	cmd := exec.Command(d.a.Executable, "--config", d.path("mcp_config.json"), "--data-dir", d.path("data"), "--mode", mode)
	for _, kv := range d.a.Environ {
		if !strings.HasPrefix(strings.ToUpper(kv), "MCPPROXY_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Dir, cmd.Stderr = d.dir, stderr
	return cmd
}

// starts counts how often the server was started, and how often it ended, by
// its log.
func (d *demoStage) starts() (started, ended int) {
	text, err := os.ReadFile(d.path("data", "logs", "notes.log"))
	if err != nil {
		return 0, 0 // there is no log before the first start
	}
	return bytes.Count(text, []byte(" proxy: started\n")), bytes.Count(text, []byte(" proxy: ended: "))
}

// print writes to the transcript.
func (d *demoStage) print(text string) error {
	if d.a.JSON || d.a.Quiet {
		return nil
	}
	return d.a.print(text)
}

// add ends a step that began at a time, and prints it.
func (d *demoStage) add(part *demoPart, began time.Time, step demoStep) error {
	took := d.a.Now().Sub(began)
	step.MS = float64(took.Microseconds()) / 1000
	part.Steps = append(part.Steps, step)
	text := fmt.Sprintf("%6.0f ms  %-26s %s\n", step.MS, clean(step.Step), clean(step.Result))
	for _, line := range step.More {
		text += strings.Repeat(" ", 11) + fmt.Sprintf("%-26s %s\n", "", clean(line))
	}
	return d.print(text)
}

// lockedBuffer keeps what another process writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
