package upstream

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
)

// watchGoroutines fails the test if goroutines of it are left over when all
// else is cleaned up. A goroutine has the labels of the one that started it,
// which is how those of tests side by side are told apart. What a timer starts
// has none: see nothingLeft.
func watchGoroutines(t *testing.T) {
	t.Helper()
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
	t.Cleanup(func() {
		if !eventually(func() bool { return goroutinesOf(t) <= 1 }) { // the test itself
			t.Errorf("%d goroutines, the test among them:\n%s", goroutinesOf(t), stacks())
		}
	})
}

// goroutinesOf counts the goroutines of a watched test, itself among them.
func goroutinesOf(t *testing.T) int { return labelled(strconv.Quote(t.Name())) }

// labelled counts the goroutines whose labels hold this text.
func labelled(text string) (n int) {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // to memory
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		// COUNT @ ADDRESS..., labels, stack; behind a line of its own at the top
		_, labels, found := strings.Cut(block, "\n# labels: ")
		if labels, _, _ = strings.Cut(labels, "\n"); !found || !strings.Contains(labels, text) {
			continue
		}
		head, _, _ := strings.Cut(block, " @ ")
		count, _ := strconv.Atoi(head[strings.LastIndexByte(head, '\n')+1:])
		n += count
	}
	return n
}

// nothingLeft reports whether no goroutine is there but the main one when all tests
// are over, and says which are.
func nothingLeft() bool {
	if eventually(func() bool { return others(stacks()) == 0 }) {
		return true
	}
	fmt.Fprintf(os.Stderr, "goroutines are left after all tests:\n%s", stacks())
	return false
}

// others counts the goroutines in a dump beside the one that made it, and the one
// that Go keeps for signals once somebody has asked for them, as fuzzing does.
func others(stacks []byte) (n int) {
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if !bytes.Contains(stack, []byte("os/signal.loop(")) {
			n++
		}
	}
	return n - 1
}

func stacks() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}

// TestLabelled counts goroutines that were started by one with a label, and by
// those, as left over.
func TestLabelled(t *testing.T) {
	end := make(chan struct{})
	started := make(chan struct{})
	pprof.Do(t.Context(), pprof.Labels("test", "TestLabelled/some"), func(context.Context) {
		for range 2 {
			go func() {
				go func() { started <- struct{}{}; <-end }()
				started <- struct{}{}
				<-end
			}()
		}
	})
	for range 4 {
		<-started
	}
	if n := labelled(`"TestLabelled/some"`); n != 4 {
		t.Errorf("%d goroutines, want 4", n)
	}
	close(end)
	if !eventually(func() bool { return labelled(`"TestLabelled/some"`) == 0 }) {
		t.Error("they have ended and still count")
	}
}
