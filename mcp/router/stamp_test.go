package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/store"
)

// namedCaller is a caller of the table of stamps.
type namedCaller struct {
	name string
	auth.Caller
}

// pageCallers are who got what is kept, and who reads it.
func pageCallers() []namedCaller {
	agent := func(tier catalog.Tier, pin, profile string, servers ...string) auth.Caller {
		c := auth.Caller{Kind: auth.Agent, Token: "t", Tier: tier, Pin: pin, Profile: profile, Servers: servers}
		if len(servers) == 1 && servers[0] == "*" {
			c.All, c.Servers = true, nil
		}
		return c
	}
	admin := func(profile string) auth.Caller {
		c := auth.Local()
		c.Profile = profile
		return c
	}
	anonymous := func(profile string) auth.Caller {
		return auth.Caller{Kind: auth.Anonymous, All: true, Tier: catalog.Destructive, Profile: profile}
	}
	return []namedCaller{
		{"admin", admin("")}, {"admin/s", admin("s-only")}, {"admin/s-read", admin("s-read")},
		{"admin/both", admin("both")}, {"admin/o", admin("o-only")}, {"admin/gone", admin("gone")},
		{"all", agent(catalog.Destructive, "", "", "*")}, {"all-read", agent(catalog.Read, "", "", "*")},
		{"s", agent(catalog.Destructive, "", "", "s")}, {"s-write", agent(catalog.Write, "", "", "s")},
		{"s-read", agent(catalog.Read, "", "", "s")}, {"o+s", agent(catalog.Destructive, "", "", "o", "s")},
		{"o", agent(catalog.Destructive, "", "", "o")}, {"none", agent(catalog.Destructive, "", "")},
		{"all/s", agent(catalog.Destructive, "", "s-only", "*")}, {"all/both", agent(catalog.Destructive, "", "both", "*")},
		{"pin-s", agent(catalog.Destructive, "s-only", "s-only", "*")}, {"pin-both", agent(catalog.Destructive, "both", "both", "*")},
		{"pin-gone", agent(catalog.Destructive, "gone", "gone", "*")},
		{"anon", anonymous("")}, {"anon/s", anonymous("s-only")},
		{"internal", auth.Caller{Kind: auth.Internal, All: true, Tier: catalog.Destructive}}, {"nobody", auth.Caller{}},
	}
}

// putHead keeps a page with a head of our own.
func (k *keeper) putHead(t testing.TB, key, head string) {
	t.Helper()
	page := store.Page{Key: lookupKey(key), Head: head, ExpiresAt: k.now.Add(time.Hour), Parts: partsOfText([]byte("text"))}
	if err := k.db.PutPages(t.Context(), k.now, 1<<20, page); err != nil {
		t.Fatal(err)
	}
}

// TestStamps has everybody read what everybody got, and compares with
// testdata/stamps.txt: r is read, e refused with an explanation, - as if there were
// nothing.
func TestStamps(t *testing.T) {
	k := keeping(t, 500)
	long := textOfResult(strings.Repeat("text ", 200))
	keys := map[string]string{}
	var rows []string
	keep := func(name, tool string, caller auth.Caller) {
		keys1, _ := keysIn(t, textsOf(k.Fit(t.Context(), asking(caller), k.tool(tool), json.RawMessage(long))))
		if len(keys1) != 1 {
			t.Fatalf("%s: %d keys", name, len(keys1))
		}
		rows, keys[name] = append(rows, name), keys1[0]
	}
	for _, c := range pageCallers() {
		keep(c.name, "r", c.Caller)
	}
	for _, c := range pageCallers() {
		if c.name == "admin" || c.name == "s-write" || c.name == "anon" {
			keep(c.name+" of a write tool", "w", c.Caller)
			keep(c.name+" of a destructive tool", "d", c.Caller)
		}
	}
	odd := []struct{ name, head string }{
		{"without a stamp", `{"limit":500,"total":4}`},
		{"of another kind", `{"stamp":{"kind":"root","all":true,"tier":"read","server":"s","item":"r","item_kind":"tool","needed":"read"},"limit":500,"total":4}`},
		{"without a server", `{"stamp":{"kind":"agent","all":true,"tier":"read","item":"r","item_kind":"tool","needed":"read"},"limit":500,"total":4}`},
		{"no JSON", `{"stamp`},
	}
	for _, o := range odd {
		rows, keys[o.name] = append(rows, o.name), o.name
	}
	rows, keys["missing"] = append(rows, "missing"), "0123456789abcdef0123456789abcdef"

	var table strings.Builder
	table.WriteString("# who reads (across) what whom got (down): r read, e refused with an explanation, - as if there were nothing\n")
	fmt.Fprintf(&table, "%-32s", "")
	for _, reader := range pageCallers() {
		fmt.Fprintf(&table, " %-12s", reader.name)
	}
	for _, row := range rows {
		fmt.Fprintf(&table, "\n%-32s", row)
		for _, reader := range pageCallers() {
			for _, o := range odd { // it is gone after the first reading
				if o.name == row {
					k.gone(t, o.name)
					k.putHead(t, o.name, o.head)
				}
			}
			answer, failed := k.ask(t, reader.Caller, fmt.Sprintf(`{"key":%q}`, keys[row]))
			cell := "r"
			switch {
			case failed && answer == notFound:
				cell = "-"
			case failed:
				cell = "e"
			}
			fmt.Fprintf(&table, " %-12s", cell)
		}
	}
	for _, o := range odd {
		k.gone(t, o.name)
	}
	compareTable(t, "testdata/stamps.txt", table.String())
}

// gone holds that a page that nobody could ever read is removed when somebody tried.
func (k *keeper) gone(t testing.TB, key string) {
	t.Helper()
	if err := k.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found, err := k.db.Page(t.Context(), lookupKey(key)); found || err != nil {
		t.Fatalf("page %s is there, %v", key, err)
	}
}
