//go:build unix

package cli_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readCall is the call of read_cache as a notice names it.
var readCall = regexp.MustCompile(`read_cache (\{"key": "([0-9a-f]{32})", "offset": \d+\})`)

// pageOf calls a tool whose result is cut and returns the key of the rest.
func pageOf(t *testing.T, p *proxy, name string) string {
	t.Helper()
	m := p.through("read", name, "{}")
	named := readCall.FindStringSubmatch(m.text())
	if refusalOf(m) != "" || named == nil {
		t.Fatalf("%s names no key: %s", name, shorten(m.Raw))
	}
	return named[2]
}

// readCache reads a page.
func (p *proxy) readCache(key string, offset int) message {
	p.t.Helper()
	return p.tool("read_cache", fmt.Sprintf(`{"key":%q,"offset":%d}`, key, offset))
}

// keysOf are the members of an object.
func keysOf(t *testing.T, object json.RawMessage) []string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	return slices.Sorted(maps.Keys(members))
}

// notFound is all that a limited caller is told of pages.
const notFound = "cache key not found"

// TestAttackCachedPages: others than those who could have got a result themselves
// try to read on in it with the key: an agent of another scope, of a lower tier or
// with a pin, a person who is limited, another agent for what a person got. Each is
// told the same as for a key that is unknown, malformed or has expired.
func TestAttackCachedPages(t *testing.T) {
	t.Parallel()
	dir, _ := moonServers(t, "")
	agent := func(name string, options ...string) *proxy {
		_, file := issue(t, dir, name, options...)
		return retrieving(t, dir, "--token-file", file)
	}
	const all = "read,write,destructive"
	admin := retrieving(t, dir)
	writer := agent("writer", "--servers", "alpha,bravo", "--permissions", "read,write")
	readers := map[string]*proxy{
		"admin": admin, "another instance": retrieving(t, dir), "writer": writer,
		"the same scope":   agent("same", "--servers", "alpha,bravo", "--permissions", "read,write"),
		"more":             agent("more", "--servers", "*", "--permissions", all),
		"another server":   agent("another", "--servers", "bravo,charlie", "--permissions", all),
		"fewer servers":    agent("fewer", "--servers", "alpha", "--permissions", all),
		"a lower tier":     agent("lower", "--servers", "*"),
		"a pin":            agent("pin", "--servers", "*", "--permissions", all, "--profile-pin", "every"),
		"limited person":   retrieving(t, dir, "--profile", "every"),
		"limited narrowly": retrieving(t, dir, "--profile", "one"),
		"agent in profile": agent("inside", "--servers", "*", "--permissions", all, "--profile-pin", "two"),
	}
	readers["the same, profile"] = func() *proxy {
		_, file := issue(t, dir, "mine", "--servers", "*", "--permissions", all)
		return retrieving(t, dir, "--token-file", file, "--profile", "every")
	}()
	of := map[string]string{"admin": pageOf(t, admin, "alpha:long"), "writer": pageOf(t, writer, "alpha:long"),
		"a pin": pageOf(t, readers["a pin"], "alpha:long"), "limited person": pageOf(t, readers["limited person"], "alpha:long")}
	may := map[string][]string{
		"admin":          {"admin", "another instance"},
		"writer":         {"admin", "another instance", "writer", "the same scope", "more"},
		"a pin":          {"admin", "another instance", "more", "a pin", "the same, profile", "limited person"},
		"limited person": {"admin", "another instance", "limited person"},
	}
	for writer, key := range of {
		for reader, p := range readers {
			for _, offset := range []int{0, 20000} {
				m := p.readCache(key, offset)
				switch permitted := slices.Contains(may[writer], reader); {
				case permitted && (m.isError() || stringAt(json.RawMessage(m.text()), "meta", "key") != key):
					t.Errorf("%s reads the page of %s: %s", reader, writer, shorten(m.Raw))
				case !permitted && (!m.isError() || m.text() != notFound):
					t.Errorf("%s reads the page of %s: %s", reader, writer, shorten(m.Raw))
				}
			}
		}
	}
	expired := pageOf(t, writer, "alpha:long")
	alter(t, dir, `UPDATE pages SET expires_at = 1 WHERE id = (SELECT max(id) FROM pages)`)
	odd := map[string]string{"expired": expired, "of an admin": of["admin"], "unknown": strings.Repeat("0", 32), "empty": "", "short": of["writer"][:31], "long": of["writer"] + "0",
		"in capitals": strings.ToUpper(of["writer"]), "with a blank": of["writer"] + " ", "a path": "../" + of["writer"], "a pattern": "%", "quoted": `' OR 1=1 --`}
	bodies := map[string][]string{}
	for what, key := range odd {
		for _, offset := range []int{0, 20000} {
			m := writer.readCache(key, offset)
			bodies[string(m.Result)] = append(bodies[string(m.Result)], what)
		}
	}
	for _, key := range []string{"5", "null", `["a"]`, `{"key":1}`} {
		m := writer.tool("read_cache", fmt.Sprintf(`{"key":%s}`, key))
		if key != "null" {
			bodies[string(m.Result)] = append(bodies[string(m.Result)], key)
		}
	}
	if len(bodies) != 1 || bodies[`{"content":[{"type":"text","text":"cache key not found"}],"isError":true}`] == nil {
		t.Errorf("the refusals are %q", bodies)
	}
	if m := admin.readCache(expired, 0); !m.isError() || !strings.HasPrefix(m.text(), notFound+": ") {
		t.Errorf("an expired page as admin: %s", m.Raw)
	}
}

