package index

import (
	"context"
	"fmt"

	"github.com/blevesearch/bleve/v2/index/scorch"
	api "github.com/blevesearch/bleve_index_api"

	"mcpproxy/mcp/catalog"
)

// analysts is how many documents bleve takes in at once.
const analysts = 2

// readEntries reads the items but those that are known, until ctx ends.
func readEntries(ctx context.Context, items []*catalog.Item, servers map[string]Server, known map[origin]entry) ([]entry, error) {
	s := newStemmer()
	entries := make([]entry, len(items))
	for i, it := range items {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		server := servers[it.Server]
		if len(known) > 0 {
			if e, ok := known[originOf(it, server)]; ok {
				entries[i] = e
				continue
			}
		}
		entries[i] = newEntry(s, it, server)
	}
	return entries, nil
}

// buildInMemory indexes entries in the memory of the process.
func buildInMemory(entries []entry) (api.Index, *tables, error) {
	queue := api.NewAnalysisQueue(analysts)
	defer queue.Close()
	index, err := scorch.NewScorch(scorch.Name, map[string]any{"path": ""}, queue)
	if err != nil {
		return nil, nil, fmt.Errorf("make an index in memory: %w", err)
	}
	if err := index.Open(); err != nil {
		return nil, nil, fmt.Errorf("open an index in memory: %w", err)
	}
	batch := api.NewBatch()
	for i := range entries {
		batch.Update(entries[i].bleve(i))
	}
	t := measure(entries)
	if len(entries) > 0 {
		err = index.Batch(batch)
	}
	if err == nil {
		err = withReader(index, t.readOrder)
	}
	if err != nil {
		_ = index.Close()
		return nil, nil, fmt.Errorf("index %d items in memory: %w", len(entries), err)
	}
	return index, t, nil
}

// buildSegments indexes entries into a folder that is not there yet; work is a
// folder for what is in between.
func buildSegments(ctx context.Context, entries []entry, folder, work string) (*tables, error) {
	builder, err := scorch.NewBuilder(map[string]any{
		"path": folder, "buildPathPrefix": work, "batchSize": len(entries) + 1,
	})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := builder.Index(entries[i].bleve(i)); err != nil {
			return nil, err
		}
	}
	if err := builder.Close(); err != nil {
		return nil, err
	}
	index, err := openSegments(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = index.Close() }()
	t := measure(entries)
	return t, withReader(index, t.readOrder)
}

// openSegments opens a built folder for reading, beside any number of others.
func openSegments(folder string) (api.Index, error) {
	// Without a limit a writer, which there should not be, is waited for without end.
	index, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": folder, "read_only": true, "bolt_timeout": "500ms",
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := index.Open(); err != nil {
		return nil, err
	}
	return index, nil
}

func withReader(index api.Index, do func(api.IndexReader) error) error {
	reader, err := index.Reader()
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	return do(reader)
}
