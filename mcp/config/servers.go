package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/tailscale/hujson"
)

// servers reads mcpServers, a list or a map, into c.Servers.
func (d *decoder) servers(c *Config, root *hujson.Object, env environ) error {
	member := find(root, "mcpServers")
	if member == nil {
		return d.bareServers(root)
	}
	v := &member.Value
	switch t := v.Value.(type) {
	case *hujson.Array:
		for i := range t.Elements {
			d.server(c, &t.Elements[i], entry{label: fmt.Sprintf("mcpServers[%d]", i), env: env})
		}
	case *hujson.Object:
		for i := range t.Members {
			m := &t.Members[i]
			name := memberName(m)
			d.server(c, &m.Value, entry{label: "mcpServers." + name, name: name, keyed: true, env: env})
		}
	case hujson.Literal:
		if t.Kind() != 'n' {
			return d.misshapen(v, "mcpServers", "must be a list of servers or an object of them by name")
		}
	}
	return nil
}

// bareServers refuses a file that has servers but no mcpServers.
func (d *decoder) bareServers(root *hujson.Object) error {
	known := make(map[string]bool)
	for _, f := range defaults().fields() {
		key, _, _ := strings.Cut(f.key, ".")
		known[key] = true
	}
	for i := range root.Members {
		m := &root.Members[i]
		if name := memberName(m); !known[name] && holdsServer(&m.Value) {
			return d.fault(m.Name.StartOffset, name, nil, `servers stand under "mcpServers": {"mcpServers": {"name": {…}}}`)
		}
	}
	return nil
}

// holdsServer reports whether v looks like the entry of a server, or like an
// object of such entries.
func holdsServer(v *hujson.Value) bool {
	isServer := func(v *hujson.Value) bool {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return false
		}
		for _, key := range []string{"command", "url"} {
			if m := find(obj, key); m != nil && m.Value.Value.Kind() == '"' {
				return true
			}
		}
		return false
	}
	if isServer(v) {
		return true
	}
	obj, ok := v.Value.(*hujson.Object)
	return ok && len(obj.Members) > 0 && isServer(&obj.Members[0].Value)
}

// entry is where a server stands.
type entry struct {
	label  string // how messages call it
	name   string // of the map form
	keyed  bool   // map form: the name stands in front of the entry
	offset int    // of the value
	env    environ
}

// server appends the server that v describes, with its Err when it is wrong.
func (d *decoder) server(c *Config, v *hujson.Value, at entry) {
	s := Server{
		Name: at.name, Settings: c.Settings, Enabled: true,
		Shared: "auto", ReconnectOnUse: true, file: c.Path,
	}
	s.Limits = c.serverLimits
	at.offset = v.StartOffset
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		s.Err = d.misshapen(v, at.label, "must be an object")
		c.Servers = append(c.Servers, s)
		return
	}
	if !at.keyed {
		if m := find(obj, "name"); m != nil && m.Value.Value.Kind() == '"' {
			s.Name = scalarOf(&m.Value).text
		}
		if s.Name != "" {
			at.label = "mcpServers." + s.Name
		}
	}
	disabled := false
	s.Err = d.object(obj, at.label+".", s.fields(&disabled))
	if disabled {
		s.Enabled = false
	}
	if s.Err == nil {
		s.Err = d.check(&s, c, obj, at)
	}
	if s.Err == nil {
		s.Err = d.checkReferences(&s, at)
	}
	c.Servers = append(c.Servers, s)
}

func (s *Server) fields(disabled *bool) []field {
	var name string // read before
	own := []field{
		{key: "name", set: text(&name)},
		{key: "command", set: text(&s.Command)},
		{key: "args", take: textList(&s.Args)},
		{key: "env", take: textMap(&s.Env)},
		{key: "working_dir", set: text(&s.WorkingDir)},
		{key: "cwd", set: text(&s.WorkingDir)}, // other programs' word
		{key: "url", set: text(&s.URL)},
		{key: "headers", take: textMap(&s.Headers)},
		{key: "oauth", take: s.takeOAuth},
		{key: "protocol", set: protocol(&s.Protocol)},
		{key: "type", set: protocol(&s.Protocol)}, // other programs' word
		{key: "isolation", take: s.takeIsolation},
		{key: "enabled", set: boolean(&s.Enabled)},
		{key: "disabled", set: boolean(disabled)},
		{key: "quarantined", set: boolean(&s.Quarantined)},
		{key: "shared", set: autoBool(&s.Shared)},
		{key: "tags", take: textList(&s.Tags)},
		{key: "alias", set: text(&s.Alias)},
		{key: "enabled_tools", take: textList(&s.EnabledTools)},
		{key: "disabled_tools", take: textList(&s.DisabledTools)},
		{key: "tool_overrides", take: s.takeOverrides},
		{key: "auto_approve_tool_changes", set: boolean(&s.AutoApproveToolChanges)},
		{key: "reconnect_on_use", set: boolean(&s.ReconnectOnUse)},
	}
	return append(own, s.Settings.fields()...)
}

// protocol takes the names of transports; "streamable-http" is kept as "http".
func protocol(p *string) func(scalar) string {
	return func(s scalar) string {
		rule := oneOf(p, "stdio", "http", "sse", "streamable-http", "auto")(s)
		if *p == "streamable-http" {
			*p = "http"
		}
		return rule
	}
}

