package index

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestSameEverywhere ranks in memory, from a folder, from a folder built again,
// and in other processes.
func TestSameEverywhere(t *testing.T) {
	source := invented(700)
	folder := t.TempDir()
	memory := open(t, source, Options{})
	first := open(t, shuffled(source), Options{Folder: folder, Lease: granted})
	again := open(t, source, Options{Folder: t.TempDir(), Lease: granted})
	if memory.InFolder() || !first.InFolder() || !again.InFolder() || memory.Generation() != first.Generation() {
		t.Fatal("the indexes are not where they should be")
	}
	queries := []string{"create issue", "serch the playlists", "thing 17", "server3:list_thing_3", "param4 number of many", "xyzzy"}
	for _, query := range queries {
		want := ranking(search(t, memory, Query{Text: query, Limit: 100}))
		for name, x := range map[string]*Index{"folder": first, "second folder": again} {
			if got := ranking(search(t, x, Query{Text: query, Limit: 100})); !slices.Equal(got, want) {
				t.Errorf("%q: %s ranks\n%q\nmemory\n%q", query, name, got, want)
			}
		}
		out, err := exec.Command(os.Args[0], "search", folder, query).Output()
		if err != nil {
			t.Fatalf("search process: %v %s", err, out)
		}
		var got []string
		if err := json.Unmarshal(out, &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: another process ranks\n%q\nmemory\n%q (%v)", query, got, want, err)
		}
	}
}

func TestGeneration(t *testing.T) {
	base := invented(10)
	if base.Generation() != shuffled(base).Generation() || !generationName(base.Generation()) {
		t.Error("the order of the items changes the generation")
	}
	seen := map[string]bool{base.Generation(): true}
	for _, other := range []Source{
		invented(11),
		{base.Items, map[string]Server{"server1": {Prefix: "x"}}},
		{base.Items, map[string]Server{"server1": {Description: "x"}}},
		{append(slices.Clone(base.Items[1:]), tool("server0", "create_thing_0", "changed")), nil},
	} {
		if g := other.Generation(); seen[g] {
			t.Error("another source has the same generation")
		} else {
			seen[g] = true
		}
	}
}

func TestSmallNeedsNoFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "index")
	open(t, invented(Small), Options{Folder: folder, Lease: granted})
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("a small index left %v", err)
	}
}

func TestWithoutTheLease(t *testing.T) {
	folder := t.TempDir()
	for _, lease := range []func(context.Context) (func(), bool){nil, refused} {
		x := open(t, invented(400), Options{Folder: folder, Lease: lease})
		if x.InFolder() || len(search(t, x, Query{Text: "issue"}).Hits) == 0 {
			t.Error("without the lease the index is not searched in memory")
		}
	}
	if found, _ := os.ReadDir(folder); len(found) != 0 {
		t.Errorf("without the lease %v was written", found)
	}
}

