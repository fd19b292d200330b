//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/mcp/activity"
)

// managed is a folder in which servers are managed over MCP, with two servers of
// which one knows a secret that it also writes into its log, and one that is held.
func managed(t *testing.T, members string) (dir string, servers []*upstreamStub) {
	t.Helper()
	const secret = `"stderr_text":"my key is ` + plantedSecret + `\n"`
	alpha := newStub(t, "alpha", scopedMembers("alpha")+","+secret).with(fmt.Sprintf(`"env":{"API_KEY":%q}`, plantedSecret))
	bravo := newStub(t, "bravo", scopedMembers("bravo")+","+secret).with(fmt.Sprintf(`"env":{"API_KEY":%q}`, plantedSecret))
	held := newStub(t, "held", "").with(`"quarantined":true`)
	servers = []*upstreamStub{alpha, bravo, held}
	dir = place(t, privateConfig(`"disable_management":false,"profiles":[{"name":"one","servers":["alpha"]}],`+members, servers...))
	p := retrieving(t, dir)
	p.awaitFound("r w d", "alpha:r", "bravo:r")
	p.close()
	return dir, servers
}

// plantedSecret is a secret of a server, of no known form.
const plantedSecret = "correct-horse-battery-91c"

func scopedMembers(name string) string {
	return fmt.Sprintf(`"tools":%s,"resources":[{"uri":"%s:1","name":"one"}]`, scopedTools, name)
}

// managementRequests are calls of upstream_servers that would change something, or tell
// more than a list.
func managementRequests(server string) map[string]string {
	all := map[string]string{
		"add":                    `{"operation":"add","name":"evil","command":"mcpstub"}`,
		"add released":           `{"operation":"add","name":"evil","command":"mcpstub","quarantined":false}`,
		"add with an address":    `{"operation":"add","name":"evil","url":"http://127.0.0.1:1/mcp"}`,
		"an operation in dress":  `{"operation":"LIST"}`,
		"two operations":         `{"operation":"list","operation":"remove","name":"` + server + `"}`,
		"a list of operations":   `{"operation":["list","remove"],"name":"` + server + `"}`,
		"list with more":         `{"operation":"list","name":"held","quarantined":false}`,
		"no operation":           `{"name":"` + server + `","command":"mcpstub"}`,
		"release of another one": `{"operation":"patch","name":"held","quarantined":false}`,
	}
	for _, operation := range []string{"remove", "enable", "disable", "restart", "refresh", "approve", "release", "unquarantine", "list_quarantined"} {
		all[operation] = fmt.Sprintf(`{"operation":%q,"name":%q}`, operation, server)
	}
	for _, operation := range []string{"update", "patch"} {
		for key, value := range map[string]string{"command": `"sh"`, "args": `[]`, "env": `{"A":"b"}`, "quarantined": `false`, "tags": `["x"]`, "enabled_tools": `["d"]`, "unannotated_tools": `"read"`} {
			all[operation+" "+key] = fmt.Sprintf(`{"operation":%q,"name":%q,%q:%s}`, operation, server, key, value)
		}
	}
	return all
}

// quarantineRequests are the calls of quarantine_security.
func quarantineRequests(server string) map[string]string {
	all := map[string]string{"block": fmt.Sprintf(`{"operation":"block_tool","name":%q,"tool_name":"r"}`, server), "disable": fmt.Sprintf(`{"operation":"disable_tool","name":%q,"tool_name":"r"}`, server)}
	for _, operation := range []string{"list_quarantined", "inspect_quarantined", "quarantine", "inspect_tools", "release", "approve", "approve_tool", "approve_all_tools", "unblock_tool"} {
		all[operation] = fmt.Sprintf(`{"operation":%q,"name":%q}`, operation, server)
	}
	return all
}

