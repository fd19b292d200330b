//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/testdata/stub"
)

// TestAttackEndedTokenGoesOn: an agent goes on after its token was revoked,
// regenerated, deleted or has expired; its very next request is denied on every
// path, and a session that is not the agent's is not touched.
func TestAttackEndedTokenGoesOn(t *testing.T) {
	t.Parallel()
	a := scopedStub(t, "a")
	dir := place(t, privateConfig("", a))
	adminIn(t, dir, "a__r").close()
	other := func() *proxy { _, file := issue(t, dir, "other", "--servers", "a"); return agentIn(t, dir, file) }()
	other.awaitTools("a__r")
	for name, end := range map[string]func(name string){
		"revoked":     func(name string) { must(t, dir, "token", "revoke", name, "--yes") },
		"deleted":     func(name string) { must(t, dir, "token", "delete", name, "--yes") },
		"regenerated": func(name string) { must(t, dir, "token", "regenerate", name) },
		"expired":     nil,
	} {
		options := []string{"--servers", "a"}
		var until time.Time
		if end == nil {
			until = time.Now().Add(4 * time.Second)
			options = append(options, "--expires", until.UTC().Format(time.RFC3339Nano))
		}
		secret, file := issue(t, dir, name, options...)
		p := agentIn(t, dir, file)
		if m := p.call("prompts/get", `{"name":"a__p"}`); m.Error != nil && time.Now().Before(until) {
			t.Errorf("%s: before that %s", name, m.Raw)
		}
		if end != nil {
			end(name)
		} else {
			time.Sleep(time.Until(until))
		}
		before := len(a.used())
		uses := paths("a")
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			uses[method] = [2]string{method, ""}
		}
		for what, use := range uses {
			if got := refusalOf(p.call(use[0], use[1])); !strings.Contains(got, "the agent token is not accepted") || strings.Contains(got, name+":") {
				t.Errorf("%s: %s gave %q", name, what, got)
			}
		}
		if n := len(a.used()); n != before {
			t.Errorf("%s: the server was reached: %q", name, a.used()[before:])
		}
		if text := p.stderrText(); strings.Contains(text, secret) {
			t.Errorf("%s: the secret is on stderr: %s", name, text)
		}
		p.close()
		if out := startsAs(t, dir, file); out.code == 0 || strings.Contains(out.stdout+out.stderr, secret) {
			t.Errorf("%s: a new start ended with %d: %s", name, out.code, out.stderr)
		}
	}
	if m := other.tool("a__r", ""); refusalOf(m) != "" {
		t.Errorf("another agent gets %s", m.Raw)
	}
}

// startsAs starts an instance with a token and leaves at once.
func startsAs(t *testing.T, dir, file string) commandOutcome {
	t.Helper()
	return runCommand(t, dir, "--mode", "direct", "--token-file", file)
}

