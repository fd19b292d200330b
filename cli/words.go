package cli

import (
	"slices"
	"strings"
)

// firstWord returns the first argument that is neither an option nor the value
// of one, and its place. The place is -1 where there is none.
func firstWord(args []string) (string, int) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return "", -1
		case slices.Contains(valueOptions(), arg):
			i++
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			return arg, i
		}
	}
	return "", -1
}

// valueOptions are the options that may stand before a command and whose value
// is an argument of its own: those of every command, and those of run.
func valueOptions() []string {
	return []string{"--config", "--data-dir", "--log-level", "--mode", "--profile", "--token-file"}
}

// isHelp reports whether an argument asks for help.
func isHelp(arg string) bool { return arg == "-h" || arg == "--help" }

// unknownWord is the error for a command that does not exist, with the one that
// was probably meant.
func unknownWord(word string) error {
	var names []string
	for _, e := range entries() {
		if !e.hidden {
			names = append(names, e.name)
		}
	}
	if meant := nearest(word, append(names, "help")); meant != "" {
		return misuse("mcpproxy "+meant, "unknown command %q, did you mean %q?", word, meant)
	}
	return misuse("mcpproxy --help", "unknown command %q", word)
}

// nearest returns the name that word is most likely a slip of, or nothing: the
// first name within a third of its length in edits, or one that word begins.
func nearest(word string, names []string) string {
	best, distance := "", len(word)
	for _, name := range names {
		d := edits(word, name)
		if d <= max(1, (len(name)+1)/3) && d < distance {
			best, distance = name, d
		}
	}
	if best != "" || len(word) < 2 {
		return best
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return name
		}
	}
	return ""
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
