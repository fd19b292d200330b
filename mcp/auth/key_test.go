package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOpenKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	if _, err := ReadKey(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is not there: %v", err)
	}
	key, made, err := OpenKey(dir)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	again, made, err := OpenKey(dir)
	if err != nil || made || again.ID() != key.ID() {
		t.Errorf("the second time: made %v, %v", made, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
	other, _, err := OpenKey(t.TempDir())
	if err != nil || other.ID() == key.ID() {
		t.Errorf("two folders have one key, %v", err)
	}
	if (Key{}).ID() != 0 || key.ID() <= 0 {
		t.Errorf("ids: %d, %d", Key{}.ID(), key.ID())
	}
	if key.MAC("a", []byte("b")) == key.MAC("ab", nil) || key.MAC("a", []byte("b")) == other.MAC("a", []byte("b")) {
		t.Error("macs are the same")
	}
}

// TestProcessesAgreeOnKey starts many at once: one makes the key, all have it.
func TestProcessesAgreeOnKey(t *testing.T) {
	agree(t, together(t, 8, "key", filepath.Join(t.TempDir(), "data")), "true", 1)
}

// agree checks lines of "ID WORD": one ID, and so many times that word.
func agree(t *testing.T, lines []string, word string, times int) {
	t.Helper()
	ids, n := map[string]bool{}, 0
	for _, line := range lines {
		id, what, _ := strings.Cut(line, " ")
		ids[id] = true
		if what == word {
			n++
		}
	}
	if len(ids) != 1 || n != times {
		t.Errorf("they said %q", lines)
	}
}

// TestKeyWithoutLinks makes keys where the file system has no links.
func TestKeyWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	none := func(string, string) error { return errors.ErrUnsupported }
	if made, err := makeKey(filepath.Join(dir, KeyFile), none); !made || err != nil {
		t.Fatal(made, err)
	}
	key, err := ReadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := makeKey(filepath.Join(dir, KeyFile), none); made || err != nil {
		t.Errorf("over the first: %v, %v", made, err)
	}
	if again, err := ReadKey(dir); err != nil || again.ID() != key.ID() {
		t.Errorf("another key, %v", err)
	}
}

// TestKeyUnderWay reads a key file that somebody is just writing.
func TestKeyUnderWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, KeyFile)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(50*time.Millisecond, func() {
		if err := os.WriteFile(path, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	})
	defer timer.Stop()
	if key, err := ReadKey(dir); err != nil || key.ID() == 0 {
		t.Error(err)
	}
}

func TestDamagedKey(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "short": "abcd\n", "long": strings.Repeat("a", 66), "no hex": strings.Repeat("x", 64), "huge": strings.Repeat("a", 10_000),
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, KeyFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, made, err := OpenKey(dir)
		var file *FileError
		if !errors.As(err, &file) || made || file.Path != path || file.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: it was changed, %v", name, err)
		}
		if text != "" && strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s: the error shows it", name)
		}
	}
}
