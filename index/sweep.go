package index

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// spare is how many older generations stay though nobody has them open:
	// instances with another configuration may use the same data folder, and
	// short commands come and go.
	spare = 2
	// abandonedAfter is the age from which on a folder under construction has
	// lost its builder.
	abandonedAfter = 10 * time.Minute
)

// sweep removes the generations that are of no use any more, and what killed
// builders left. Only the holder of the lease may do it.
func sweep(parent, current string) {
	found, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	type old struct {
		folder string
		built  time.Time
	}
	var generations []old
	for _, each := range found {
		info, err := each.Info()
		if err != nil || !each.IsDir() {
			continue
		}
		folder := filepath.Join(parent, each.Name())
		switch {
		case strings.HasPrefix(each.Name(), buildingPrefix):
			if time.Since(info.ModTime()) > abandonedAfter {
				_ = os.RemoveAll(folder)
			}
		case generationName(each.Name()) && each.Name() != current:
			generations = append(generations, old{folder, info.ModTime()})
		}
	}
	slices.SortFunc(generations, func(a, b old) int { return b.built.Compare(a.built) })
	for _, g := range generations[min(spare, len(generations)):] {
		whileUnused(g.folder, func() { discard(parent, g.folder) })
	}
}

// discard renames before it removes, so that no process finds half a
// generation.
func discard(parent, folder string) {
	aside, err := os.MkdirTemp(parent, buildingPrefix)
	if err != nil {
		return
	}
	_ = os.Rename(folder, filepath.Join(aside, "old"))
	_ = os.RemoveAll(aside)
}
