package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/policy"
)

// quarantineApproveCmd approves items.
type quarantineApproveCmd struct {
	Item string `arg:"" optional:"" help:"the item: SERVER:NAME, or with --all a server" placeholder:"SERVER[:NAME]"`
	All  bool   `help:"approve all that the server offers now, or all servers"`
	Hash string `help:"approve only the form of this hash, or one that begins so" placeholder:"HASH"`
	Kind string `help:"only tool, resource, template or prompt" placeholder:"KIND"`
	Yes  bool   `short:"y" help:"do not ask"`
}

// Help implements kong.HelpProvider.
func (*quarantineApproveCmd) Help() string {
	return `Only the form that the item has now is approved; if it changes, it is held again. A block is taken away, but not by --all. On a terminal you are shown what you approve and asked.

    mcpproxy quarantine approve github:create_issue
    mcpproxy quarantine approve github --all`
}

// decided is the answer of approve and block with --json.
type decided struct {
	Items []heldItem `json:"items"`
}

// run approves what is named.
func (c *quarantineApproveCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	if c.Item == "" {
		if !c.All {
			return misuse("mcpproxy quarantine", "say what to approve: SERVER:NAME, or --all")
		}
		return c.everything(ctx, a, core)
	}
	ref, err := a.reviewRef(cfg, c.Item, c.Kind)
	switch {
	case err != nil:
		return err
	case ref.name == "" && !c.All:
		return misuse("mcpproxy quarantine approve "+ref.server.Name+" --all", "%s is a server: name one item of it, or all with --all", ref.server.Name)
	case ref.name != "" && c.All:
		return misuse("", "--all goes with a server, %s is one item", ref)
	case ref.name == "":
		return c.server(ctx, a, core, ref.server)
	}
	return c.one(ctx, a, core, ref)
}

// one approves one form of one item.
func (c *quarantineApproveCmd) one(ctx context.Context, a *app, core *core, ref reviewRef) error {
	all, err := core.reviewKnown(ctx, a, ref.server)
	if err != nil {
		return err
	}
	form, err := c.choose(all, ref)
	if err != nil {
		return err
	}
	if !form.Held() {
		a.note("%s is approved already", ref)
		return a.tellDecided([]policy.Reviewed{form})
	}
	if err := c.ask(ctx, a, core, form); err != nil {
		return err
	}
	hash := ""
	if form.Item.Raw != nil {
		hash = form.Item.Fingerprint()
	}
	events, err := core.reviewed.Approve(ctx, form.Item.Ref, hash, a.person())
	if stale := new(policy.StaleError); errors.As(err, &stale) {
		return hinted(policy.ReviewCommand(form.Item.Ref), "%s has changed since it was shown", ref)
	}
	if err != nil {
		return err
	}
	return core.decided(a, events)
}

// choose finds the form that is to be approved: the one that is offered now, or
// the one that the hash names.
func (c *quarantineApproveCmd) choose(all []policy.Reviewed, ref reviewRef) (policy.Reviewed, error) {
	var named, offered, held []policy.Reviewed
	for _, f := range all {
		if !ref.matches(f.Item) {
			continue
		}
		named = append(named, f)
		if f.Held() {
			held = append(held, f)
			if f.Offered || ref.server.Quarantined {
				offered = append(offered, f)
			}
		}
	}
	show := policy.ReviewCommand(catalog.Ref{Server: ref.server.Name, Name: ref.name})
	switch {
	case len(named) == 0:
		return policy.Reviewed{}, ref.absent(all)
	case slices.ContainsFunc(held, func(f policy.Reviewed) bool { return f.Item.Kind != held[0].Item.Kind }):
		return policy.Reviewed{}, misuse(show, "%s is several things; name one with --kind", ref)
	case c.Hash != "":
		for _, list := range [][]policy.Reviewed{offered, held} {
			if i := slices.IndexFunc(list, c.isNamed); i >= 0 {
				if len(offered) > 0 && !list[i].Offered && !ref.server.Quarantined {
					break // something else is offered since
				}
				return list[i], nil
			}
		}
		if i := slices.IndexFunc(named, c.isNamed); i >= 0 && !named[i].Held() {
			return named[i], nil
		}
		return policy.Reviewed{}, hinted(show, "%s has changed since it was shown, or was never of that hash", ref)
	case len(offered) == 0 && len(held) > 0 && len(held) == len(named):
		offered = held[len(held)-1:] // for a client that is not there now
	case len(offered) == 0:
		return named[0], nil
	}
	if len(offered) > 1 {
		return policy.Reviewed{}, hinted(show, "%s is offered in %d forms to different clients; name one with --hash", ref, len(offered))
	}
	return offered[0], nil
}

