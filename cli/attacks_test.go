//go:build unix

package cli_test

// The attacks that were written down, and the tests that try them.
//
//	confused deputy through the hub            TestAttackAgentThroughTheHub, TestAttackFramesOnTheHubSocket
//	token in another's session                 TestAttackEndedTokenGoesOn, TestAttackTokenOfAnother
//	name collisions                            TestAttackNameOfAnother, TestAttackNameOfTheProgram
//	set_profile escapes                        TestAttackSetProfileWidens, TestAttackSetProfileIsInForce
//	cached pages                               TestAttackCachedPages, TestAttackPageOutlivesTheRight
//	management tools as an agent               TestAttackManagementWithoutTheRight, TestAttackManagementSwitchedOff, TestManagementWidensNothing
//	the code path                              not in this build: there is no code_execution; see TestAttackToolsOfTheProgram
//	prompts                                    TestAttackEveryPathOutOfScope, TestAttackEveryPathHeld
//	resource reads by URI of another's server  TestAttackEveryPathOutOfScope, TestAttackEveryPathHeld, TestAttackSubscriptionOutlivesTheRight
//	symlinked or foreign-owned configuration   TestAttackForeignFiles
//	a trusted server's command is edited       TestAttackEditedCommand
//	a deleted store to reset approvals         TestAttackDeletedStore, TestAttackGarbageStore
//	a token read from the process list         TestAttackTokenInTheProcessList
//	a late elicitation after a cancelled call  TestAttackLateElicitation
//	secrets of one client in another's child   TestAttackSecretsOfAnotherClient
//
// Beside these: TestAttackProfileRemoved, TestAttackProfileLowered, TestAttackSmuggledNames,
// TestAttackLowerVariantOfUnlisted, TestAttackLowerVariantOfChanged, TestManagementShowsNoSecret.

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/testdata/stub"
)

// scopedTools are one tool of each tier.
const scopedTools = `[{"name":"r","annotations":{"readOnlyHint":true}},{"name":"w","annotations":{"destructiveHint":false}},{"name":"d","annotations":{"destructiveHint":true}}]`

// scopedStub is a server with one of everything, of which the name tells where
// it is.
func scopedStub(t *testing.T, name string) *upstreamStub {
	t.Helper()
	return newStub(t, name, fmt.Sprintf(`"tools":%s,"prompts":[{"name":"p"}],"resources":[{"uri":"%s:1","name":"one"}],"templates":[{"uriTemplate":"%s-t:{n}","name":"t"}]`,
		scopedTools, name, name))
}

// place is a folder with a configuration in which instances are started.
func place(t *testing.T, config string) (dir string) {
	t.Helper()
	dir, _ = sharedFolder(t)
	save(t, dir, config)
	return dir
}

// must runs a command that has to succeed and returns what it prints.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out := runCommand(t, dir, args...)
	if out.code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), out.code, out.stderr)
	}
	return out.stdout
}

// issue makes a token and returns its secret and a file with it.
func issue(t *testing.T, dir, name string, options ...string) (secret, file string) {
	t.Helper()
	return tokenFile(t, dir, name, must(t, dir, append([]string{"token", "create", name}, options...)...))
}

