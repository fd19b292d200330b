package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/config"
	"mcpproxy/mcp/hub"
	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

// hubLog is the name of the hub's log in the folder of logs.
const hubLog = "hub.log"

// hubCmd is about the process that runs the shared servers.
type hubCmd struct {
	Status hubStatusCmd `cmd:"" help:"show the hub, its clients and its servers"`
	Stop   hubStopCmd   `cmd:"" help:"stop the hub and its servers; clients start a new one when they call a server"`
}

// Help implements kong.HelpProvider.
func (*hubCmd) Help() string {
	return `The hub is one process per machine that runs the servers which several clients share. The first client that needs one starts it, and it ends when it was not used for hub_idle_timeout.

    mcpproxy hub status
    mcpproxy hub stop`
}

// hubStatusCmd shows the hub.
type hubStatusCmd struct{}

// hubAnswer is the answer of hub status --json; hub is null if none runs.
type hubAnswer struct {
	Hub *hub.Report `json:"hub"`
}

// run asks the hub, if there is one; it starts none.
func (*hubStatusCmd) run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, hubWait)
	defer cancel()
	socket, err := a.findHub(ctx)
	if err != nil {
		return err
	}
	var report *hub.Report
	if socket != nil {
		r, err := hub.Status(ctx, socket)
		if err != nil {
			return err
		}
		report = &r
	}
	if a.JSON {
		return a.writeJSON(hubAnswer{report})
	}
	if report == nil {
		a.note("no hub runs; it is started when a client needs a shared server")
		return nil
	}
	list := []field{
		{"pid", txt(fmt.Sprint(report.PID))},
		{"build", txt(report.Build)},
		{"since", when(report.Since)},
	}
	for _, c := range report.Clients {
		list = append(list, field{"client", cell{text: c.Name, aside: strings.Join(c.Servers, ", ")}})
	}
	for _, s := range report.Servers {
		list = append(list, field{"server", cell{text: s.Name, aside: fmt.Sprintf("pid %d, %d clients", s.PID, s.Users)}})
	}
	return a.printFields(list)
}

// hubStopCmd stops the hub.
type hubStopCmd struct{}

// run stops the hub and its servers, and waits for their end.
func (*hubStopCmd) run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, hubWait)
	defer cancel()
	socket, err := a.findHub(ctx)
	switch {
	case err != nil:
		return err
	case socket == nil:
		a.note("no hub runs")
		return nil
	}
	if err := hub.Stop(ctx, socket); err != nil {
		return err
	}
	a.note("stopped the hub")
	return nil
}

// hubWait bounds a conversation of a command with the hub.
const hubWait = 10 * time.Second

// findHub connects to the hub of this build; nil where none runs.
func (a *app) findHub(ctx context.Context) (net.Conn, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	db, err := a.store(ctx, cfg)
	if err != nil {
		return nil, err
	}
	running, ok, err := hub.Find(ctx, db, a.dialect())
	if err != nil || !ok {
		return nil, err
	}
	socket, err := hub.Connect(ctx, running.Socket)
	if errors.Is(err, hub.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a.opened = append(a.opened, socket)
	return socket, nil
}

// hubRunName is the hidden command that is the hub.
const hubRunName = "hub-run"

// hubRunCmd runs the shared servers until nobody needs them.
type hubRunCmd struct {
	ID string `help:"the id of the hub" required:""`
}

// Help implements kong.HelpProvider.
func (*hubRunCmd) Help() string {
	return `Started by mcpproxy itself, detached. It ends when it was not used for hub_idle_timeout.

    mcpproxy hub status`
}

// run is the hub. Of the configuration it follows the idle time; what else
// concerns a server comes with the instance that needs it.
func (c *hubRunCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	db := a.openStore(ctx, cfg)
	if db == nil {
		return errors.New("without the store there is no hub")
	}
	a.opened = append(a.opened, db)
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	var idle atomic.Int64
	idle.Store(int64(cfg.HubIdleTimeout))
	log := func(text string) { a.say("", a.Now().UTC().Format(time.RFC3339)+" "+text) }

	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		err := config.Watch(ctx, cfg.Path, cfg, config.WatchOptions{
			Load:    func(context.Context) (*config.Config, error) { return a.config() },
			Changed: func(next *config.Config) { idle.Store(int64(next.HubIdleTimeout)) },
			Failed:  func(err error) { log(err.Error()) },
		})
		if err != nil {
			log("watch " + cfg.Path + ": " + err.Error())
		}
	})
	err = hub.Run(ctx, hub.Options{
		Store: db, DataDir: cfg.DataDir, Build: a.dialect(), ID: c.ID,
		IdleTimeout: func() time.Duration { return time.Duration(idle.Load()) },
		Log:         log,
		Now:         a.Now,
		Open: func(ctx context.Context, listsChanged func(id string, kinds []catalog.Kind)) *upstream.Set {
			set := upstream.Open(ctx, upstream.Options{
				Store:    func() *store.DB { return db },
				LogDir:   filepath.Join(cfg.DataDir, logFolder),
				StartDir: filepath.Join(cfg.DataDir, "starts"),
				Guard:    []string{a.Executable, guardName},
				Version:  buildOf().Version,
				Instance: c.ID,
				Warn:     log,
				Now:      a.Now, ListsChanged: listsChanged,
			})
			set.Load() // and follow the wishes that others write to the store
			return set
		},
	})
	if errors.Is(err, hub.ErrTaken) {
		log(err.Error())
		return nil
	}
	return err
}
