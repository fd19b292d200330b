package policy

import (
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// TestUnlistedItems: what is used by a name that nobody was seen to list is let
// through where it can be no way around the review.
func TestUnlistedItems(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcpproxy.db")
	open := func() (*Approvals, func()) {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return NewApprovals(ApprovalOptions{
			Store: func() *store.DB { return db }, DataDir: dir, AutoApprove: func(server string) bool { return server == "auto" },
		}), func() { db.Close() }
	}
	unlisted := func(server string, kind catalog.Kind) *catalog.Item {
		return &catalog.Item{Ref: catalog.Ref{Server: server, Kind: kind, Name: "x:never seen"}}
	}
	check := func(a *Approvals, when, server string, tool, prompt, resource bool) {
		t.Helper()
		for kind, want := range map[catalog.Kind]bool{catalog.Tool: tool, catalog.Prompt: prompt, catalog.Resource: resource} {
			if got := a.Allows(unlisted(server, kind)); got != want {
				t.Errorf("%s: %s of server %s: %v", when, kind, server, got)
			}
		}
	}
	server := func(name string) *catalog.Server {
		s := &catalog.Server{Name: name, Prefix: name, Known: true, Unread: []catalog.Kind{catalog.Prompt}}
		s.SetItems(catalog.Tool, []*catalog.Item{catalog.New(catalog.Ref{Server: name, Kind: catalog.Tool, Name: "t"}, []byte(`{"name":"t"}`), nil)})
		return s
	}

	a, end := open()
	if _, err := a.Judge(t.Context(), catalog.NewSnapshot([]*catalog.Server{server("s"), server("auto")})); err != nil {
		t.Fatal(err)
	}
	check(a, "never read", "other", true, true, true)
	check(a, "its tools were read", "s", false, true, true)
	check(a, "approved as it comes", "auto", true, true, true)
	end()

	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	a, end = open()
	defer end()
	// Another server than the one that is asked for is read first.
	if _, err := a.Judge(t.Context(), catalog.NewSnapshot([]*catalog.Server{server("other")})); err != nil {
		t.Fatal(err)
	}
	check(a, "the store is lost", "s", false, false, false)
	check(a, "the store is lost, of a trusted server", "auto", true, true, true)
	if !a.Allows(&catalog.Item{Ref: catalog.Ref{Server: "s", Kind: catalog.Resource}}) {
		t.Error("the server as a whole is not looked at")
	}
}
