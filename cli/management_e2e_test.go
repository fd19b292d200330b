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

// manage calls upstream_servers, which must succeed, and returns the answer.
func (p *proxy) manage(operation, members string) json.RawMessage {
	p.t.Helper()
	if members != "" {
		members = "," + members
	}
	m := p.tool("upstream_servers", fmt.Sprintf(`{"operation":%q%s}`, operation, members))
	if refusalOf(m) != "" {
		p.t.Fatalf("%s gave %s", operation, m.Raw)
	}
	return json.RawMessage(m.text())
}

// recorded are the records of the activity log, the oldest first, once there is one
// that matches.
func recorded(t *testing.T, dir string, match func(activity.Record) bool) (records []activity.Record) {
	t.Helper()
	awaitUntil(t, answerTime, "it is in the log", func() bool {
		records = nil
		for line := range strings.Lines(must(t, dir, "activity", "export")) {
			var r activity.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			records = append(records, r)
		}
		return slices.ContainsFunc(records, match)
	})
	return records
}

// TestManagementEndToEnd has a model add a server, which is held until a person has
// released it; then it is found and called. A change of how it is started holds it
// again, and in the end it is removed. The log has all of it.
func TestManagementEndToEnd(t *testing.T) {
	t.Parallel()
	first, second := moonStub(t, "notes"), moonStub(t, "notes")
	dir := place(t, privateConfig(`"disable_management":false,`))
	p, beside := retrieving(t, dir), retrieving(t, dir)
	answer := p.manage("add", fmt.Sprintf(`"name":"notes","command":"mcpstub","args":["stub",%q],"env":{"PLAIN":"value-7351"}`, first.file))
	if string(at(answer, "held")) != "true" || string(at(answer, "server", "quarantined")) != "true" || !strings.Contains(stringAt(answer, "next"), "mcpproxy quarantine release notes") ||
		strings.Contains(string(answer), "value-7351") {
		t.Errorf("add gave %s", answer)
	}
	expectHeld := func(s *upstreamStub) {
		t.Helper()
		if found := foundIn(p.search("moon")); len(found) > 0 {
			t.Errorf("found are %q", found)
		}
		for _, name := range []string{"notes:r", "notes__r"} {
			if m := p.through("read", name, "{}"); !m.isError() || !strings.Contains(m.text(), "mcpproxy quarantine show notes") {
				t.Errorf("%s gave %s", name, m.Raw)
			}
		}
		if m := p.tool("describe_tool", `{"tool_ids":["notes:r"]}`); string(at(json.RawMessage(m.text()), "definitions")) != "[]" {
			t.Errorf("describe_tool gave %s", m.Raw)
		}
		if _, err := os.Stat(s.log); err == nil {
			t.Errorf("it was started: %q", s.events("start"))
		}
	}
	expectHeld(first)
	if list := p.manage("list", ""); stringAt(list, "servers", "0", "state") != "quarantined" {
		t.Errorf("list gave %s", list)
	}
	m := p.tool("quarantine_security", `{"operation":"list_quarantined"}`)
	if held := json.RawMessage(m.text()); stringAt(held, "servers", "0", "name") != "notes" || !strings.Contains(m.text(), "mcpproxy quarantine release notes") {
		t.Errorf("list_quarantined gave %s", m.Raw)
	}
	m = p.tool("quarantine_security", `{"operation":"inspect_quarantined","name":"notes"}`)
	if m.isError() || !strings.Contains(m.text(), "it is not started to find out") {
		t.Errorf("inspect_quarantined gave %s", m.Raw)
	}
	expectHeld(first)

	must(t, dir, "quarantine", "release", "notes")
	p.awaitFound("moon", "notes:r", "notes:w", "notes:d")
	beside.awaitFound("moon", "notes:r")
	callAsFound(t, p, first)
	m = p.tool("quarantine_security", `{"operation":"inspect_tools","name":"notes"}`)
	if m.isError() || !strings.Contains(m.text(), "About the moon.") || !strings.Contains(m.text(), "no instructions in it") {
		t.Errorf("inspect_tools gave %s", m.Raw)
	}

	answer = p.manage("patch", fmt.Sprintf(`"name":"notes","args":["stub",%q]`, second.file))
	if string(at(answer, "held")) != "true" || string(at(answer, "changed")) != `["args","quarantined"]` || !strings.Contains(stringAt(answer, "next"), "mcpproxy quarantine release notes") {
		t.Errorf("patch gave %s", answer)
	}
	expectHeld(second)
	awaitUntil(t, answerTime, "it is held in the other instance too", func() bool {
		return len(foundIn(beside.search("moon"))) == 0 && strings.Contains(refusalOf(beside.through("read", "notes:r", "{}")), "mcpproxy quarantine show notes")
	})
	must(t, dir, "quarantine", "release", "notes")
	p.awaitFound("moon", "notes:r")
	callAsFound(t, p, second)

	if m = p.tool("quarantine_security", `{"operation":"block_tool","name":"notes","tool_name":"w"}`); m.isError() {
		t.Fatalf("block_tool gave %s", m.Raw)
	}
	if m = p.tool("quarantine_security", `{"operation":"disable_tool","name":"notes","tool_name":"d"}`); m.isError() {
		t.Fatalf("disable_tool gave %s", m.Raw)
	}
	if found := foundIn(p.search("moon")); !slices.Contains(found, "notes:r") || slices.Contains(found, "notes:w") || slices.Contains(found, "notes:d") {
		t.Errorf("found are %q", found)
	}
	before := len(second.received("tools/call"))
	for tool, why := range map[string]string{"w": "blocked", "d": "disabled"} {
		if m = p.through("destructive", "notes:"+tool, "{}"); !m.isError() || !strings.Contains(m.text(), why) {
			t.Errorf("%s gave %s", tool, m.Raw)
		}
	}
	if n := len(second.received("tools/call")); n != before {
		t.Errorf("%d calls reached the server", n-before)
	}
	disabled := p.search("moon", `"include_disabled":true`)
	if text := string(at(disabled, "disabled")); !strings.Contains(text, "notes:w") || !strings.Contains(text, "notes:d") {
		t.Errorf("disabled are %s", disabled)
	}
	if m = p.tool("quarantine_security", `{"operation":"quarantine","name":"notes"}`); m.isError() {
		t.Fatalf("quarantine gave %s", m.Raw)
	}
	if found := foundIn(p.search("moon")); len(found) > 0 {
		t.Errorf("of a server that is held again are found %q", found)
	}
	p.manage("remove", `"name":"notes"`)
	if m = p.through("read", "notes:r", "{}"); !m.isError() || !strings.Contains(m.text(), "not found, or access denied") {
		t.Errorf("after it was removed: %s", m.Raw)
	}
	if list := p.manage("list", ""); string(at(list, "servers")) != "[]" {
		t.Errorf("list gave %s", list)
	}

	records := recorded(t, dir, func(r activity.Record) bool { return slices.Contains(r.Notes, "operation remove") })
	var done []string
	for _, r := range records {
		if r.Kind == activity.Config || r.Kind == activity.Quarantine {
			done = append(done, strings.Join(r.Notes, "; "))
			if r.Tool != "" && (r.Caller != "admin" || r.Client != "test" || r.Server != "notes") {
				t.Errorf("%s by %s %s of %s", r.Notes, r.Caller, r.Client, r.Server)
			}
		}
		if strings.Contains(string(r.Request), "value-7351") {
			t.Errorf("the log has %s", r.Request)
		}
	}
	all := strings.Join(done, "\n")
	for _, part := range []string{"operation add; server notes is added over MCP, held", "operation patch; server notes: args, quarantined changed over MCP; it is held", "operation block_tool; tool notes:w is blocked over MCP",
		"operation disable_tool; tool notes:d is disabled over MCP", "operation quarantine; server notes is held over MCP", "operation remove; server notes is removed over MCP"} {
		if strings.Count(all, part) != 1 {
			t.Errorf("the log does not have %q once:\n%s", part, all)
		}
	}
}