// alter changes something in the store of a folder from outside.
func alter(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "data", "mcpproxy.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n == 0 {
		t.Fatalf("%s changed nothing", statement)
	}
}

// TestAttackPageOutlivesTheRight: a caller has read the first page of a result when
// its server is held, switched off or removed, the tool blocked, the token revoked
// or the profile emptied. It gets no further page of it.
func TestAttackPageOutlivesTheRight(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		end, back func(t *testing.T, dir string, servers []*upstreamStub)
		told      string // to an agent, when it is not the usual
	}{
		"held": {
			end:  func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "quarantine", "hold", "alpha") },
			back: func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "quarantine", "release", "alpha") },
		},
		"switched off": {
			end:  func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "disable", "alpha") },
			back: func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "enable", "alpha") },
		},
		"removed": {
			end: func(t *testing.T, dir string, servers []*upstreamStub) {
				save(t, dir, privateConfig(moonProfiles, servers[1:]...))
			},
		},
		"profile emptied": {
			end: func(t *testing.T, dir string, servers []*upstreamStub) {
				save(t, dir, privateConfig(strings.ReplaceAll(moonProfiles, `"alpha",`, ""), servers...))
			},
		},
		"blocked": {
			end:  func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "quarantine", "block", "alpha:long") },
			back: func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "quarantine", "approve", "alpha:long") },
		},
		"revoked": {
			end:  func(t *testing.T, dir string, _ []*upstreamStub) { must(t, dir, "token", "revoke", "agent", "--yes") },
			told: "the agent token is not accepted",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, servers := moonServers(t, "")
			_, file := issue(t, dir, "agent", "--servers", "*", "--profile-pin", "one")
			p, q := retrieving(t, dir, "--token-file", file), retrieving(t, dir, "--token-file", file)
			key := pageOf(t, p, "alpha:long")
			for _, reader := range []*proxy{p, q} {
				if m := reader.readCache(key, 0); m.isError() {
					t.Fatalf("before that: %s", m.Raw)
				}
			}
			told := c.told
			if told == "" {
				told = notFound
			}
			c.end(t, dir, servers)
			for _, reader := range []*proxy{p, q} {
				refused := func() bool { return strings.HasPrefix(refusalOf(reader.readCache(key, 20000)), told) }
				if what == "blocked" || what == "revoked" {
					// What is in the store is looked at with every request; the file is
					// read again within a second.
					if !refused() {
						t.Errorf("the next page is given: %s", shorten(reader.readCache(key, 20000).Raw))
					}
				}
				awaitUntil(t, answerTime, "no further page is given", refused)
			}
			if c.back == nil {
				return
			}
			c.back(t, dir, servers)
			awaitUntil(t, answerTime, "it is given again", func() bool { return !p.readCache(key, 20000).isError() })
		})
	}
}