// TestAttackTokenOfAnother: a token that is made up, that is of another data
// folder, that lacks a digit, in a file that others can read, in the environment
// or in the arguments of a call opens nothing.
func TestAttackTokenOfAnother(t *testing.T) {
	t.Parallel()
	a := scopedStub(t, "a")
	dir, elsewhere := place(t, privateConfig("", a)), place(t, privateConfig("", a))
	secret, file := issue(t, dir, "mine", "--servers", "a")
	foreign, _ := issue(t, elsewhere, "mine", "--servers", "*", "--permissions", "read,write,destructive")
	for what, text := range map[string]string{
		"made up": "mcp_agt_" + strings.Repeat("0", 64), "of another folder": foreign, "short": secret[:len(secret)-1],
		"in capitals": strings.ToUpper(secret), "with a line more": secret + "\n" + foreign, "empty": "",
	} {
		_, file := tokenFile(t, dir, "odd", text)
		if out := startsAs(t, dir, file); out.code == 0 || strings.Contains(out.stderr, text) && text != "" {
			t.Errorf("%s: exit code %d, %s", what, out.code, out.stderr)
		}
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if out := startsAs(t, dir, file); out.code == 0 || !strings.Contains(out.stderr, "can be read or changed by other users") {
		t.Errorf("a file for the group: exit code %d, %s", out.code, out.stderr)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	wide, _ := issue(t, dir, "wide", "--servers", "*", "--permissions", "read,write,destructive")
	p := agentIn(t, dir, file)
	p.awaitTools("a__r")
	for what, params := range map[string]string{
		"argument": fmt.Sprintf(`{"name":"a__d","arguments":{"token":%q,"Authorization":"Bearer %s"}}`, wide, wide),
		"meta":     fmt.Sprintf(`{"name":"a__d","_meta":{"token":%q,"mcpproxy/token":%q}}`, wide, wide),
		"member":   fmt.Sprintf(`{"name":"a__d","token":%q,"caller":{"kind":"admin"},"profile":""}`, wide),
	} {
		if m := p.call("tools/call", params); m.code() == 0 {
			t.Errorf("another token as %s gave %s", what, m.Raw)
		}
	}
	if len(a.received("tools/call")) > 0 {
		t.Errorf("the server got %q", a.used())
	}
}

// TestAttackSubscriptionOutlivesTheRight: an agent has subscribed to a resource
// when its token is revoked; within some seconds it is told nothing of it any
// more. The same goes for a person when the resource is blocked.
func TestAttackSubscriptionOutlivesTheRight(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", `"resources":[{"uri":"s:1","name":"one"}]`)
	dir := place(t, sharedConfig("", s))
	_, file := issue(t, dir, "agent", "--servers", "s")
	admin := adminIn(t, dir, "s__update")
	agent := agentIn(t, dir, file)
	for _, p := range []*proxy{admin, agent} {
		if m := p.call("resources/subscribe", `{"uri":"s:1"}`); m.Error != nil {
			t.Fatalf("subscribe: %s", m.Raw)
		}
	}
	update := func() {
		if m := admin.tool("s__update", `{"uri":"s:1"}`); refusalOf(m) != "" {
			t.Fatalf("update: %s", m.Raw)
		}
		admin.await("notifications/resources/updated")
	}
	update()
	agent.await("notifications/resources/updated")
	must(t, dir, "token", "revoke", "agent", "--yes")
	if m := agent.call("resources/read", `{"uri":"s:1"}`); refusalOf(m) == "" {
		t.Errorf("read gave %s", m.Raw)
	}
	awaitUntil(t, answerTime, "the agent is told nothing", func() bool {
		update()
		// What was sent to it before this answer is there.
		agent.call("resources/read", `{"uri":"s:1"}`)
		time.Sleep(100 * time.Millisecond)
		agent.call("resources/read", `{"uri":"s:1"}`)
		return len(agent.taken("notifications/resources/updated")) == 0
	})
	must(t, dir, "quarantine", "block", "s:s:1")
	s.await(func(e stub.Event) bool { return e.Kind == "unsubscribe" })
}

// TestAttackTokenInTheProcessList: another program looks for the token in the
// arguments of all processes, and in the environments of those that are not the
// client's own: the hub, the guards and the servers.
func TestAttackTokenInTheProcessList(t *testing.T) {
	t.Parallel()
	shared, private, all := newStub(t, "shared", ""), newStub(t, "private", "").with(`"shared":false`), newStub(t, "all", "").with(`"inherit_env":"all"`)
	dir := place(t, sharedConfig("", shared, private, all))
	secret, _ := issue(t, dir, "agent", "--servers", "*")
	p := startProxyWith(t, dir, "", []string{"MCPPROXY_TOKEN=" + secret})
	p.initialize("")
	for _, name := range []string{"shared__env", "private__env", "all__env"} {
		p.awaitTools(name)
		if m := p.tool(name, ""); refusalOf(m) != "" || strings.Contains(string(m.Raw), secret) || strings.Contains(string(m.Raw), "MCPPROXY_TOKEN") {
			t.Errorf("%s: %s", name, m.Raw)
		}
	}
	hubs, guards, stubs := 0, 0, 0
	for _, process := range p.processes() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.pid))
		line := strings.Join(process.args, " ")
		if strings.Contains(line, secret) {
			t.Errorf("the token is among the arguments of %s", line)
		}
		switch {
		case process.is("mcpproxy", "hub-run"):
			hubs++
		case process.is("mcpproxy", "guard"):
			guards++
		case process.is("mcpstub", "stub"):
			stubs++
		default:
			continue
		}
		if bytes.Contains(environ, []byte(secret)) {
			t.Errorf("the token is in the environment of %s", line)
		}
	}
	if hubs != 1 || guards != 2 || stubs != 3 {
		t.Errorf("looked at %d hubs, %d guards and %d servers", hubs, guards, stubs)
	}
}

