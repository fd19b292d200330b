package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// onlyDead reports whether every process of the group has ended and merely
// waits for its parent to ask for its status.
func onlyDead(group int) bool {
	// The only error is a bad pattern.
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	known := false
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone
		}
		// Behind the name, which may hold anything: state, parent, group.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if known = true; fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return false
		}
	}
	return known
}
