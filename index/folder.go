package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	api "github.com/blevesearch/bleve_index_api"
)

// A generation is a folder <parent>/<generation> that is never changed:
//
//	segments/      what scorch wrote
//	tables         see tables
//	manifest.json  written last: the size and checksum of every other file
const (
	segmentsName = "segments"
	tablesName   = "tables"
	manifestName = "manifest.json"
	// buildingPrefix marks folders that are no generation yet, or no longer.
	buildingPrefix = ".building-"
)

// manifest tells a whole folder from a damaged one. A damaged segment would not
// be noticed by scorch, which maps it into memory and reads where it points.
type manifest struct {
	Generation string          `json:"generation"`
	Items      int             `json:"items"`
	Files      map[string]file `json:"files"`
}

type file struct {
	Size     int64  `json:"size"`
	Checksum uint32 `json:"crc32c"`
}

// openFolder opens a generation; the error is fs.ErrNotExist where there is
// none. Everything in it is held against the manifest.
func openFolder(parent, generation string, items int) (index api.Index, t *tables, err error) {
	folder := filepath.Join(parent, generation)
	defer func() {
		if r := recover(); r != nil {
			index, t, err = nil, nil, fmt.Errorf("open index %s: %v", folder, r)
		}
	}()
	raw, err := os.ReadFile(filepath.Join(folder, manifestName))
	if err != nil {
		if _, statErr := os.Stat(folder); statErr == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("index %s has no manifest", folder)
		}
		return nil, nil, fmt.Errorf("open index: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, nil, fmt.Errorf("read the manifest of index %s: %w", folder, err)
	}
	if m.Generation != generation || m.Items != items {
		return nil, nil, fmt.Errorf("index %s is one of %d items of generation %s", folder, m.Items, m.Generation)
	}
	files, err := contents(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("read index %s: %w", folder, err)
	}
	for name, want := range m.Files {
		if files[name] != want {
			return nil, nil, fmt.Errorf("index %s is damaged: %s is not what was written", folder, name)
		}
	}
	raw, err = os.ReadFile(filepath.Join(folder, tablesName))
	if err != nil {
		return nil, nil, fmt.Errorf("read index %s: %w", folder, err)
	}
	if t, err = decodeTables(raw); err != nil {
		return nil, nil, fmt.Errorf("read index %s: %w", folder, err)
	}
	if len(t.names) != items {
		return nil, nil, fmt.Errorf("index %s has tables of %d items", folder, len(t.names))
	}
	if index, err = openSegments(filepath.Join(folder, segmentsName)); err != nil {
		return nil, nil, fmt.Errorf("open index %s: %w", folder, err)
	}
	return index, t, nil
}

// buildFolder writes a generation: aside, flushed to the disk, then renamed. A
// damaged folder of that name is replaced. The caller holds the lease.
func buildFolder(ctx context.Context, parent, generation string, entries []entry) error {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	work, err := os.MkdirTemp(parent, buildingPrefix)
	if err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	done := filepath.Join(work, "done")
	if err := os.Mkdir(done, 0o700); err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	t, err := buildSegments(ctx, entries, filepath.Join(done, segmentsName), work)
	if err != nil {
		return fmt.Errorf("build an index of %d items: %w", len(entries), err)
	}
	if err := os.WriteFile(filepath.Join(done, tablesName), t.encode(), 0o600); err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	files, err := contents(done)
	if err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	raw, err := json.Marshal(manifest{generation, len(entries), files})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(done, manifestName), raw, 0o600); err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	if err := flush(done); err != nil {
		return fmt.Errorf("build an index: %w", err)
	}
	final := filepath.Join(parent, generation)
	if err := os.Rename(final, filepath.Join(work, "damaged")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace a damaged index: %w", err)
	}
	if err := os.Rename(done, final); err != nil {
		return fmt.Errorf("publish an index: %w", err)
	}
	_ = syncPath(parent)
	return nil
}

// contents reads all files of a folder but the manifest.
func contents(folder string) (map[string]file, error) {
	files := map[string]file{}
	buffer := make([]byte, 64<<10)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == manifestName {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = readFile(path, buffer)
		return err
	})
	return files, err
}

// readFile reads a file through a buffer: what is mapped later must not be
// brought into memory twice.
func readFile(path string, buffer []byte) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return file{}, err
	}
	defer func() { _ = f.Close() }()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	size, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, buffer)
	return file{size, sum.Sum32()}, err
}

// flush brings a folder and all in it to the disk.
func flush(folder string) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}

// generationName reports whether a name of a folder is that of a generation.
func generationName(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}
