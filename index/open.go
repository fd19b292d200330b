package index

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	api "github.com/blevesearch/bleve_index_api"

	"mcpproxy/mcp/catalog"
)

// Small is the number of items up to which an index is built in memory: that
// takes less time than a folder is worth.
const Small = 300

// Options say where an index of more than Small items may lie.
type Options struct {
	// Folder holds the generations, <data_dir>/index; "" = always in memory.
	Folder string
	// Lease asks for the right to write into Folder, which one process has at a
	// time, and does not wait for it. release gives it back. nil = never held.
	Lease func(ctx context.Context) (release func(), held bool)
	// Warn is told what stands in the way of a folder, and once of a Scorer that
	// fails; the search works without. nil = nobody.
	Warn func(error)
	// Scorer is a second opinion on the best hits, nil = none. Its share in a
	// score is ScorerWeight times its own, of the best score by words.
	Scorer       Scorer
	ScorerWeight float64
}

// Index ranks the items of one Source. Its methods may be used by several
// goroutines at once.
type Index struct {
	items      []*catalog.Item // by name: the order of equal scores
	servers    map[string]Server
	generation string
	inFolder   bool
	index      api.Index
	tables     *tables
	scratch    sync.Pool // of *scratch
	second     *second   // nil = words alone
	entries    []entry   // of the items of a small index, for Next

	// mu is read-locked by searches, so that Close waits for them: a segment
	// must not be unmapped under a reader.
	mu     sync.RWMutex
	closed bool
}

// Open gives the index of a Source: from its folder, where a sound one is
// there; else built, into the folder if the lease is to be had, and in memory
// if not. It fails only when ctx ends or memory does not suffice. The caller
// closes it.
func Open(ctx context.Context, source Source, o Options) (*Index, error) {
	return openAfter(ctx, nil, source, o)
}

// Next gives the index of another Source, as Open does, but reads only those
// items anew that differ, where both are small. It is x itself when nothing
// differs; otherwise the caller closes both. When it is x itself, the options
// of x stay.
func (x *Index) Next(ctx context.Context, source Source, o Options) (*Index, error) {
	return openAfter(ctx, x, source, o)
}

func openAfter(ctx context.Context, last *Index, source Source, o Options) (*Index, error) {
	items := source.ordered()
	x := &Index{items: items, servers: source.Servers, generation: source.generation(items)}
	if last != nil && last.generation == x.generation && slices.EqualFunc(last.items, items, equalAnnotations) {
		return last, nil
	}
	x.scratch.New = func() any { return newScratch(len(items)) }
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	if o.Scorer != nil && o.ScorerWeight > 0 {
		var once sync.Once
		failed := func(err error) { once.Do(func() { o.Warn(err) }) }
		x.second = &second{o.Scorer, o.ScorerWeight, patience, failed}
	}
	if o.Folder != "" && len(items) > Small && x.fromFolder(ctx, o) {
		return x, nil
	}
	entries, err := readEntries(ctx, items, source.Servers, last.read())
	if err != nil {
		return nil, err
	}
	x.index, x.tables, err = buildInMemory(entries)
	if err != nil {
		return nil, err
	}
	if len(items) <= Small {
		x.entries = entries
	}
	return x, nil
}

// origin is all of which an entry is made.
type origin struct {
	ref               catalog.Ref
	hash              string
	name, description string // of the override
	server            Server
}

func originOf(it *catalog.Item, server Server) origin {
	o := origin{ref: it.Ref, hash: it.Hash(), server: server}
	if it.Override != nil {
		o.name, o.description = it.Override.Name, it.Override.Description
	}
	return o
}

// equalAnnotations reports whether two items of one generation pass the same
// filters: replaced annotations are no part of a generation.
func equalAnnotations(a, b *catalog.Item) bool {
	return a == b || bytes.Equal(a.Annotations(), b.Annotations())
}

// read is what was read of the items of a small index.
func (x *Index) read() map[origin]entry {
	if x == nil {
		return nil
	}
	known := make(map[origin]entry, len(x.entries))
	for i, e := range x.entries {
		it := x.items[i]
		known[originOf(it, x.servers[it.Server])] = e
	}
	return known
}

// fromFolder opens the folder of the generation, and builds it before if it has
// to and may.
func (x *Index) fromFolder(ctx context.Context, o Options) bool {
	if x.openFolder(o.Folder) == nil {
		return true
	}
	if o.Lease == nil {
		return false
	}
	release, held := o.Lease(ctx)
	if !held {
		return false
	}
	defer release()
	// Another holder of the lease may have built it since.
	if x.openFolder(o.Folder) == nil {
		return true
	}
	entries, err := readEntries(ctx, x.items, x.servers, nil)
	if err == nil {
		err = buildFolder(ctx, o.Folder, x.generation, entries)
	}
	if err == nil {
		err = x.openFolder(o.Folder)
	}
	if err != nil {
		o.Warn(err)
		return false
	}
	sweep(o.Folder, x.generation)
	return true
}

func (x *Index) openFolder(parent string) error {
	index, t, err := openFolder(parent, x.generation, len(x.items))
	if err != nil {
		return err
	}
	x.index, x.tables, x.inFolder = index, t, true
	return nil
}

// Generation names what is indexed, as Source.Generation does.
func (x *Index) Generation() string { return x.generation }

// InFolder reports whether the index is read from a folder that others read too.
func (x *Index) InFolder() bool { return x.inFolder }

// Len is the number of items.
func (x *Index) Len() int { return len(x.items) }

// Close gives the files back once the searches under way have ended.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	if err := x.index.Close(); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return nil
}