func tokenFile(t *testing.T, dir, name, printed string) (secret, file string) {
	t.Helper()
	secret = strings.TrimSpace(printed)
	file = filepath.Join(dir, name+".token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret, file
}

// agentIn starts an instance that acts for a token.
func agentIn(t *testing.T, dir, file string) *proxy {
	t.Helper()
	p := startProxyIn(t, dir, "", "--token-file", file)
	p.initialize("")
	return p
}

// adminIn starts an instance for a person who has all, and has it read all.
func adminIn(t *testing.T, dir string, tools ...string) *proxy {
	t.Helper()
	p := startProxyIn(t, dir, "")
	p.initialize("")
	p.awaitTools(tools...)
	return p
}

// paths are all ways to use something of a server of scopedStub.
func paths(server string) map[string][2]string {
	name := func(own string) string { return fmt.Sprintf(`{"name":"%s__%s"}`, server, own) }
	return map[string][2]string{
		"tool":                   {"tools/call", name("r")},
		"prompt":                 {"prompts/get", name("p")},
		"completion":             {"completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"%s__p"},"argument":{"name":"a","value":""}}`, server)},
		"completion of template": {"completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/resource","uri":"%s-t:{n}"},"argument":{"name":"n","value":""}}`, server)},
		"resource":               {"resources/read", fmt.Sprintf(`{"uri":"%s:1"}`, server)},
		"marked resource":        {"resources/read", fmt.Sprintf(`{"uri":"%s|%s:1"}`, server, server)},
		"marked unlisted":        {"resources/read", fmt.Sprintf(`{"uri":"%s|secret:9"}`, server)},
		"template":               {"resources/read", fmt.Sprintf(`{"uri":"%s-t:7"}`, server)},
		"subscription":           {"resources/subscribe", fmt.Sprintf(`{"uri":"%s:1"}`, server)},
		"marked subscription":    {"resources/subscribe", fmt.Sprintf(`{"uri":"%s|%s:1"}`, server, server)},
		"unsubscription":         {"resources/unsubscribe", fmt.Sprintf(`{"uri":"%s:1"}`, server)},
	}
}

// used are the uses that reached a server: all but the handshake and the lists.
func (s *upstreamStub) used() []string {
	s.t.Helper()
	var all []string
	for _, method := range []string{"tools/call", "prompts/get", "completion/complete", "resources/read", "resources/subscribe", "resources/unsubscribe"} {
		for _, m := range s.received(method) {
			all = append(all, string(m.Raw))
		}
	}
	return all
}

// shows lists everything that a client sees, as one text.
func shows(p *proxy) string {
	p.t.Helper()
	var all strings.Builder
	for _, member := range []string{"tools", "prompts", "resources", "resourceTemplates"} {
		_, names := p.list(member)
		fmt.Fprintln(&all, member, names)
	}
	return all.String()
}

// bodyWithout is the outcome of an answer without the name that was asked for.
func bodyWithout(m message, name string) string {
	body := m.Error
	if body == nil {
		body = m.Result
	}
	return strings.ReplaceAll(string(body), name, "NAME")
}

// expectNothing checks that no path leads to a server, and that each answer is
// the one for a server that does not exist.
func expectNothing(t *testing.T, p *proxy, servers ...*upstreamStub) {
	t.Helper()
	expectNoPath(t, p, paths, shows(p), servers...)
}

// expectNoPath is expectNothing for some paths, and for what a client has seen.
func expectNoPath(t *testing.T, p *proxy, paths func(server string) map[string][2]string, seen string, servers ...*upstreamStub) {
	t.Helper()
	const nobody = "nobody"
	missing := paths(nobody)
	for _, s := range servers {
		before := len(s.used())
		if strings.Contains(seen, s.name+"__") || strings.Contains(seen, s.name+":") || strings.Contains(seen, s.name+"-t:") {
			t.Errorf("%s is listed:\n%s", s.name, seen)
		}
		for what, use := range paths(s.name) {
			got, want := p.call(use[0], use[1]), p.call(missing[what][0], missing[what][1])
			if refusalOf(got) == "" && !isNotDescribed(got) {
				t.Errorf("%s of %s gave %s", what, s.name, got.Raw)
			}
			if got, want := bodyWithout(got, s.name), bodyWithout(want, nobody); got != want {
				t.Errorf("%s of %s gave\n%s, and of a server that does not exist\n%s", what, s.name, got, want)
			}
		}
		if now := s.used(); len(now) != before {
			t.Errorf("%s was reached: %q", s.name, now[before:])
		}
	}
}

// isNotDescribed reports whether an answer is that of describe_tool about a tool
// that is not there.
func isNotDescribed(m message) bool {
	return string(at(json.RawMessage(m.text()), "definitions")) == "[]"
}

// TestAttackEveryPathOutOfScope: an agent tries every path to a server that is
// not in the scope of its token, and of one that is, every tier above its own.
func TestAttackEveryPathOutOfScope(t *testing.T) {
	t.Parallel()
	for name, configure := range sharings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, c := scopedStub(t, "a"), scopedStub(t, "b"), scopedStub(t, "far-off")
			dir := place(t, configure(`"profiles":[{"name":"two","servers":["a","b"]}],`, a, b, c))
			_, file := issue(t, dir, "agent", "--servers", "a,b")
			adminIn(t, dir, "a__d", "b__d", "far-off__d").close()
			p := agentIn(t, dir, file)
			p.awaitTools("a__r", "b__r")
			expectNothing(t, p, c)
			for _, tool := range []string{"a__w", "a__d"} {
				got, want := bodyWithout(p.tool(tool, ""), tool), bodyWithout(p.tool("a__nothing", ""), "a__nothing")
				if got != want {
					t.Errorf("%s gave\n%s, and a tool that does not exist\n%s", tool, got, want)
				}
			}
			if m := p.tool("a__r", ""); refusalOf(m) != "" {
				t.Errorf("what is permitted gave %s", m.Raw)
			}
			limited := startProxyIn(t, dir, "", "--profile", "two")
			limited.initialize("")
			limited.awaitTools("a__d", "b__d")
			expectNothing(t, limited, c)
		})
	}
}

// TestAttackEveryPathHeld: a client tries every path to a server that a person
// has not released, which is not even started.
func TestAttackEveryPathHeld(t *testing.T) {
	t.Parallel()
	a, b, held := scopedStub(t, "a"), scopedStub(t, "b"), scopedStub(t, "held").with(`"quarantined":true`)
	dir := place(t, sharedConfig("", a, b, held))
	_, file := issue(t, dir, "agent", "--servers", "*", "--permissions", "read,write,destructive")
	adminIn(t, dir, "a__d", "b__d").close()
	agent := agentIn(t, dir, file)
	agent.awaitTools("a__d", "b__d")
	expectNothing(t, agent, held)
	admin := adminIn(t, dir, "a__d")
	for what, use := range paths("held") {
		m := admin.call(use[0], use[1])
		if refusalOf(m) == "" {
			t.Errorf("%s of a held server gave %s", what, m.Raw)
		}
		if what == "tool" && !strings.Contains(refusalOf(m), "mcpproxy quarantine show held") {
			t.Errorf("a person is not told how to review: %s", m.Raw)
		}
	}
	if _, err := os.Stat(held.log); err == nil {
		t.Errorf("a held server was started: %q", held.events("start"))
	}
}

// TestAttackAgentThroughTheHub: an agent shares the hub, and in it the processes,
// with a person who may do more; nothing of that is the agent's, and what the
// person has reported is the person's.
func TestAttackAgentThroughTheHub(t *testing.T) {
	t.Parallel()
	a, b := scopedStub(t, "a"), scopedStub(t, "b")
	dir := place(t, sharedConfig("", a, b))
	_, file := issue(t, dir, "agent", "--servers", "a")
	admin := adminIn(t, dir, "a__d", "b__d")
	admin.call("resources/subscribe", `{"uri":"b:1"}`)
	admin.tool("a__r", "")
	admin.tool("b__d", "")
	agent := agentIn(t, dir, file)
	agent.awaitTools("a__r")
	if m := agent.tool("a__r", ""); refusalOf(m) != "" {
		t.Errorf("what is permitted gave %s", m.Raw)
	}
	before := len(b.used())
	for _, tool := range []string{"a__d", "a__w", "b__r", "b__d"} {
		if m := agent.tool(tool, ""); m.code() == 0 {
			t.Errorf("%s as an agent gave %s", tool, m.Raw)
		}
	}
	for _, use := range [][2]string{{"prompts/get", `{"name":"b__p"}`}, {"tools/list", `{"cursor":"b"}`}} {
		if m := agent.call(use[0], use[1]); strings.Contains(string(m.Raw), "b__") && !strings.Contains(string(m.Raw), "not found") {
			t.Errorf("%s as an agent gave %s", use[0], m.Raw)
		}
	}
	if n := len(b.used()); n != before {
		t.Errorf("the other server was reached: %q", b.used()[before:])
	}
	if m := admin.tool("a__d", ""); refusalOf(m) != "" {
		t.Errorf("the person beside the agent gets %s", m.Raw)
	}
	if n := countOf(t, agent.home(), "mcpstub", "stub"); n != 2 {
		t.Errorf("%d processes of two servers", n)
	}
}

// TestAttackFramesOnTheHubSocket: a program of the same user talks to the socket
// of the hub without a session, with garbage, and with the ids of requests that
// are another's; the others go on, and no server hears of it.
func TestAttackFramesOnTheHubSocket(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	dir := place(t, sharedConfig("", s))
	p := startProxyIn(t, dir, "")
	p.initialize(`{"sampling":{}}`)
	p.awaitTools("s__slow")
	slow := p.startTool("s__slow", `{"ms":1500}`)
	s.await(func(e stub.Event) bool { return e.Kind == "recv" && strings.Contains(e.Text, `"slow"`) })
	before := len(s.events("recv"))
	socket := socketOf(t, dir)
	for _, path := range []string{filepath.Dir(socket), socket} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	connection, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	answers := bufio.NewReader(connection)
	if err := connection.SetDeadline(time.Now().Add(answerTime)); err != nil {
		t.Fatal(err)
	}
	for i, frame := range []string{
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"stolen":true}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"hub/open","params":{"instance":"x","client":{"name":"x"},"entry":{"name":"s"}}}`,
	} {
		fmt.Fprintf(connection, frame+"\n", i)
		line, err := answers.ReadBytes('\n')
		if err != nil || parse(string(line)).Error == nil {
			t.Errorf("%s gave %v %s", frame, err, line)
		}
	}
	// These have no answer; the ping behind them does, if the connection lasts.
	for id := range 20 {
		fmt.Fprintf(connection, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
		fmt.Fprintf(connection, `{"jsonrpc":"2.0","id":%d,"result":{"stolen":true}}`+"\n", id)
	}
	fmt.Fprintf(connection, "{\n"+`{"jsonrpc":"2.0","id":99,"method":"ping"}`+"\n")
	_, _ = answers.ReadBytes('\n') // a connection that says garbage may be closed
	if m := p.wait(slow); m.text() != "slow" {
		t.Errorf("the call of another came back as %s", m.Raw)
	}
	for _, text := range s.events("recv")[before:] {
		if strings.Contains(text, "stolen") || strings.Contains(text, "cancelled") {
			t.Errorf("the server got %s", text)
		}
	}
	if m := p.tool("s__echo", `{"still":"here"}`); !strings.Contains(m.text(), "here") {
		t.Errorf("after that %s", m.Raw)
	}
}

// socketOf is the socket of the hub of the instances in a folder, which is in
// another place where its path would be too long.
func socketOf(t *testing.T, dir string) string {
	t.Helper()
	data, err := filepath.EvalSymlinks(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(data))
	short := fmt.Sprintf("mcpproxy-%d-%x", os.Geteuid(), sum[:6])
	for _, folder := range []string{filepath.Join(data, "hub"), filepath.Join(os.TempDir(), short), filepath.Join("/tmp", short)} {
		found, err := filepath.Glob(filepath.Join(folder, "*.sock"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	t.Fatal("there is no socket of a hub")
	return ""
}

// TestAttackNameOfAnother: a server out of scope, or held, offers items whose
// public names are those of a permitted server: by its alias, by a name that has
// to be shortened, or by the separator inside a name. Only the permitted server
// is ever reached.
func TestAttackNameOfAnother(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	tools := fmt.Sprintf(`"tools":[{"name":"r","annotations":{"readOnlyHint":true}},{"name":%q,"annotations":{"readOnlyHint":true}},
		{"name":"b__r","annotations":{"readOnlyHint":true}},{"name":"r ","annotations":{"readOnlyHint":true}},{"name":"R","annotations":{"readOnlyHint":true}}]`, long)
	good := newStub(t, "good", tools).with(`"alias":"g"`)
	evil := newStub(t, "g-", tools).with(`"alias":"go"`)
	held := newStub(t, "held", tools).with(`"alias":"g_x","quarantined":true`)
	thief := newStub(t, "thief", tools).with(`"alias":"g"`) // taken: refused by the configuration
	named := newStub(t, "g", tools)                         // as the alias of another
	dir := place(t, privateConfig("", good, evil, held, thief, named))
	_, file := issue(t, dir, "agent", "--servers", "good")
	adminIn(t, dir, "g__r").close()
	p := agentIn(t, dir, file)
	p.awaitTools("g__r")
	_, names := p.list("tools")
	for _, name := range names {
		if !strings.HasPrefix(name, "g_") {
			t.Errorf("%s is listed", name)
		}
		if m := p.tool(name, ""); refusalOf(m) != "" {
			t.Errorf("%s gave %s", name, m.Raw)
		}
	}
	if len(names) != 5 || len(good.received("tools/call")) != 5 {
		t.Errorf("%q are listed, and the server was called with %q", names, good.used())
	}
	for _, name := range []string{"good__r", "g-__r", "go__r", "held__r", "g_x__r", "thief__r", "g__" + long, "r", "__r", "g__r__r", "G__r", "g__r ", "g__", "g|r", "g:r"} {
		if slices.Contains(names, name) {
			continue
		}
		if m := p.tool(name, ""); m.code() == 0 {
			t.Errorf("%q gave %s", name, m.Raw)
		}
	}
	for _, s := range []*upstreamStub{evil, held, thief, named} {
		if _, err := os.Stat(s.log); err == nil && len(s.received("tools/call")) > 0 {
			t.Errorf("%s was called: %q", s.name, s.used())
		}
	}
}

// TestAttackNameOfTheProgram: a server names its tools like those of the program.
// They keep the name of their server, also in the mode that has such tools itself:
// see TestAttackSmuggledNames.
func TestAttackNameOfTheProgram(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"tools":[{"name":"upstream_servers"},{"name":"read_cache"}]`)
	p := startProxy(t, configOf(s))
	p.initialize("")
	p.awaitTools("s__upstream_servers", "s__read_cache")
	if _, names := p.list("tools"); len(names) != 2 {
		t.Errorf("listed are %q", names)
	}
}

// TestAttackToolsOfTheProgram: somebody asks for the tools of other modes: in mode
// direct for those that search, manage, choose a profile and read cached pages, in
// both for those that run code, of which this build has none. Each is answered as
// anything else that does not exist.
func TestAttackToolsOfTheProgram(t *testing.T) {
	t.Parallel()
	a := scopedStub(t, "a")
	dir := place(t, privateConfig(`"disable_management":false,"enable_code_execution":true,"profiles":[{"name":"p","servers":["a"]}],`, a))
	_, file := issue(t, dir, "agent", "--servers", "a")
	code := []string{"code_execution", "proxy", "run_code"}
	direct := append([]string{"upstream_servers", "quarantine_security", "set_profile", "read_cache", "retrieve_tools", "call_tool_read", "call_tool_destructive", "describe_tool"}, code...)
	for who, c := range map[string]struct {
		p     *proxy
		tools []string
	}{
		"admin":           {adminIn(t, dir, "a__d"), direct},
		"agent":           {agentIn(t, dir, file), direct},
		"admin, retrieve": {retrieving(t, dir), code},
		"agent, retrieve": {retrieving(t, dir, "--token-file", file), append([]string{"quarantine_security"}, code...)},
	} {
		_, names := c.p.list("tools")
		for _, tool := range c.tools {
			m, unknown := c.p.tool(tool, `{"profile":"p","operation":"list","name":"a__d","code":"1"}`), c.p.tool("no_such_tool_here__", `{}`)
			if got, want := bodyWithout(m, tool), bodyWithout(unknown, "no_such_tool_here__"); slices.Contains(names, tool) || got != want || m.code() == 0 || !strings.Contains(m.errorText(), "not found, or access denied") {
				t.Errorf("%s of %s gave %s", tool, who, m.Raw)
			}
		}
		for _, method := range []string{"hub/open", "hub/stop", "admin/approve", "profiles/set", "code/run"} {
			if m := c.p.call(method, `{"name":"a"}`); m.code() != -32601 {
				t.Errorf("%s of %s gave %s", method, who, m.Raw)
			}
		}
	}
	if out := runCommand(t, dir, "--mode", "code_execution"); out.code != 2 || !strings.Contains(out.stderr, "not available in this build") {
		t.Errorf("mode code_execution: exit code %d, %s", out.code, out.stderr)
	}
}

// TestAttackLateElicitation: a server asks for something of the user only after
// the call for it was cancelled, while another client has a call under way there.
// Nobody is asked: not the other client, which has nothing to do with it.
func TestAttackLateElicitation(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "")
	dir := place(t, sharedConfig("", s))
	var clients []*proxy
	for range 2 {
		p := startProxyIn(t, dir, "")
		p.initialize(`{"elicitation":{}}`)
		p.awaitTools("s__elicit")
		clients = append(clients, p)
	}
	victim, other := clients[0], clients[1]
	const question = `{"params":{"message":"your password?","requestedSchema":{"type":"object","properties":{}}}}`
	hanging := other.startTool("s__hang", "")
	s.await(func(e stub.Event) bool { return e.Kind == "recv" && strings.Contains(e.Text, `"hang"`) })
	other.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, hanging))
	s.awaitMessage("notifications/cancelled")
	if m := victim.tool("s__elicit", question); !strings.Contains(string(m.Raw), "no single client") {
		t.Errorf("elicitation beside a cancelled call gave %s", m.Raw)
	}
	for i, p := range clients {
		if asked := p.taken("elicitation/create"); len(asked) > 0 {
			t.Errorf("client %d was asked %s", i, asked[0].Raw)
		}
	}
}