// TestDamage changes a built folder in every way and wants the same answers.
func TestDamage(t *testing.T) {
	source := invented(400)
	want := ranking(search(t, open(t, source, Options{}), Query{Text: "create issue"}))
	segment := filepath.Join(segmentsName, "000000000002.zap")
	change := func(name string, do func([]byte) []byte) func(string) error {
		return func(folder string) error {
			path := filepath.Join(folder, name)
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, do(bytes.Clone(raw)), 0o600)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 0xff; return b }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for name, damage := range map[string]func(string) error{
		"folder gone":        os.RemoveAll,
		"no manifest":        func(f string) error { return os.Remove(filepath.Join(f, manifestName)) },
		"manifest cut":       change(manifestName, half),
		"manifest of others": change(manifestName, func([]byte) []byte { return []byte(`{"generation":"x","items":1}`) }),
		"manifest of less":   change(manifestName, func(b []byte) []byte { return bytes.Replace(b, []byte("400"), []byte("300"), 1) }),
		"tables cut":         change(tablesName, half),
		"no tables":          func(f string) error { return os.Remove(filepath.Join(f, tablesName)) },
		"segment changed":    change(segment, flip),
		"segment cut":        change(segment, half),
		"segment empty":      change(segment, func([]byte) []byte { return nil }),
		"segment gone":       func(f string) error { return os.Remove(filepath.Join(f, segment)) },
		"root changed":       change(filepath.Join(segmentsName, "root.bolt"), flip),
		"a file instead": func(f string) error {
			if err := os.RemoveAll(f); err != nil {
				return err
			}
			return os.WriteFile(f, []byte("x"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			o := Options{Folder: parent, Lease: granted, Warn: func(err error) { t.Error(err) }}
			x, err := Open(t.Context(), source, o)
			if err != nil || x.Close() != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(parent, x.Generation())); err != nil {
				t.Fatal(err)
			}
			x = open(t, source, Options{Folder: parent, Lease: refused})
			if x.InFolder() {
				t.Error("the damaged folder is used")
			}
			if got := ranking(search(t, x, Query{Text: "create issue"})); !slices.Equal(got, want) {
				t.Errorf("beside a damaged folder: %q", got)
			}
			x = open(t, source, o)
			if !x.InFolder() {
				t.Error("the folder is not built again")
			}
			if got := ranking(search(t, x, Query{Text: "create issue"})); !slices.Equal(got, want) {
				t.Errorf("after the damage: %q", got)
			}
			if found, _ := os.ReadDir(parent); len(found) != 1 {
				t.Errorf("left over: %v", found)
			}
		})
	}
}

func TestFolderThatCannotBe(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var warned error
	x := open(t, invented(400), Options{Folder: parent, Lease: granted, Warn: func(err error) { warned = err }})
	if x.InFolder() || warned == nil || len(search(t, x, Query{Text: "issue"}).Hits) == 0 {
		t.Errorf("in folder %v, warned %v", x.InFolder(), warned)
	}
}

// TestSweep keeps what is in use, a few spares and what is under construction.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	o := Options{Folder: parent, Lease: granted}
	used := open(t, invented(301), o)
	var made []string
	for n := 302; n <= 306; n++ {
		x, err := Open(t.Context(), invented(n), o)
		if err != nil || x.Close() != nil {
			t.Fatal(err)
		}
		made = append(made, x.Generation())
		// The age of a generation is that of its folder; make it differ.
		at := time.Now().Add(time.Duration(n-400) * time.Minute)
		if err := os.Chtimes(filepath.Join(parent, x.Generation()), at, at); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(filepath.Join(parent, used.Generation()), at, at); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 2 * abandonedAfter, "new": 0} {
		folder := filepath.Join(parent, buildingPrefix+name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(folder, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(parent, "somebody's"), 0o700); err != nil {
		t.Fatal(err)
	}
	last := open(t, invented(307), o)
	found, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, each := range found {
		got = append(got, each.Name())
	}
	want := append([]string{used.Generation(), last.Generation(), buildingPrefix + "new", "somebody's"}, made[len(made)-spare:]...)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	if len(search(t, used, Query{Text: "issue"}).Hits) == 0 {
		t.Error("the index in use finds nothing any more")
	}
}

// TestOneBuilds opens many at once with a lease that one has at a time.
func TestOneBuilds(t *testing.T) {
	parent := t.TempDir()
	var mu sync.Mutex
	built := 0
	lease := func(context.Context) (func(), bool) {
		if !mu.TryLock() {
			return nil, false
		}
		built++
		return mu.Unlock, true
	}
	source := invented(400)
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			x, err := Open(t.Context(), source, Options{Folder: parent, Lease: lease, Warn: func(err error) { t.Error(err) }})
			if err != nil {
				t.Error(err)
				return
			}
			if result, err := x.Search(t.Context(), Query{Text: "issue", Limit: 3}); err != nil || len(result.Hits) != 3 {
				t.Errorf("%v %v", result, err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if found, _ := os.ReadDir(parent); len(found) != 1 || built == 0 {
		t.Errorf("%d builds left %v", built, found)
	}
}
