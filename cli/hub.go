package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/mcp/hub"
	"mcpproxy/mcp/upstream"
	"mcpproxy/store"
)

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
	socket, others, err := a.findHub(ctx)
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
		a.noHub(others, "; it is started when a client needs a shared server")
		return nil
	}
	list := []field{
		{"pid", txt(fmt.Sprint(report.PID))},
		{"build", txt(report.Build)},
		{"since", when(report.Since)},
	}
	for _, c := range report.Clients {
		list = append(list, field{"client", cell{text: c.Name, aside: strings.Join(c.Servers, ", "), more: []string{strings.Join(c.Servers, ",")}}})
	}
	for _, s := range report.Servers {
		list = append(list, field{"server", cell{
			text: s.Name, aside: fmt.Sprintf("pid %d, %d clients", s.PID, s.Users), more: []string{fmt.Sprint(s.PID), fmt.Sprint(s.Users)},
		}})
	}
	return a.printFields(list)
}

// hubStopCmd stops the hub.
type hubStopCmd struct{}

// run stops the hub and its servers, and waits for their end.
func (*hubStopCmd) run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, hubWait)
	defer cancel()
	socket, others, err := a.findHub(ctx)
	switch {
	case err != nil:
		return err
	case socket == nil:
		a.noHub(others, "")
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

// findHub connects to the hub of this build; nil where none runs, and then the
// hubs of other builds.
func (a *app) findHub(ctx context.Context) (socket net.Conn, others []hubStatus, err error) {
	cfg, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	db, err := a.store(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	running, ok, err := hub.Find(ctx, db, a.self().build)
	if err != nil {
		return nil, nil, err
	}
	if ok {
		socket, err = hub.Connect(ctx, running.Socket)
		if err == nil {
			a.opened = append(a.opened, socket)
			return socket, nil, nil
		}
		if !errors.Is(err, hub.ErrGone) {
			return nil, nil, err
		}
	}
	present, err := a.presences(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	others = slices.DeleteFunc(a.hubsOf(present), func(h hubStatus) bool { return h.Current })
	return nil, others, nil
}

// noHub says that no hub of this build runs; those of others are named, which
// status shows too.
func (a *app) noHub(others []hubStatus, otherwise string) {
	for _, h := range others {
		a.note("a hub of another build runs (pid %d); it ends with its clients", h.PID)
	}
	if len(others) == 0 {
		a.note("no hub runs%s", otherwise)
	}
}

// hubRunName is the hidden command that is the hub.
const hubRunName = "hub-run"

// hubRunCmd runs the shared servers until nobody needs them.
type hubRunCmd struct {
	ID    string `help:"the id of the hub" required:""`
	Build string `help:"the build of the clients" placeholder:"NAME"`
}

// Help implements kong.HelpProvider.
func (*hubRunCmd) Help() string {
	return `Started by mcpproxy itself, detached. It ends when it was not used for hub_idle_timeout.

    mcpproxy hub status`
}

// run is the hub. Of the configuration it follows the idle time; what else
// concerns a server comes with the instance that needs it.
func (c *hubRunCmd) run(ctx context.Context, a *app) error {
	cfg, err := a.hubConfig()
	if err != nil {
		return err
	}
	if c.Build == "" {
		c.Build = a.self().build
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
	log := (&hubLogger{a: a, path: filepath.Join(cfg.DataDir, logFolder, hubLog)}).line

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
		Store: db, DataDir: cfg.DataDir, Build: c.Build, ID: c.ID,
		IdleTimeout: func() time.Duration { return time.Duration(idle.Load()) },
		Log:         log,
		Now:         a.Now,
		Open: func(ctx context.Context, sessions upstream.Sessions) *upstream.Set {
			set := upstream.Open(ctx, upstream.Options{
				Store:    func() *store.DB { return db },
				LogDir:   filepath.Join(cfg.DataDir, logFolder),
				StartDir: filepath.Join(cfg.DataDir, "starts"),
				Guard:    a.self().guard,
				Mask:     maskForms,
				Version:  buildOf().Version,
				Instance: c.ID,
				Warn:     log,
				Sessions: sessions,
				Now:      a.Now,
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

// hubConfig is the configuration of the hub. Where the file cannot be used at
// the moment that is the default, until the file can: config.Watch says what is
// wrong with it. The clients that started this process have their own, from
// before.
func (a *app) hubConfig() (*config.Config, error) {
	cfg, err := a.config()
	if err == nil {
		return cfg, nil
	}
	cfg, none := config.Parse(nil, a.loadOptions())
	if none != nil {
		return nil, none
	}
	if wrong := new(config.Error); errors.As(err, &wrong) && wrong.File == cfg.DataDir {
		return nil, err // the folder is not to be used
	}
	return cfg, nil
}
