package catalogue_test

import (
	"encoding/json"
	"testing"

	"mcpproxy/mcp/catalog"
	"mcpproxy/testdata/catalogue"
)

// TestRecorded holds the manifest against the files, and that nothing of what was
// recorded has to be mended before clients can use it.
func TestRecorded(t *testing.T) {
	manifest, err := catalogue.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, server := range catalogue.Load(t) {
		entry := manifest[i]
		if server.Name != entry.Name || len(server.Tools) != entry.Tools || entry.Version == "" || entry.Date == "" {
			t.Errorf("%s: %d tools, where the manifest says %+v", server.Name, len(server.Tools), entry)
		}
		total += len(server.Tools)
		text, err := catalogue.Tools(server.Name)
		if err != nil {
			t.Fatal(err)
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(text, &elements); err != nil {
			t.Fatal(err)
		}
		if _, warnings := catalog.Ingest(server.Name, catalog.Tool, elements); len(warnings) > 0 {
			t.Errorf("%v", warnings)
		}
	}
	if len(manifest) < 15 || total < 500 {
		t.Errorf("%d tools of %d servers", total, len(manifest))
	}
}
