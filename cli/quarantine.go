package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
	"mcpproxy/store"
)

// quarantineCmd is about what a person has to review.
type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" default:"1" help:"list what is held (the default)"`
	Show    quarantineShowCmd    `cmd:"" help:"show what a server offers, or one item of it, as it really is"`
	Diff    quarantineDiffCmd    `cmd:"" help:"show how what is held differs from what was approved"`
	Approve quarantineApproveCmd `cmd:"" help:"approve an item in the form it has now, or all of them"`
	Block   quarantineBlockCmd   `cmd:"" help:"forbid an item, whatever becomes of it"`
	Hold    quarantineHoldCmd    `cmd:"" help:"put a server into quarantine"`
	Release quarantineReleaseCmd `cmd:"" help:"take a server out of quarantine"`
}

// Help implements kong.HelpProvider.
func (*quarantineCmd) Help() string {
	return `What is held is neither listed nor can it be used. A server is held by its "quarantined" in the configuration. Of a server that is not, what it offers at first is approved; what is new or changed after that is held until it is approved. An item is written SERVER:NAME.

    mcpproxy quarantine
    mcpproxy quarantine show github:create_issue`
}

// quarantineListCmd lists what is held.
type quarantineListCmd struct{}

// Help implements kong.HelpProvider.
func (*quarantineListCmd) Help() string {
	return `A status is one of quarantined (a server), pending (a new item), changed, blocked. It is about what the servers were last seen to offer; none is started.

    mcpproxy quarantine list
    mcpproxy quarantine list --json | jq -r '.items[] | select(.status == "changed").name'`
}

// quarantineList is the answer of quarantine list --json.
type quarantineList struct {
	Enabled bool         `json:"quarantine_enabled"`
	Lost    bool         `json:"approvals_lost"` // an earlier store is gone
	Servers []heldServer `json:"servers"`
	Items   []heldItem   `json:"items"`
}

// heldServer is a server in quarantine.
type heldServer struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Target string `json:"target,omitempty"`
	Next   string `json:"next"` // what a person types
}

// heldItem is an item in lists.
type heldItem struct {
	Server    string     `json:"server"`
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	Hash      string     `json:"hash,omitempty"` // of this form
	Offered   bool       `json:"offered"`        // a server was last seen to offer this form
	SeenAt    *time.Time `json:"seen_at,omitempty"`
	DecidedAt *time.Time `json:"decided_at,omitempty"`
	Who       string     `json:"who,omitempty"`
	Next      string     `json:"next,omitempty"`
}

// run prints servers, then items.
func (c *quarantineListCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	cfg.SkipRecursion(a.own())
	db, err := a.store(ctx, cfg)
	if err != nil {
		return err
	}
	list, err := a.quarantined(ctx, cfg, db)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.writeJSONWithout(list, hidden)
	case a.Quiet:
		var names strings.Builder
		for _, s := range list.Servers {
			names.WriteString(reveal(s.Name) + "\n")
		}
		for _, i := range list.Items {
			names.WriteString(reveal(i.Server+":"+i.Name) + "\n")
		}
		return a.print(names.String())
	}
	t := a.newTable("SERVER", "KIND", "NAME", "STATUS", "SEEN", "NEXT")
	for _, s := range list.Servers {
		t.row(txt(s.Name), txt("server"), txt(""), cell{text: s.State, tint: tintOf(s.State)}, txt(""), txt(s.Next))
	}
	for _, i := range list.Items {
		t.row(txt(i.Server), txt(i.Kind), txt(reveal(i.Name)), cell{text: i.Status, tint: tintOfStatus(policy.Status(i.Status))}, whenSet(i.SeenAt), txt(i.Next))
	}
	if err := t.print(); err != nil {
		return err
	}
	list.explain(a)
	return nil
}

// explain says on stderr what a table of what is held leaves open.
func (l *quarantineList) explain(a *app) {
	if len(l.Servers)+len(l.Items) == 0 {
		a.note("nothing is held")
	}
	if !l.Enabled && len(l.Items) > 0 {
		a.note("quarantine_enabled is false: of the items, only blocked ones are held")
	}
	if l.Lost {
		a.note("an earlier store is gone, and with it what was approved: whatever the servers offer is held")
		a.note("hint: mcpproxy quarantine approve --all, once you have looked at it")
	}
}