// TestAttackSecretsOfAnotherClient: two clients come with secrets of their own
// in their environments; neither's server sees the other's, nor does the hub.
func TestAttackSecretsOfAnotherClient(t *testing.T) {
	t.Parallel()
	s := newStub(t, "s", "").with(`"env":{"KEY":"${env:KEY}"}`)
	dir, home := sharedFolder(t)
	save(t, dir, sharedConfig("", s))
	secrets := []string{"alice-secret-5d2c91", "bobby-secret-a71f03"}
	for i, own := range secrets {
		p := startProxyWith(t, dir, "", []string{"KEY=" + own, "OTHER=unrelated-" + own})
		p.initialize("")
		p.awaitTools("s__env")
		if got := p.tool("s__env", "").text(); !strings.Contains(got, own) || strings.Contains(got, secrets[1-i]) || strings.Contains(got, "unrelated-") {
			t.Errorf("the server of client %d has %s", i, got)
		}
	}
	if n := countOf(t, home, "mcpstub", "stub"); n != 2 {
		t.Errorf("%d processes for two secrets", n)
	}
	for _, secret := range secrets {
		for path, content := range filesIn(t, filepath.Join(dir, "data")) {
			if strings.Contains(content, secret) {
				t.Errorf("%s is in %s", secret, path)
			}
		}
	}
}

// TestAttackProfileRemoved: the profile that limits a token disappears from the
// file while the token is in use, by which the limit does not go with it:
// nothing is left to use, also of a session with --profile.
func TestAttackProfileRemoved(t *testing.T) {
	t.Parallel()
	a, b := scopedStub(t, "one1"), scopedStub(t, "two2")
	dir := place(t, privateConfig(`"profiles":[{"name":"work","servers":["one1"]}],`, a, b))
	_, file := issue(t, dir, "agent", "--servers", "*", "--profile-pin", "work")
	adminIn(t, dir, "one1__r", "two2__r").close()
	agent := agentIn(t, dir, file)
	limited := startProxyIn(t, dir, "", "--profile", "work")
	limited.initialize("")
	for _, p := range []*proxy{agent, limited} {
		p.awaitTools("one1__r")
		if m := p.tool("two2__r", ""); m.code() == 0 {
			t.Errorf("a server beside the profile gave %s", m.Raw)
		}
	}
	save(t, dir, privateConfig("", a, b))
	for _, p := range []*proxy{agent, limited} {
		p.await("notifications/tools/list_changed")
		if _, names := p.list("tools"); len(names) > 0 {
			t.Errorf("without its profile it sees %q", names)
		}
		expectNothing(t, p, a, b)
	}
}

// TestAttackProfileLowered: the highest tier of a profile is lowered in the file
// while clients use it: they are told, and refused.
func TestAttackProfileLowered(t *testing.T) {
	t.Parallel()
	a := scopedStub(t, "a")
	profile := func(tier string) string {
		return privateConfig(fmt.Sprintf(`"profiles":[{"name":"work","servers":["a"],"max_tier":%q}],`, tier), a)
	}
	dir := place(t, profile("destructive"))
	_, file := issue(t, dir, "agent", "--servers", "*", "--profile-pin", "work", "--permissions", "read,write,destructive")
	limited := startProxyIn(t, dir, "", "--profile", "work")
	limited.initialize("")
	limited.awaitTools("a__d")
	agent := agentIn(t, dir, file)
	agent.awaitTools("a__d")
	for _, p := range []*proxy{agent, limited} {
		if m := p.tool("a__d", ""); refusalOf(m) != "" {
			t.Errorf("before that: %s", m.Raw)
		}
	}
	save(t, dir, profile("read"))
	for _, p := range []*proxy{agent, limited} {
		p.await("notifications/tools/list_changed")
		if _, names := p.list("tools"); !slices.Equal(names, []string{"a__r"}) {
			t.Errorf("listed are %q", names)
		}
		before := len(a.received("tools/call"))
		for _, tool := range []string{"a__w", "a__d"} {
			if m := p.tool(tool, ""); m.code() == 0 {
				t.Errorf("%s gave %s", tool, m.Raw)
			}
		}
		if n := len(a.received("tools/call")); n != before {
			t.Errorf("%d calls reached the server", n-before)
		}
	}
}
