//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAttackLowerVariantOfUnlisted: a model calls a tool of a server that has not
// said yet what it offers, through a lower variant than the tool needs, or one that
// is not in its list. It is refused once that is known, and not called.
func TestAttackLowerVariantOfUnlisted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ members, missing string }{
		"reviewed":     {"", "waits for a person's review"},
		"not reviewed": {`"quarantine_enabled":false,"unannotated_tools":"read",`, "has not said that it has a tool echo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, "s", `"start_delay_ms":4000,"tools":`+scopedTools)
			p := retrieving(t, place(t, privateConfig(c.members, s)))
			ids := map[string]int{}
			for _, tool := range []string{"d", "w", "echo", "r"} { // echo is not listed, and would answer
				ids[tool] = p.start("tools/call", fmt.Sprintf(`{"name":"call_tool_read","arguments":{"name":"s:%s"}}`, tool))
			}
			for tool, why := range map[string]string{"d": "call_tool_destructive", "w": "call_tool_write", "echo": c.missing} {
				if m := p.wait(ids[tool]); !m.isError() || !strings.Contains(m.text(), why) {
					t.Errorf("%s gave %s", tool, m.Raw)
				}
			}
			if m := p.wait(ids["r"]); refusalOf(m) != "" {
				t.Errorf("a tool that reads gave %s", m.Raw)
			}
			for _, m := range s.received("tools/call") {
				if stringAt(m.Params, "name") != "r" {
					t.Errorf("the server got %s", m.Raw)
				}
			}
		})
	}
}

// TestAttackLowerVariantOfChanged: a tool that only reads when it is known becomes
// one that destroys, which its server may change without a person. A client that
// permits all reads calls it before the new form is known: it is refused then.
func TestAttackLowerVariantOfChanged(t *testing.T) {
	t.Parallel()
	s := newTurncoat(t, "s")
	s.trusted()
	dir := place(t, privateConfig("", s.upstreamStub))
	before := retrieving(t, dir)
	before.awaitFound("look", "s:look")
	if m := before.through("read", "s:look", `{"a":1}`); refusalOf(m) != "" {
		t.Errorf("before that: %s", m.Raw)
	}
	before.close()
	s.write(t, offering{"tools": strings.Replace(lookTool, `{"readOnlyHint":true}`, `{"destructiveHint":true}`, 1)})
	p := retrieving(t, dir)
	calls := len(s.received("tools/call"))
	if m := p.through("read", "s:look", `{"a":1}`); !m.isError() || !strings.Contains(m.text(), "call_tool_destructive") {
		t.Errorf("after that: %s", m.Raw)
	}
	if n := len(s.received("tools/call")); n != calls {
		t.Errorf("%d calls reached the server", n-calls)
	}
	if m := p.through("destructive", "s:look", `{"a":1}`); refusalOf(m) != "" {
		t.Errorf("through the right one: %s", m.Raw)
	}
}
