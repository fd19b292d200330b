package policy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/store"
)

// judgeEnv holds the data folder of a process that judges: see TestJudgeProcess.
const judgeEnv = "POLICY_TEST_JUDGE"

// TestJudgeProcess is what the processes of TestProcessesAgree do; by itself it
// does nothing. It judges what the environment says until it is as often as
// asked for, and prints what it was the first to find.
func TestJudgeProcess(t *testing.T) {
	dir := os.Getenv(judgeEnv)
	if dir == "" {
		return
	}
	for !exists(filepath.Join(dir, "go")) { // all at once
		time.Sleep(time.Millisecond)
	}
	q := &quarantine{t: t, dir: dir, enabled: true, clock: time.Now()}
	a := q.open()
	for round := range 3 {
		var tools []string
		for i := range 20 + 5*round {
			tools = append(tools, fmt.Sprintf("tool%d in round %d", i, max(0, round-i%3)))
		}
		for _, found := range judge(t, a, offering(tools...)) {
			fmt.Printf("found %d %s\n", round, found)
		}
		if _, err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("standing %d %s\n", round, standing(a, offering(tools...)))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestProcessesAgree has several processes discover the same server at once, in
// a store that none of them has made yet. What is found is found once, and all
// see the same.
func TestProcessesAgree(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 5
	outputs := make([]bytes.Buffer, processes)
	var commands []*exec.Cmd
	for i := range processes {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestJudgeProcess$")
		cmd.Env = append(os.Environ(), judgeEnv+"="+dir)
		cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		commands = append(commands, cmd)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var found []string
	standings := map[string]bool{}
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, outputs[i].String())
		}
		for line := range strings.Lines(outputs[i].String()) {
			switch kind, text, _ := strings.Cut(strings.TrimSpace(line), " "); kind {
			case "found":
				found = append(found, text)
			case "standing":
				standings[text] = true
			}
		}
	}
	if !slices.Contains(found, "0 baseline 20 by first discovery") {
		t.Errorf("no baseline: %q", found)
	}
	// One that is behind the others finds the forms again that they have left,
	// which is why a form may be found more than once after the first round.
	count := 0
	for _, f := range found {
		if strings.HasPrefix(f, "0 ") {
			count++
		}
	}
	if count != 1 {
		t.Errorf("found in the first round: %q", found)
	}
	if len(standings) != 3 {
		t.Errorf("the processes differ: %v", standings)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "mcpproxy.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stored, err := db.Approvals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	approved := 0
	for _, f := range stored.Forms {
		if f.Approved {
			approved++
		}
	}
	if approved != 20 || len(stored.Baselines) != 4 {
		t.Errorf("%d approved forms, %d baselines", approved, len(stored.Baselines))
	}
}