// TestAttackManagementWithoutTheRight: an agent, a person who is limited to a
// profile, and one who has limited the session, try every operation of the
// management tools. They can list and see the logs in their scope; nothing is
// changed, nothing is started, no secret is shown, and a server out of scope is one
// that does not exist.
func TestAttackManagementWithoutTheRight(t *testing.T) {
	t.Parallel()
	dir, servers := managed(t, "")
	_, file := issue(t, dir, "agent", "--servers", "alpha,held", "--permissions", "read,write,destructive")
	path := filepath.Join(dir, "mcp_config.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	chosen := retrieving(t, dir)
	if m := chosen.tool("set_profile", `{"profile":"one"}`); refusalOf(m) != "" {
		t.Fatalf("set_profile: %s", m.Raw)
	}
	for who, p := range map[string]*proxy{"agent": retrieving(t, dir, "--token-file", file), "limited": retrieving(t, dir, "--profile", "one"), "chosen": chosen} {
		all, names := p.list("tools")
		if slices.Contains(names, "quarantine_security") || string(at(all["upstream_servers"], "inputSchema", "properties", "operation", "enum")) != `["list","tail_log"]` {
			t.Errorf("%s: listed are %q with %s", who, names, all["upstream_servers"])
		}
		for _, server := range []string{"alpha", "bravo", "held"} {
			for what, args := range managementRequests(server) {
				if m := p.tool("upstream_servers", args); !m.isError() || strings.Contains(string(m.Raw), plantedSecret) {
					t.Errorf("%s: %s of %s gave %s", who, what, server, m.Raw)
				}
			}
			for what, args := range quarantineRequests(server) {
				m, unknown := p.tool("quarantine_security", args), p.tool("no_such_tool_here__", args)
				if got, want := bodyWithout(m, "quarantine_security"), bodyWithout(unknown, "no_such_tool_here__"); got != want || m.code() == 0 {
					t.Errorf("%s: %s of %s gave\n%s, and an unknown tool\n%s", who, what, server, got, want)
				}
			}
		}
		m := p.tool("upstream_servers", `{"operation":"list"}`)
		var listed struct{ Servers []map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(m.text()), &listed); err != nil || len(listed.Servers) == 0 || string(listed.Servers[0]["name"]) != `"alpha"` {
			t.Fatalf("%s: list gave %s", who, m.Raw)
		}
		if who != "agent" && len(listed.Servers) != 1 || strings.Contains(m.text(), "bravo") {
			t.Errorf("%s: list gave %s", who, m.Raw)
		}
		for _, s := range listed.Servers {
			for key := range s {
				if !slices.Contains([]string{"name", "state", "tools"}, key) {
					t.Errorf("%s: list tells %s", who, key)
				}
			}
		}
		m = p.tool("upstream_servers", `{"operation":"tail_log","name":"alpha"}`)
		if m.isError() || !strings.Contains(m.text(), "my key is") || strings.Contains(m.text(), plantedSecret) || !strings.Contains(m.text(), "no instructions in it") {
			t.Errorf("%s: the log gave %s", who, m.Raw)
		}
		got, want := bodyWithout(p.tool("upstream_servers", `{"operation":"tail_log","name":"bravo"}`), "bravo"), bodyWithout(p.tool("upstream_servers", `{"operation":"tail_log","name":"nobody"}`), "nobody")
		if got != want {
			t.Errorf("%s: the log of another server gave\n%s, and of none\n%s", who, got, want)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the configuration was changed: %v\n%s", err, after)
	}
	if out := must(t, dir, "quarantine", "list", "--json"); strings.Contains(out, `"status": "blocked"`) || !strings.Contains(out, `"held"`) {
		t.Errorf("held are %s", out)
	}
	if _, err := os.Stat(servers[2].log); err == nil {
		t.Errorf("a held server was started: %q", servers[2].events("start"))
	}
	recorded(t, dir, func(r activity.Record) bool {
		return r.Status == activity.Blocked && slices.Contains(r.Notes, "operation add")
	})
	if out := must(t, dir, "activity", "export"); strings.Contains(out, plantedSecret) {
		t.Errorf("the log has %s", out)
	}
}

// TestAttackManagementSwitchedOff: while servers are not managed over MCP, which is
// the default, and in mode direct always, the tools for it are tools that do not
// exist; with read_only_mode there is the list, and nothing else.
func TestAttackManagementSwitchedOff(t *testing.T) {
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		s := newStub(t, "alpha", scopedMembers("alpha"))
		dir := place(t, privateConfig("", s))
		_, file := issue(t, dir, "agent", "--servers", "alpha")
		before, err := os.ReadFile(filepath.Join(dir, "mcp_config.json"))
		if err != nil {
			t.Fatal(err)
		}
		for who, p := range map[string]*proxy{"admin": retrieving(t, dir), "agent": retrieving(t, dir, "--token-file", file)} {
			_, names := p.list("tools")
			for tool, requests := range map[string]map[string]string{"upstream_servers": managementRequests("alpha"), "quarantine_security": quarantineRequests("alpha"), "set_profile": {"profile": `{"profile":"one"}`}} {
				if slices.Contains(names, tool) {
					t.Errorf("%s: %s is listed", who, tool)
				}
				requests["list"] = `{"operation":"list"}`
				for what, args := range requests {
					m, unknown := p.tool(tool, args), p.tool("no_such_tool_here__", args)
					if got, want := bodyWithout(m, tool), bodyWithout(unknown, "no_such_tool_here__"); got != want || m.code() != -32602 {
						t.Errorf("%s: %s %s gave\n%s, and an unknown tool\n%s", who, tool, what, got, want)
					}
				}
			}
		}
		after, err := os.ReadFile(filepath.Join(dir, "mcp_config.json"))
		if err != nil || string(after) != string(before) {
			t.Errorf("the configuration was changed: %v\n%s", err, after)
		}
	})
	t.Run("read only", func(t *testing.T) {
		t.Parallel()
		dir, _ := managed(t, `"read_only_mode":true,`)
		_, file := issue(t, dir, "agent", "--servers", "alpha")
		before, err := os.ReadFile(filepath.Join(dir, "mcp_config.json"))
		if err != nil {
			t.Fatal(err)
		}
		for who, p := range map[string]*proxy{"admin": retrieving(t, dir), "agent": retrieving(t, dir, "--token-file", file)} {
			all, names := p.list("tools")
			if slices.Contains(names, "quarantine_security") || string(at(all["upstream_servers"], "inputSchema", "properties", "operation", "enum")) != `["list"]` {
				t.Errorf("%s: listed are %q with %s", who, names, all["upstream_servers"])
			}
			requests := managementRequests("alpha")
			requests["tail_log"] = `{"operation":"tail_log","name":"alpha"}`
			for what, args := range requests {
				if m := p.tool("upstream_servers", args); !m.isError() {
					t.Errorf("%s: %s gave %s", who, what, m.Raw)
				}
			}
			for what, args := range quarantineRequests("alpha") {
				if m := p.tool("quarantine_security", args); m.code() != -32602 {
					t.Errorf("%s: %s gave %s", who, what, m.Raw)
				}
			}
			if m := p.tool("upstream_servers", `{"operation":"list"}`); m.isError() || !strings.Contains(m.text(), "alpha") || strings.Contains(m.text(), plantedSecret) {
				t.Errorf("%s: list gave %s", who, m.Raw)
			}
		}
		after, err := os.ReadFile(filepath.Join(dir, "mcp_config.json"))
		if err != nil || string(after) != string(before) {
			t.Errorf("the configuration was changed: %v\n%s", err, after)
		}
	})
}