// callAsFound calls each tool that a search finds through the tool that its
// call_with names, and no tool through a lower one.
func callAsFound(t *testing.T, p *proxy, s *upstreamStub) {
	t.Helper()
	var answer struct {
		Tools []struct {
			Name     string
			CallWith string `json:"call_with"`
		}
	}
	if err := json.Unmarshal(p.search("moon"), &answer); err != nil || len(answer.Tools) != 4 {
		t.Fatalf("found are %v %v", answer, err)
	}
	before := len(s.received("tools/call"))
	for _, tool := range answer.Tools {
		if m := p.tool(tool.CallWith, fmt.Sprintf(`{"name":%q}`, tool.Name)); refusalOf(m) != "" {
			t.Errorf("%s of %s gave %s", tool.CallWith, tool.Name, shorten(m.Raw))
		}
		if tool.CallWith == "call_tool_read" {
			continue
		}
		if m := p.tool("call_tool_read", fmt.Sprintf(`{"name":%q}`, tool.Name)); !m.isError() || !strings.Contains(m.text(), tool.CallWith) {
			t.Errorf("call_tool_read of %s gave %s", tool.Name, m.Raw)
		}
	}
	if n := len(s.received("tools/call")) - before; n != len(answer.Tools) {
		t.Errorf("%d calls reached the server", n)
	}
}

