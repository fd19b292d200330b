package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/mcp/auth"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/policy"
	"mcpproxy/mcp/wire"
)

// TestLocate is the table of whose a URI is.
func TestLocate(t *testing.T) {
	none := offer("none")
	none.HasResources = false
	a := offer("a", [2]string{"resource", "config://settings"}, [2]string{"resource", "x:own"}, [2]string{"resource", "odd|uri"},
		[2]string{"template", "file:///{+path}"}, [2]string{"template", "row:{id}"}, [2]string{"template", "same:{a}"}, [2]string{"resource", "both://1"})
	b := offer("b", [2]string{"resource", "config://settings"}, [2]string{"resource", "file:///listed"},
		[2]string{"template", "same:{b}"}, [2]string{"template", "broken:{"}, [2]string{"resource", "both://2"})
	for _, c := range []struct {
		uri    string
		server string // "" is nobody
		plain  string // what it is asked for, if not the uri
		code   int64
	}{
		{"x:own", "a", "", 0},
		{"config://settings", "", "", wire.CodeInvalidParams},
		{"a|config://settings", "a", "config://settings", 0},
		{"b|config://settings", "b", "config://settings", 0},
		{"none|config://settings", "none", "config://settings", 0}, // it says so itself
		{"c|config://settings", "", "", wire.CodeNotFound},
		{"b|anything:at all", "b", "anything:at all", 0},
		{"a|x|y", "a", "x|y", 0},
		{"odd|uri", "a", "", 0},
		{"file:///some/where", "a", "", 0},
		{"file:///listed", "b", "", 0}, // the list before the template
		{"a|file:///listed", "a", "file:///listed", 0},
		{"row:7", "a", "", 0},
		{"row:", "a", "", 0},
		{"row:7/8", "a", "", 0},  // no template gives it, and only a has that scheme
		{"row:{id}", "a", "", 0}, // completion names the template itself
		{"same:1", "", "", wire.CodeInvalidParams},
		{"b|same:1", "b", "same:1", 0},
		{"same:{b}", "b", "", 0},
		{"broken:{", "b", "", 0},
		{"broken:1", "b", "", 0}, // nobody else has that scheme
		{"config://other", "", "", wire.CodeNotFound},
		{"both://3", "", "", wire.CodeNotFound},
		{"nowhere:1", "", "", wire.CodeNotFound},
		{"no uri at all", "", "", wire.CodeNotFound},
		{"|", "", "", wire.CodeNotFound},
	} {
		t.Run(c.uri, func(t *testing.T) {
			u := &upstreams{}
			d := direct(t, u, none, a, b)
			params := fmt.Appendf(nil, `{"x":1.0,"uri":%s,"y":2}`, wire.Quote(c.uri))
			_, e := d.Handle(t.Context(), session(), "resources/read", params)
			if c.code != 0 {
				if e == nil || e.Code != c.code || !strings.Contains(e.Message, "'"+c.uri+"'") {
					t.Errorf("got %v", e)
				}
				return
			}
			if e != nil {
				t.Fatalf("got %v", e)
			}
			want := c.uri
			if c.plain != "" {
				want = c.plain
			}
			got := u.last()
			if got.Server != c.server || string(got.Params) != fmt.Sprintf(`{"x":1.0,"uri":%s,"y":2}`, wire.Quote(want)) {
				t.Errorf("%s got %s", got.Server, got.Params)
			}
		})
	}
}

// TestLocateUnlisted reads what nobody lists where one server alone can have it.
func TestLocateUnlisted(t *testing.T) {
	tools := offer("tools")
	tools.HasResources = false
	u := &upstreams{}
	d := direct(t, u, tools, offer("only"))
	if _, e := d.Handle(t.Context(), session(), "resources/read", json.RawMessage(`{"uri":"any:thing"}`)); e != nil || u.last().Server != "only" {
		t.Errorf("%v got it: %v", u.last().Server, e)
	}
}

// TestLocateSettles gives servers that are not known yet the time to say what
// they have.
func TestLocateSettles(t *testing.T) {
	u := &upstreams{}
	blank := offer("a")
	blank.Known, blank.HasResources = false, false
	d := direct(t, u, blank)
	u.settled = func() { u.set(offer("a", [2]string{"resource", "x:1"})) }
	if _, e := d.Handle(t.Context(), session(), "resources/read", json.RawMessage(`{"uri":"x:1"}`)); e != nil || u.last().Server != "a" {
		t.Errorf("%v got it: %v", u.last().Server, e)
	}
}

// TestLocateHidden keeps to servers that the caller may use.
func TestLocateHidden(t *testing.T) {
	u := &upstreams{}
	a, b := offer("a", [2]string{"resource", "x:1"}), offer("b", [2]string{"resource", "x:1"})
	u.set(a, b)
	for name, rule := range map[string]policy.Rule{"held": {Quarantined: true}, "hidden": {HideResources: true}, "off": {Disabled: true}} {
		gate := policy.NewGate(u, policy.Rules{Servers: map[string]policy.Rule{"a": rule, "b": {}}}, policy.Options{})
		d := NewDirect(Options{Gate: gate, Callers: auth.Person("")})
		if _, e := d.Handle(t.Context(), session(), "resources/read", json.RawMessage(`{"uri":"x:1"}`)); e != nil || u.last().Server != "b" {
			t.Errorf("%s: %v got it: %v", name, u.last().Server, e)
		}
		d.Handle(t.Context(), session(), "resources/read", json.RawMessage(`{"uri":"a|x:1"}`))
		if u.last().Server == "a" {
			t.Errorf("%s: read all the same", name)
		}
	}
}

