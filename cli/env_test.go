package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// result is what one invocation printed and its exit code.
type result struct {
	code           int
	stdout, stderr string
}

// terminals returns an IsTerminal that says yes for the streams given.
func terminals(streams ...Stream) func(Stream) bool {
	return func(s Stream) bool {
		for _, t := range streams {
			if t == s {
				return true
			}
		}
		return false
	}
}

// testNow is the clock of the tests.
func testNow() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// invokeWith runs one invocation over buffers with an empty home folder; change
// alters its surroundings first.
func invokeWith(t *testing.T, change func(*Env), args ...string) result {
	t.Helper()
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	env := Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Home: home, Dir: home, Now: testNow,
		IsTerminal: terminals(), Columns: func() int { return 80 },
		Executable: "/bin/false",
	}
	if change != nil {
		change(&env)
	}
	code := Main(t.Context(), env)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}