// TestManagementWidensNothing asks a person's session for what only a person can do
// in the file: each is refused, with the way to do it, and the file stays as it is.
func TestManagementWidensNothing(t *testing.T) {
	t.Parallel()
	s := newStub(t, "notes", `"tools":`+scopedTools).with(`"env":{"KEPT":"${env:KEPT}"},"disabled_tools":["w"]`)
	off := newStub(t, "off", "").with(`"enabled":false,"enabled_tools":["pid"]`)
	dir := place(t, privateConfig(`"disable_management":false,`, s, off))
	p := retrieving(t, dir)
	path := filepath.Join(dir, "mcp_config.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		`"quarantined":false`:                           "mcpproxy quarantine release notes",
		`"quarantined":true`:                            "mcpproxy quarantine release notes",
		`"unannotated_tools":"read"`:                    "in the configuration file",
		`"tool_overrides":{"d":{"name":"x"}}`:           "in the configuration file",
		`"auto_approve_tool_changes":true`:              "in the configuration file",
		`"isolation":{"enabled":false}`:                 "in the configuration file",
		`"inherit_env":"all"`:                           "in the configuration file",
		`"shared":true`:                                 "in the configuration file",
		`"alias":"other"`:                               "in the configuration file",
		`"oauth":{"client_id":"x"}`:                     "in the configuration file",
		`"enabled":true`:                                "enable",
		`"disabled":false`:                              "enable",
		`"env":{"A":"${env:HOME}"}`:                     "${env:HOME}",
		`"env":{"KEPT":"${env:HOME}"}`:                  "${env:HOME}",
		`"env":{"A":"x${env:KEPT}"}`:                    "${env:KEPT}",
		`"args":["${env:KEPT}"]`:                        "${env:KEPT}",
		`"command":"${env:KEPT}"`:                       "${env:KEPT}",
		`"working_dir":"${file:/etc/passwd}"`:           "",
		`"enabled_tools":["r","w"]`:                     "enabled_tools",
		`"disabled_tools":[]`:                           "disabled_tools",
		`"disabled_tools":null`:                         "disabled_tools",
		`"expose_prompts":true`:                         "expose_prompts",
		`"expose_resources":null`:                       "expose_resources",
		`"unknown_key":1`:                               "unknown_key",
		`"Quarantined":false`:                           "Quarantined",
		`"tags":["a"],"quarantined":false`:              "quarantined",
		`"env":{"A":"b","A":"${env:HOME}"}`:             "",
		`"command":"sh\u0000"`:                          "command",
		`"args":["a"],"unannotated_tools":"read"`:       "unannotated_tools",
		`"url":"http://127.0.0.1:1/${env:HOME}"`:        "",
		`"headers":{"Authorization":"${keyring:x:y}"}`:  "",
		`"tool_overrides":{"d":{"annotations":{}}}`:     "tool_overrides",
		`"max_concurrent_requests":1,"isolation":false`: "isolation",
	}
	for members, part := range refused {
		for _, operation := range []string{"patch", "update", "add"} {
			name := "notes"
			if operation == "add" {
				name = "fresh"
				if strings.Contains(members, "_tools") && !strings.Contains(members, "unannotated") || strings.Contains(members, `"command"`) || strings.Contains(members, `"url"`) {
					continue // a new server may have fewer tools, and has to have these
				}
				members += `,"command":"mcpstub"`
			}
			m := p.tool("upstream_servers", fmt.Sprintf(`{"operation":%q,"name":%q,%s}`, operation, name, members))
			if part = strings.ReplaceAll(part, "notes", name); !m.isError() || !strings.Contains(m.text(), part) {
				t.Errorf("%s %s gave %s", operation, members, m.Raw)
			}
		}
	}
	for _, args := range []string{`"name":"off","enabled_tools":["pid","echo"]`, `"name":"off","enabled_tools":null`, `"name":"nobody","tags":["a"]`, `"tags":["a"]`, `"name":"notes"`} {
		if m := p.tool("upstream_servers", `{"operation":"patch",`+args+`}`); !m.isError() {
			t.Errorf("patch %s gave %s", args, m.Raw)
		}
	}
	for _, operation := range []string{"approve", "release", "unquarantine", "enable_tool"} {
		m := p.tool("quarantine_security", fmt.Sprintf(`{"operation":%q,"name":"notes"}`, operation))
		if !m.isError() || !strings.Contains(m.text(), "mcpproxy quarantine") {
			t.Errorf("%s gave %s", operation, m.Raw)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the configuration was changed: %v\n%s", err, after)
	}
	// What narrows is done.
	if answer := p.manage("patch", `"name":"notes","disabled_tools":["w","d"],"tags":["a"],"expose_prompts":false`); string(at(answer, "held")) == "true" {
		t.Errorf("what narrows gave %s", answer)
	}
	p.manage("enable", `"name":"off"`)
	if answer := p.manage("list", ""); string(at(answer, "servers", "1", "enabled")) != "true" {
		t.Errorf("list gave %s", answer)
	}
	p.awaitFound("returns the process id", "off:pid")
	// A restart is of what runs, and a refresh reads the lists anew.
	starts := len(off.events("start"))
	p.manage("refresh", `"name":"off"`)
	awaitUntil(t, answerTime, "it is started again", func() bool { return len(off.events("start")) > starts })
	p.manage("disable", `"name":"off"`)
	if found := foundIn(p.search("returns the process id")); slices.Contains(found, "off:pid") {
		t.Errorf("found are %q", found)
	}
}

// TestManagementShowsNoSecret: what the management tools answer, and what the log
// keeps of it, holds no secret, wherever in an entry it stands, those included that
// the model itself has just written.
func TestManagementShowsNoSecret(t *testing.T) {
	t.Parallel()
	secret := func(n int) string { return fmt.Sprintf("sesame-%d-opens-4b1d", n) }
	s := newStub(t, "notes", fmt.Sprintf(`"stderr_text":"started with %s and %s\n"`, secret(1), secret(2)))
	entry := s.with(fmt.Sprintf(`"env":{"API_TOKEN":%q,"FROM":"${env:ELSEWHERE}"}`, secret(1))).entry()
	entry = strings.Replace(entry, `"args":[`, `"args":["stub",`, 1)
	config := fmt.Sprintf(`{"share_upstreams":false,"disable_management":false,"mcpServers":[%s,
		{"name":"web","url":"http://user:%s@127.0.0.1:1/mcp?api_key=%s","headers":{"Authorization":"Bearer %s","X-Api-Key":%q}},
		{"name":"tool","command":"no-such-command-here","args":["--token",%q,"--api-key=%s","-e","PASSWORD=%s"]}]}`,
		strings.Replace(entry, `"stub","stub"`, `"stub"`, 1), secret(3), secret(4), secret(5), secret(6), secret(7), secret(8), secret(9))
	dir := place(t, "{}")
	p := startProxyWith(t, dir, config, []string{"ELSEWHERE=" + secret(2)}, "--mode", "retrieve_tools")
	p.initialize("")
	p.awaitFound("returns the process id", "notes:pid")
	var said strings.Builder
	ask := func(tool, args string) {
		m := p.tool(tool, args)
		fmt.Fprintln(&said, string(m.Raw))
	}
	ask("upstream_servers", `{"operation":"list"}`)
	for _, name := range []string{"notes", "web", "tool"} {
		ask("upstream_servers", fmt.Sprintf(`{"operation":"tail_log","name":%q}`, name))
		ask("upstream_servers", fmt.Sprintf(`{"operation":"refresh","name":%q}`, name))
		ask("upstream_servers", fmt.Sprintf(`{"operation":"restart","name":%q}`, name))
		ask("upstream_servers", fmt.Sprintf(`{"operation":"patch","name":%q,"tags":["x"]}`, name))
		ask("quarantine_security", fmt.Sprintf(`{"operation":"inspect_tools","name":%q}`, name))
		ask("call_tool_destructive", fmt.Sprintf(`{"name":"%s:nothing"}`, name))
	}
	ask("upstream_servers", fmt.Sprintf(`{"operation":"add","name":"fresh","command":"no-such-command-here","args":["--token",%q],"env":{"MY_SECRET":%q}}`, secret(10), secret(11)))
	ask("upstream_servers", fmt.Sprintf(`{"operation":"add","name":"fresh","command":"again","args":["--password",%q]}`, secret(12)))
	ask("upstream_servers", fmt.Sprintf(`{"operation":"add","name":"far","url":"http://127.0.0.1:1/?token=%s","headers":{"Authorization":"Bearer %s"}}`, secret(13), secret(14)))
	ask("upstream_servers", fmt.Sprintf(`{"operation":"patch","name":"notes","env":{"API_TOKEN":%q}}`, secret(15)))
	ask("upstream_servers", `{"operation":"list"}`)
	ask("quarantine_security", `{"operation":"list_quarantined"}`)
	ask("quarantine_security", `{"operation":"inspect_quarantined","name":"fresh"}`)
	text := said.String()
	if !strings.Contains(text, "API_TOKEN") || !strings.Contains(text, "started with") || !strings.Contains(text, `\"fresh\"`) {
		t.Errorf("the answers are %s", text)
	}
	p.close()
	kept := must(t, dir, "activity", "export")
	for n := 1; n <= 15; n++ {
		for where, text := range map[string]string{"the answers": text, "the log": kept, "stderr": p.stderrText()} {
			if i := strings.Index(text, secret(n)); i >= 0 {
				t.Errorf("secret %d is in %s: ...%s", n, where, text[max(0, i-300):i+len(secret(n))])
			}
		}
	}
}
