package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func tool(server, name string) *Item {
	return New(Ref{server, Tool, name}, json.RawMessage(`{"name":`+fmt.Sprintf("%q", name)+`}`), nil)
}

func serverOf(name, prefix string, tools ...string) *Server {
	s := &Server{Name: name, Prefix: prefix, Known: true}
	for _, t := range tools {
		s.Tools = append(s.Tools, tool(name, t))
	}
	return s
}

// randomName is short, so that names collide, or long, or of any characters.
func randomName(r *rand.Rand) string {
	const plain = "ab_-"
	length := 1 + r.IntN(6)
	if r.IntN(4) == 0 {
		length = 40 + r.IntN(120)
	}
	var b strings.Builder
	for range length {
		switch r.IntN(12) {
		case 0:
			b.WriteRune(rune(r.IntN(0x3000)))
		case 1:
			b.WriteByte(" .:/9A"[r.IntN(6)])
		default:
			b.WriteByte(plain[r.IntN(len(plain))])
		}
	}
	return b.String()
}

func randomServers(r *rand.Rand) []*Server {
	var servers []*Server
	for i := range 1 + r.IntN(4) {
		name := fmt.Sprintf("%s%d", []string{"a", "a-b", "A", strings.Repeat("long-", 12)}[r.IntN(4)], i)
		prefix := name
		if r.IntN(3) == 0 {
			prefix = "a" // an alias that several servers may have
		}
		tools := map[string]bool{}
		for range r.IntN(30) {
			tools[randomName(r)] = true
		}
		servers = append(servers, serverOf(name, prefix, slices.Sorted(maps.Keys(tools))...))
	}
	return servers
}

// TestNamesHoldTheRule makes names of thousands of random tools and checks what
// every client relies on.
func TestNamesHoldTheRule(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 600 {
		servers := randomServers(r)
		max := []int{MinMaxName, 46, 49, DefaultMaxName, 113}[r.IntN(5)]
		names, again := NewSnapshot(servers).Names(Tool, max), NewSnapshot(servers).Names(Tool, max)
		seen := map[string]*Item{}
		plainTaken := map[string]bool{}
		for _, s := range servers {
			for _, item := range s.Tools {
				public := names.Public(item)
				plain := s.Prefix + Separator + item.Name
				switch {
				case !legal.MatchString(public):
					t.Errorf("round %d: %q is no legal name", round, public)
				case len(public) > max:
					t.Errorf("round %d: %q has more than %d bytes", round, public, max)
				case seen[public] != nil:
					t.Errorf("round %d: %v and %v share %q", round, seen[public].Ref, item.Ref, public)
				case again.Public(item) != public:
					t.Errorf("round %d: %v is %q and %q", round, item.Ref, public, again.Public(item))
				case names.Lookup(public) != item:
					t.Errorf("round %d: %q leads to %v", round, public, names.Lookup(public))
				case legal.MatchString(plain) && len(plain) <= max && !plainTaken[plain] && public != plain:
					t.Errorf("round %d: %q became %q", round, plain, public)
				}
				seen[public] = item
				plainTaken[plain] = true
			}
		}
	}
}

// TestNamesDoNotDependOnOthers checks that a tool keeps its name when servers
// come and go, as long as no plain name is in its way.
func TestNamesDoNotDependOnOthers(t *testing.T) {
	odd := serverOf("s", "s", "查询天气", strings.Repeat("x", 90), "a.b", "plain")
	alone := NewSnapshot([]*Server{odd}).Names(Tool, 64)
	beside := NewSnapshot([]*Server{serverOf("r", "r", "a.b", "查询天气"), odd, serverOf("t", "t", "plain")}).Names(Tool, 64)
	for _, item := range odd.Tools {
		if a, b := alone.Public(item), beside.Public(item); a != b {
			t.Errorf("%q is %q alone and %q beside others", item.Name, a, b)
		}
	}
}

// TestNamesFixed pins names down: a client may have them in rules and in
// conversations.
func TestNamesFixed(t *testing.T) {
	s := serverOf("github", "github", "create_issue", "create.issue", "查询天气", strings.Repeat("long-", 20), "a__b")
	s.Tools = append(s.Tools, New(Ref{"github", Tool, "renamed"}, json.RawMessage(`{}`), &Override{Name: "better"}))
	names := NewSnapshot([]*Server{s}).Names(Tool, 64)
	want := []string{
		"github__create_issue", "github__create_issue_gfy64fr3", "github____2f6tdr2o",
		"github__long-long-long-long-long-long-long-long-long-lo_s5vycnko", "github__a__b", "github__better",
	}
	var got []string
	for _, item := range names.Ordered() {
		got = append(got, names.Public(item))
	}
	if !slices.Equal(got, want) {
		t.Errorf("\ngot  %q\nwant %q", got, want)
	}
}

// TestNamesCollide takes a plain name that looks like a mangled one: the plain
// name stays.
func TestNamesCollide(t *testing.T) {
	mangled := NewSnapshot([]*Server{serverOf("s", "s", "a.b")}).Names(Tool, 64).Public(tool("s", "a.b"))
	s := serverOf("s", "s", "a.b", strings.TrimPrefix(mangled, "s__"))
	names := NewSnapshot([]*Server{s}).Names(Tool, 64)
	if got := names.Public(s.Tools[1]); got != mangled {
		t.Errorf("the plain name %q became %q", mangled, got)
	}
	if got := names.Public(s.Tools[0]); got == mangled || names.Lookup(got) != s.Tools[0] {
		t.Errorf("the other one is %q", got)
	}
}

func TestMaxName(t *testing.T) {
	for _, c := range []struct {
		client     string
		configured int
		want       int
	}{
		{"", 0, 64}, {"somebody", 0, 64}, {"claude-code", 0, 113}, {"Claude-Code", 0, 113}, {"claude-ai", 0, 64},
		{"codex-mcp-client", 0, 49}, {"Visual Studio Code", 0, 46}, {"Visual Studio Code - Insiders", 0, 46}, {"cursor-vscode", 0, 51},
		{"gemini-cli-mcp-client", 0, 50}, {"opencode", 0, 55},
		{"claude-code", 40, 40}, {"opencode", 200, 200}, {"", 1, MinMaxName},
	} {
		if got := MaxName(c.client, c.configured); got != c.want {
			t.Errorf("MaxName(%q, %d) is %d, want %d", c.client, c.configured, got, c.want)
		}
	}
}

func TestSplitPublic(t *testing.T) {
	for public, want := range map[string][2]string{"a__b": {"a", "b"}, "a__b__c": {"a", "b__c"}, "a___b": {"a", "_b"}, "__b": {"", "b"}, "a__": {"a", ""}} {
		if prefix, name, ok := SplitPublic(public); !ok || prefix != want[0] || name != want[1] {
			t.Errorf("%q is %q and %q", public, prefix, name)
		}
	}
	if _, _, ok := SplitPublic("a_b"); ok {
		t.Error("a_b was split")
	}
}