func (s *Server) takeOAuth(d *decoder, key string, v *hujson.Value) error {
	s.OAuth = &OAuth{}
	return d.within(v, key, []field{
		{key: "client_id", set: text(&s.OAuth.ClientID)},
		{key: "client_secret", set: text(&s.OAuth.ClientSecret)},
		{key: "redirect_uri", set: text(&s.OAuth.RedirectURI)},
		{key: "scopes", take: textList(&s.OAuth.Scopes)},
		{key: "extra_params", take: textMap(&s.OAuth.ExtraParams)},
	})
}

func (s *Server) takeIsolation(d *decoder, key string, v *hujson.Value) error {
	s.Isolation = &Isolation{}
	return d.within(v, key, []field{
		{key: "enabled", set: boolean(&s.Isolation.Enabled)},
		{key: "image", set: text(&s.Isolation.Image)},
		{key: "network_mode", set: text(&s.Isolation.NetworkMode)},
		{key: "working_dir", set: text(&s.Isolation.WorkingDir)},
		{key: "extra_args", take: textList(&s.Isolation.ExtraArgs)},
	})
}

func (s *Server) takeOverrides(d *decoder, key string, v *hujson.Value) error {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return d.misshapen(v, key, "must be an object of overrides by tool name")
	}
	s.ToolOverrides = make(map[string]ToolOverride, len(obj.Members))
	for i := range obj.Members {
		m := &obj.Members[i]
		tool := memberName(m)
		var o ToolOverride
		err := d.within(&m.Value, key+"."+tool, []field{
			{key: "name", set: text(&o.Name)},
			{key: "description", set: text(&o.Description)},
			{key: "annotations", take: annotations(&o.Annotations)},
		})
		if err != nil {
			return err
		}
		s.ToolOverrides[tool] = o
	}
	return nil
}

func annotations(p *json.RawMessage) func(*decoder, string, *hujson.Value) error {
	return func(d *decoder, key string, v *hujson.Value) error {
		if v.Value.Kind() != '{' {
			return d.misshapen(v, key, "must be an object")
		}
		plain := v.Clone()
		plain.Minimize()
		*p = plain.Pack()
		return nil
	}
}

// check holds the rules that go beyond a single key.
func (d *decoder) check(s *Server, c *Config, obj *hujson.Object, at entry) error {
	fault := func(key, rule string) error {
		offset := at.offset
		if m := find(obj, key); m != nil {
			offset = m.Value.StartOffset
		}
		return d.fault(offset, at.label, nil, rule)
	}
	if s.Name == "" {
		return fault("name", "needs a name")
	}
	if !ValidName(s.Name) {
		return fault("name", "the name "+nameRule)
	}
	if s.Alias != "" && !ValidName(s.Alias) {
		return fault("alias", "the alias "+nameRule)
	}
	for i := range c.Servers {
		other := &c.Servers[i]
		switch {
		case other.Name == s.Name:
			return fault("name", fmt.Sprintf("there is another server named %q before; the first one counts", s.Name))
		case other.Alias == s.Name, s.Alias != "" && (other.Alias == s.Alias || other.Name == s.Alias):
			return fault("alias", fmt.Sprintf("its name or alias is taken by server %q", other.Name))
		}
	}
	if s.EnabledTools != nil && s.DisabledTools != nil {
		return fault("disabled_tools", "has enabled_tools and disabled_tools; only one can be")
	}
	stdio := s.Command != ""
	switch {
	case stdio && s.URL != "":
		return fault("url", "has command and url; only one can be")
	case !stdio && s.URL == "":
		return fault("name", "needs command or url")
	case stdio && (s.Protocol == "" || s.Protocol == "auto"):
		s.Protocol = "stdio"
	case stdio && s.Protocol != "stdio":
		return fault("protocol", fmt.Sprintf("protocol %s needs url, not command", s.Protocol))
	case !stdio && s.Protocol == "":
		s.Protocol = "auto"
	case !stdio && s.Protocol == "stdio":
		return fault("protocol", "protocol stdio needs command, not url")
	}
	if !stdio && !strings.Contains(s.URL, "${") {
		if rule := urlRule(s.URL); rule != "" {
			return fault("url", "url "+rule)
		}
	}
	return nil
}

// urlRule says what is wrong with the address of a server, or nothing.
func urlRule(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "must be an address such as https://example.com/mcp"
	}
	return ""
}

// checkReferences finds references to variables that are not set, so that the
// server is known to be unusable before anybody starts it. Keyrings and files
// are not asked before the server is started.
func (d *decoder) checkReferences(s *Server, at entry) error {
	if !s.Enabled {
		return nil
	}
	_, err := s.expand(func(field, value string) (string, error) {
		for p := range pieces(value) {
			if p.ref != nil && p.ref.scheme == "env" {
				if _, ok := p.ref.fromEnviron(at.env); !ok {
					return "", &ReferenceError{s.Name, field, p.text, "is not set"}
				}
			}
			if p.odd {
				d.warn(at.offset, fmt.Sprintf("server %q: %s: %s is not a reference and is passed as it stands", s.Name, field, p.text))
			}
		}
		return value, nil
	})
	return err
}
