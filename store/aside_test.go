package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// noise is no database.
var noise = bytes.Repeat([]byte("\x00\xffgarbage"), 456)

// spoilt are files that hold no database, or none that can be read, by what is
// said of them.
func spoilt() map[string]struct {
	make   func(t *testing.T, path string)
	reason string
} {
	return map[string]struct {
		make   func(t *testing.T, path string)
		reason string
	}{
		"noise":                {func(t *testing.T, path string) { write(t, path, noise) }, "it is not a database"},
		"short text":           {func(t *testing.T, path string) { write(t, path, []byte("no")) }, "it is not a database"},
		"noise after a header": {func(t *testing.T, path string) { write(t, path, append([]byte("SQLite format 3\x00"), noise...)) }, "it is not a database"},
		"damaged": {func(t *testing.T, path string) {
			database(t, path, "PRAGMA journal_mode = WAL; CREATE TABLE a (b)")
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, append(content[:100:100], bytes.Repeat([]byte{0xee}, len(content)-100)...))
		}, "it is damaged"},
	}
}

func TestSpoiltFileIsLeftAlone(t *testing.T) {
	for name, test := range spoilt() {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "mcpproxy.db")
			test.make(t, path)
			before := tree(t, root)
			_, err := Open(t.Context(), path, Options{})
			var unusable *UnusableError
			if !errors.As(err, &unusable) || unusable.Reason != test.reason || unusable.Hint == "" {
				t.Errorf("%v; want reason %q", err, test.reason)
			}
			if after := tree(t, root); !maps.Equal(before, after) {
				t.Errorf("files were changed: %q became %q", before, after)
			}
		})
	}
}

// keptFiles are those beside path that were moved aside.
func keptFiles(t *testing.T, path string) (kept []string) {
	t.Helper()
	all, err := filepath.Glob(path + ".unusable-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			kept = append(kept, name)
		}
	}
	return kept
}

func TestSpoiltFileIsMovedAside(t *testing.T) {
	for name, test := range spoilt() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcpproxy.db")
			test.make(t, path)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			now := time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.FixedZone("", 3600))
			db, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }, Mended: func(what string) { told = append(told, what) }})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			kept := path + ".unusable-20300102T020405.678Z"
			want := fmt.Sprintf("store %s was unusable: %s; it is kept as %s and a new one was made", db.Path(), test.reason, filepath.Base(kept))
			if len(told) != 1 || told[0] != want {
				t.Errorf("told %q; want %q", told, want)
			}
			if got, err := os.ReadFile(kept); !bytes.Equal(got, content) || err != nil {
				t.Errorf("kept are %d bytes, %v; want %d", len(got), err, len(content))
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("the new file: %v, %v", info, err)
			}
			if err := db.PutList(t.Context(), "k", []byte("v")); err != nil {
				t.Error(err)
			}
			expectList(t, open(t, path), "k", "v") // shared again
			check(t, db)
		})
	}
}

func TestNothingIsOverwrittenByWhatIsMovedAside(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "mcpproxy.db")
	write(t, path, noise)
	now := time.UnixMilli(1_800_000_000_000).UTC()
	write(t, path+".unusable-"+now.Format("20060102T150405.000Z"), []byte("of old"))
	before := tree(t, root)
	_, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }, Mended: func(what string) { t.Error(what) }})
	var unusable *UnusableError
	if !errors.As(err, &unusable) {
		t.Error(err)
	}
	if after := tree(t, root); !maps.Equal(before, after) {
		t.Errorf("files were changed: %q became %q", before, after)
	}
}

func TestOneOfManyProcessesMovesAFileAside(t *testing.T) {
	for range 3 {
		path := filepath.Join(t.TempDir(), "mcpproxy.db")
		write(t, path, noise)
		moved := 0
		for _, output := range processes(t, 8, "open", func(int) []string { return []string{path} }) {
			moved += strings.Count(output, "it is kept as")
			if !strings.HasSuffix(output, "opened\n") {
				t.Errorf("a process did not go on with the new file: %s", output)
			}
		}
		kept := keptFiles(t, path)
		if moved != 1 || len(kept) != 1 {
			t.Fatalf("it was said %d times, and %q are kept", moved, kept)
		}
		if got, err := os.ReadFile(kept[0]); !bytes.Equal(got, noise) || err != nil {
			t.Errorf("kept are %d bytes, %v", len(got), err)
		}
		check(t, open(t, path))
	}
}

// roleFollow writes to the file args[0] when the gang begins.
func roleFollow(args []string) error {
	ctx := context.Background()
	db, err := Open(ctx, args[0], Options{Mended: func(what string) { fmt.Println(what) }})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := readAll(ctx, db); err != nil {
		return err
	}
	awaitStart()
	return db.PutList(ctx, args[1], []byte("of the survivor"))
}

// The file turns to garbage under processes that have it open. Whoever comes
// next moves it aside, and all meet again in the new one.
func TestFileIsSpoiltWhileInUse(t *testing.T) {
	db := fresh(t)
	if _, _, err := db.ReplaceItems(t.Context(), Key{Name: "s"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.pool.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	path := db.Path()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	gang := gather(t, 3, "follow", func(i int) []string { return []string{path, fmt.Sprint("k", i)} })
	write(t, path, noise)
	if texts := processes(t, 1, "open", func(int) []string { return []string{path} }); !strings.Contains(texts[0], "it is kept as") {
		t.Errorf("%q", texts)
	}
	kept := keptFiles(t, path)
	if len(kept) != 1 {
		t.Fatalf("%q are kept", kept)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if _, err := os.Stat(kept[0] + suffix); err != nil {
			t.Error(err)
		}
	}
	for i, output := range gang.run(t) {
		if strings.Count(output, "\n") != 1 || !strings.Contains(output, "going on with the one that is there now") {
			t.Errorf("process %d said %q", i, output)
		}
	}
	again := open(t, path)
	for i := range 3 {
		expectList(t, again, fmt.Sprint("k", i), "of the survivor")
	}
	check(t, again)
}