func (c *quarantineApproveCmd) isNamed(f policy.Reviewed) bool {
	return f.Item.Raw != nil && strings.HasPrefix(f.Item.Fingerprint(), strings.ToLower(c.Hash))
}

// ask shows a person what is about to be approved.
func (c *quarantineApproveCmd) ask(ctx context.Context, a *app, core *core, form policy.Reviewed) error {
	if c.Yes || c.Hash != "" || !a.IsTerminal(Stdin) || !a.IsTerminal(Stderr) {
		return nil // a program has named it, or a person has seen it
	}
	item, err := core.shown(ctx, form)
	if err != nil {
		return err
	}
	var b strings.Builder
	item.write(&b, a.painter(Stderr))
	if item.Approved != nil {
		item.writeDiff(&b, a.painter(Stderr))
	}
	if _, err := a.Stderr.Write([]byte(b.String())); err != nil {
		return err
	}
	return a.confirm(ctx, false, "approve this?")
}

// server approves all that one server offers.
func (c *quarantineApproveCmd) server(ctx context.Context, a *app, core *core, server *config.Server) error {
	all, err := core.reviewKnown(ctx, a, server)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return hinted(policy.ReviewCommand(catalog.Ref{Server: server.Name}), "nothing is known of what server %s offers", server.Name)
	}
	if err := c.askAll(ctx, a, all); err != nil {
		return err
	}
	events, err := c.approveAll(ctx, core, a, server, all)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		a.note("nothing of server %s waits for approval", server.Name)
	}
	return core.decided(a, events)
}