// TestTemplates matches URIs against templates of RFC 6570.
func TestTemplates(t *testing.T) {
	var u uris
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"file:///{+path}", "file:///a/b", true},
		{"file:///{path}", "file:///a/b", false},
		{"file:///{path}", "file:///a%2Fb", true},
		{"x://{a}/{b}", "x://1/2", true},
		{"x://{a}/{b}", "x://1", false},
		{"x://{a}{?b,c}", "x://1", true},
		{"x://{a}{?b,c}", "x://1?b=2&c=3", true},
		{"x://fixed", "x://fixed", true},
		{"x://fixed", "x://fixed/more", false},
		{"x://a.b", "x://aXb", false},
		{"x://{", "x://{", false},
		{"", "", true},
	} {
		for range 2 {
			if got := u.match(c.template, c.uri); got != c.want {
				t.Errorf("%s and %s: %v", c.template, c.uri, got)
			}
		}
	}
}

func TestResourceParams(t *testing.T) {
	d := direct(t, &upstreams{}, offer("a", [2]string{"resource", "x:1"}))
	for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
		for _, params := range []string{``, `{}`, `{"uri":5}`, `{"uri":""}`, `[]`, `null`} {
			if _, e := d.Handle(t.Context(), session(), method, json.RawMessage(params)); e == nil || e.Code != wire.CodeInvalidParams {
				t.Errorf("%s %s: %v", method, params, e)
			}
		}
	}
}

// TestComplete asks the server of a prompt or a template, and only one that
// completes.
func TestComplete(t *testing.T) {
	dumb := offer("dumb", [2]string{"prompt", "p"})
	dumb.Completions = false
	u := &upstreams{answers: map[string]json.RawMessage{"completion/complete": json.RawMessage(`{"completion":{"values":["v"]}}`)}}
	d := direct(t, u, offer("a", [2]string{"prompt", "p q"}, [2]string{"template", "x:{a}"}), dumb)
	prompt := d.options.Gate.Catalog(t.Context()).Names(catalog.Prompt, 64).Ordered()[0]
	public := d.options.Gate.Catalog(t.Context()).Names(catalog.Prompt, 64).Public(prompt)
	for _, c := range []struct {
		params, want, result string
		code                 int64
	}{
		{`{"ref":{"type":"ref/prompt","name":"` + public + `"},"argument":{}}`, `{"ref":{"type":"ref/prompt","name":"p q"},"argument":{}}`, `{"completion":{"values":["v"]}}`, 0},
		{`{"ref":{"uri":"x:{a}","type":"ref/resource"}}`, `{"ref":{"uri":"x:{a}","type":"ref/resource"}}`, `{"completion":{"values":["v"]}}`, 0},
		{`{"ref":{"uri":"a|x:{a}","type":"ref/resource"}}`, `{"ref":{"uri":"x:{a}","type":"ref/resource"}}`, `{"completion":{"values":["v"]}}`, 0},
		{`{"ref":{"type":"ref/prompt","name":"dumb__p"}}`, ``, `{"completion":{"values":[],"total":0,"hasMore":false}}`, 0},
		{`{"ref":{"type":"ref/prompt","name":"nobody"}}`, ``, ``, wire.CodeInvalidParams},
		{`{"ref":{"type":"ref/resource","uri":"y:1"}}`, ``, ``, 0},
		{`{"ref":{"type":"ref/tool"}}`, ``, ``, wire.CodeInvalidParams},
		{`{}`, ``, ``, wire.CodeInvalidParams},
		{``, ``, ``, wire.CodeInvalidParams},
	} {
		u.got = nil
		result, e := d.Handle(t.Context(), session(), "completion/complete", json.RawMessage(c.params))
		if c.code != 0 && (e == nil || e.Code != c.code) {
			t.Errorf("%s: %v", c.params, e)
		}
		if c.result != "" && string(result) != c.result {
			t.Errorf("%s: %s %v", c.params, result, e)
		}
		if c.want != "" && string(u.last().Params) != c.want || c.want == "" && c.result != "" && len(u.got) > 0 {
			t.Errorf("%s: the server got %s", c.params, u.last().Params)
		}
	}
}

// TestSpellings takes URIs that a server could take for one for one: what is held
// under a name is not read by another spelling of it, not even where a template
// would give it.
func TestSpellings(t *testing.T) {
	held, open := "file:///home/me/se cret", "notes://Note/a"
	server := offer("s", [2]string{"resource", held}, [2]string{"resource", open}, [2]string{"resource", open + "/"}, [2]string{"template", "file:///{+path}"})
	d := direct(t, &upstreams{}, server)
	for uri, want := range map[string]string{
		"file:///home/me/se%20cret": held, "FILE:///home/me/se cret": held, "file:///home//me/./x/../se cret": held,
		"notes://note/a": open, open + "/": open + "/", "file:///home/me/other": "file:///{+path}",
	} {
		item, plain, e := d.locate(t.Context(), asker{Session: session(), caller: auth.Local()}, uri)
		if e != nil || item.Name != want || plain != uri {
			t.Errorf("%s: %v %s %v", uri, item, plain, e)
		}
	}
}