// quarantined is what is held, in the order of the configuration.
func (a *app) quarantined(ctx context.Context, cfg *config.Config, db *store.DB) (quarantineList, error) {
	list := quarantineList{Enabled: cfg.QuarantineEnabled, Servers: []heldServer{}, Items: []heldItem{}}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; s.Quarantined && cfg.Server(s.Name) == s {
			list.Servers = append(list.Servers, heldServer{s.Name, stateQuarantined, target(s), policy.ReviewCommand(catalog.Ref{Server: s.Name})})
		}
	}
	c := &core{openStore: func() *store.DB { return db }}
	c.cfg.Store(cfg)
	approvals := c.approvals(a)
	var err error
	if list.Lost, err = approvals.Lost(ctx); err != nil {
		return list, err
	}
	forms, err := approvals.Review(ctx, reviewKeys(cfg))
	for _, f := range forms {
		if f.Held() && (f.Offered || f.Status == policy.Blocked) {
			list.Items = append(list.Items, heldItemOf(f))
		}
	}
	return list, err
}

// reviewKeys are the servers whose items are in use.
func reviewKeys(cfg *config.Config) []store.Key {
	var keys []store.Key
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; s.Enabled && !s.Quarantined && s.Err == nil {
			keys = append(keys, keyOf(s))
		}
	}
	return keys
}

func keyOf(s *config.Server) store.Key { return store.Key{Name: s.Name, Fingerprint: s.Fingerprint()} }

// heldItemOf is a reviewed item in lists.
func heldItemOf(r policy.Reviewed) heldItem {
	i := heldItem{
		Server: r.Item.Server, Kind: string(r.Item.Kind), Name: r.Item.Name, Status: string(r.Status),
		Offered: r.Offered, Who: r.Who, SeenAt: setTime(r.SeenAt), DecidedAt: setTime(r.DecidedAt),
	}
	if r.Item.Raw != nil {
		i.Hash = r.Item.Fingerprint()
	}
	if r.Held() {
		i.Next = policy.ReviewCommand(r.Item.Ref)
	}
	return i
}

// setTime is a time as JSON has it, nil for the zero time.
func setTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Second))
}

func whenSet(t *time.Time) cell {
	if t == nil {
		return txt("")
	}
	return when(*t)
}

// tintOfStatus is how a status stands out.
func tintOfStatus(s policy.Status) tint {
	switch s {
	case policy.Approved:
		return good
	case policy.Blocked:
		return bad
	}
	return odd
}

// reviewRef is what a command line names: a server, or items of it.
type reviewRef struct {
	server *config.Server
	name   string // "" for the server
	kind   catalog.Kind
}

// reviewRef reads SERVER, SERVER:NAME and SERVER__NAME.
func (a *app) reviewRef(cfg *config.Config, text, kind string) (ref reviewRef, err error) {
	server, name, ok := strings.Cut(text, ":")
	if !ok {
		server, name, _ = catalog.SplitPublic(text)
	}
	ref.name, ref.kind = name, catalog.Kind(kind)
	if kind != "" && !slices.Contains(catalog.Kinds(), ref.kind) {
		return ref, misuse("", "--kind %q is none of tool, resource, template, prompt", kind)
	}
	ref.server, err = serverNamed(cfg, server)
	return ref, err
}

// matches reports whether an item is among what is named.
func (r reviewRef) matches(item *catalog.Item) bool {
	return (r.name == "" || r.name == item.Name) && (r.kind == "" || r.kind == item.Kind)
}

// String is what is named, as it is typed.
func (r reviewRef) String() string {
	if r.name == "" {
		return r.server.Name
	}
	return r.server.Name + ":" + r.name
}

// absent is the error for an item that a server does not have.
func (r reviewRef) absent(forms []policy.Reviewed) error {
	var names []string
	for _, f := range forms {
		names = append(names, f.Item.Name)
	}
	hint := policy.ReviewCommand(catalog.Ref{Server: r.server.Name})
	if meant := nearest(r.name, names); meant != "" {
		return hinted(hint, "server %s is not known to offer %q, did you mean %q?", r.server.Name, r.name, meant)
	}
	return hinted(hint, "server %s is not known to offer %q", r.server.Name, r.name)
}