// askAll asks a person about all items at once.
func (c *quarantineApproveCmd) askAll(ctx context.Context, a *app, all []policy.Reviewed) error {
	if !a.IsTerminal(Stdin) || !a.IsTerminal(Stderr) {
		return nil // a program has asked for all of them
	}
	waiting := 0
	for _, f := range all {
		if f.Held() && f.Status != policy.Blocked {
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	return a.confirm(ctx, c.Yes, fmt.Sprintf("approve %d items as they are? mcpproxy quarantine diff shows them", waiting))
}

// everything approves all that all servers offer, and what was lost with an
// earlier store is done with.
func (c *quarantineApproveCmd) everything(ctx context.Context, a *app, core *core) error {
	if c.Hash != "" {
		return misuse("", "--hash goes with one item")
	}
	var servers []*config.Server
	var known [][]policy.Reviewed
	cfg := core.cfg.Load()
	for i := range cfg.Servers {
		server := &cfg.Servers[i]
		if !server.Enabled || server.Quarantined || server.Err != nil {
			continue
		}
		all, err := core.reviewKnown(ctx, a, server)
		if err != nil {
			return err
		}
		servers, known = append(servers, server), append(known, all)
	}
	if err := c.askAll(ctx, a, slices.Concat(known...)); err != nil {
		return err
	}
	var events []policy.Event
	for i, server := range servers {
		more, err := c.approveAll(ctx, core, a, server, known[i])
		if err != nil {
			return err
		}
		events = append(events, more...)
	}
	more, err := core.reviewed.Confirm(ctx, a.person())
	if err != nil {
		return err
	}
	if events = append(events, more...); len(events) == 0 {
		a.note("nothing waits for approval")
	}
	return core.decided(a, events)
}

// approveAll approves of a server what it offers, of a held one what was shown.
func (c *quarantineApproveCmd) approveAll(ctx context.Context, core *core, a *app, server *config.Server, all []policy.Reviewed) ([]policy.Event, error) {
	offered := &catalog.Server{Name: server.Name, Known: true}
	for _, f := range all {
		if (f.Offered || server.Quarantined) && f.Item.Raw != nil {
			offered.SetItems(f.Item.Kind, append(offered.Items(f.Item.Kind), f.Item))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return core.reviewed.ApproveAll(ctx, offered, a.person())
}

// quarantineBlockCmd forbids an item.
type quarantineBlockCmd struct {
	Item string `arg:"" help:"the item: SERVER:NAME" placeholder:"SERVER:NAME"`
	Kind string `help:"tool, resource, template or prompt" placeholder:"KIND"`
}

// Help implements kong.HelpProvider.
func (*quarantineBlockCmd) Help() string {
	return `It stays blocked whatever it becomes, also with quarantine_enabled off; approving it takes the block away.

    mcpproxy quarantine block github:delete_repository
    mcpproxy quarantine approve github:delete_repository`
}

// run blocks what is named.
func (c *quarantineBlockCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ref, err := a.reviewRef(cfg, c.Item, c.Kind)
	if err != nil {
		return err
	}
	if ref.name == "" {
		return misuse("mcpproxy quarantine hold "+ref.server.Name, "%s is a server: name one item of it, or hold the whole server", ref.server.Name)
	}
	core := a.hushed().compose(ctx, cfg, ofCommand())
	defer core.close(ctx)
	all, err := core.reviewKnown(ctx, a, ref.server)
	if err != nil {
		return err
	}
	var found []catalog.Ref
	for _, f := range all {
		if ref.matches(f.Item) && !slices.Contains(found, f.Item.Ref) {
			found = append(found, f.Item.Ref)
		}
	}
	switch {
	case len(found) == 0:
		return ref.absent(all)
	case len(found) > 1:
		return misuse(policy.ReviewCommand(found[0]), "%s is several things; name one with --kind", ref)
	}
	events, err := core.reviewed.Block(ctx, found[0], a.person())
	if err != nil {
		return err
	}
	if len(events) == 0 {
		a.note("%s is blocked already", ref)
	}
	return core.decided(a, events)
}

// decided records what was decided, and tells it.
func (c *core) decided(a *app, events []policy.Event) error {
	c.judged(a.hushed(), events, nil)
	answer := decided{Items: []heldItem{}}
	for _, e := range events {
		a.note("%s", e.String())
		if e.Kind != "" {
			answer.Items = append(answer.Items, heldItem{Server: e.Server, Kind: string(e.Kind), Name: e.Name, Status: string(e.Status), Hash: e.Hash, Offered: true, Who: e.Who})
		}
	}
	if a.JSON {
		return a.writeJSONWithout(answer, hidden)
	}
	return nil
}

// tellDecided prints items about which there was nothing to decide.
func (a *app) tellDecided(forms []policy.Reviewed) error {
	if !a.JSON {
		return nil
	}
	answer := decided{}
	for _, f := range forms {
		answer.Items = append(answer.Items, heldItemOf(f))
	}
	return a.writeJSONWithout(answer, hidden)
}

// person is who types, for the record.
func (a *app) person() string {
	for _, key := range []string{"USER", "USERNAME", "LOGNAME"} {
		if name := a.getenv(key); name != "" {
			return name
		}
	}
	return "command line"
}

// quarantineHoldCmd puts a server into quarantine.
type quarantineHoldCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*quarantineHoldCmd) Help() string {
	return `Nothing of it is listed or can be used, and it is not started, until it is released. What was approved of it stays approved.

    mcpproxy quarantine hold github
    mcpproxy quarantine release github`
}

// run holds the server.
func (c *quarantineHoldCmd) run(ctx context.Context, a *app) error {
	return a.setQuarantined(ctx, c.Name, true)
}

// quarantineReleaseCmd takes a server out of quarantine.
type quarantineReleaseCmd struct {
	Name string `arg:"" help:"the server"`
}

// Help implements kong.HelpProvider.
func (*quarantineReleaseCmd) Help() string {
	return `What "mcpproxy quarantine show" has shown of it is approved with it; if it was never shown, what it offers at first is.

    mcpproxy quarantine show github
    mcpproxy quarantine release github`
}

// run releases the server.
func (c *quarantineReleaseCmd) run(ctx context.Context, a *app) error {
	return a.setQuarantined(ctx, c.Name, false)
}

// setQuarantined writes whether a server is held. Doing it twice is no error.
func (a *app) setQuarantined(ctx context.Context, name string, held bool) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if err := missing(cfg, name, config.SetQuarantined(ctx, cfg.Path, name, held)); err != nil {
		return err
	}
	if held {
		return a.changed(ctx, name, "held")
	}
	return a.changed(ctx, name, "released")
}
