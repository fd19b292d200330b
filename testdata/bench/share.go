package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shareLimit bounds one start of all clients with all servers.
const shareLimit = 5 * time.Minute

// memoryServer is the program that is shared, and memoryTool a tool of it that
// changes nothing.
const (
	memoryServer = "testdata/npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
	memoryTool   = "read_graph"
)

// way is one of the ways in which many clients come to many servers.
type way struct {
	name    string
	targets func() ([]target, error) // all that the clients start
	visit   visit                    // what is done with each of them
}

// measureShare takes what many clients with many servers cost: processes,
// memory, the time until each client has called each server, and the time until
// nothing is left.
func measureShare(ctx context.Context, b *bench) error {
	if b.product == "" {
		return nil // no yardstick shares
	}
	ways, err := b.ways(ctx)
	if err != nil {
		return err
	}
	var ready, gone, count, counts, pss, parts series
	for range b.rounds {
		for _, w := range ways {
			use, err := b.use(ctx, w)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			ready.add(w.name, use.ready.Seconds())
			gone.add(w.name, use.gone.Seconds())
			count.add(w.name, use.totalCount)
			pss.add(w.name, use.totalPSS)
			for _, kind := range use.kinds() {
				counts.add(w.name+": "+kind, use.count[kind])
				parts.add(w.name+": "+kind, use.pss[kind])
			}
		}
	}
	each := ways[len(ways)-1].name
	judged := []string{ways[0].name, ways[1].name}
	about := fmt.Sprintf("%d clients x %d servers: ", b.size.clients, b.size.servers)
	b.report.add(figure{Name: about + "processes", Unit: "-", Goal: float64(b.size.clients + b.size.servers + 1), Of: judged}, &count)
	b.report.add(figure{Name: about + "processes by kind", Unit: "-"}, &counts)
	b.report.add(figure{Name: about + "PSS", Unit: "MB", Base: each, Goal: 0.2, Of: judged}, &pss)
	b.report.add(figure{Name: about + "PSS by kind", Unit: "MB"}, &parts)
	b.report.add(figure{Name: about + "until each has called each", Unit: "s", Base: each, Goal: 0.2, Of: judged}, &ready)
	b.report.add(figure{Name: about + "until nothing is left", Unit: "s", Goal: (hubIdle + 5*time.Second).Seconds(), Of: judged}, &gone)
	return nil
}

// used is what one way cost once.
type used struct {
	census
	ready time.Duration // from the first start to the last client's last answer
	gone  time.Duration // from the end of the clients to that of all
}

// use starts all that the clients of a way start, and ends it again.
func (b *bench) use(ctx context.Context, w way) (used, error) {
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	targets, err := w.targets()
	if err != nil {
		return used{}, err
	}
	g, ready, err := b.gather(ctx, targets, w.visit.make)
	if err != nil {
		return used{}, err
	}
	u := used{ready: ready}
	if err = rest(ctx, b.size.rest); err == nil {
		u.census, err = b.census()
	}
	if err != nil {
		g.kill()
		return u, err
	}
	left := time.Now()
	err = errors.Join(g.dismiss(), b.awaitGone(ctx))
	u.gone = time.Since(left)
	return u, err
}

// ways are the two with shared servers, then private servers, and last clients
// that start the servers themselves.
func (b *bench) ways(ctx context.Context) ([]way, error) {
	servers, err := b.memoryServers(ctx)
	if err != nil {
		return nil, err
	}
	own := way{name: "each client's own servers", visit: visit{calls: []string{memoryTool}, arguments: "{}"}}
	entries := map[string]server{}
	proxied := visit{arguments: "{}"}
	for _, t := range servers {
		entries[t.name] = server{Command: t.argv[0], Args: t.argv[1:], Env: environment(t.env)}
		proxied.calls = append(proxied.calls, t.name+"__"+memoryTool)
	}
	own.targets = func() ([]target, error) { return slices.Repeat(servers, b.size.clients), nil }
	err = b.with(ctx, servers[0], startLimit, func(_ context.Context, s *session) (err error) {
		if _, err = s.handshake(); err == nil {
			own.visit.tools, err = s.countTools(everyTool)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	proxied.tools = own.visit.tools * len(servers)
	shared, err := b.filled(ctx, "memory-shared", entries, proxied.tools, true)
	if err != nil {
		return nil, err
	}
	private, err := b.filled(ctx, "memory-private", entries, proxied.tools, false)
	if err != nil {
		return nil, err
	}
	all := func(t target) []target { return slices.Repeat([]target{t}, b.size.clients) }
	empty := func() ([]target, error) {
		data, err := os.MkdirTemp(b.dir, "memory-data-")
		file := filepath.Join(b.dir, "memory-shared.json")
		return all(b.onData(file, data, true)), err
	}
	return []way{
		{"shared", func() ([]target, error) { return all(shared), nil }, proxied},
		{"shared, nothing stored", empty, proxied},
		{"private", func() ([]target, error) { return all(private), nil }, proxied},
		own,
	}, nil
}

// memoryServers are the servers as their clients would start them, each with a
// file of its own.
func (b *bench) memoryServers(ctx context.Context) ([]target, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("find Node.js: %w", err)
	}
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the folder of the module: %w", err)
	}
	entry := filepath.Join(strings.TrimSpace(string(module)), filepath.FromSlash(memoryServer))
	if _, err := os.Stat(entry); err != nil {
		return nil, fmt.Errorf("the packages from npm are missing, npm ci --ignore-scripts --prefix testdata/npm installs them: %w", err)
	}
	var servers []target
	for i := range b.size.servers {
		name := "m" + strconv.Itoa(i)
		servers = append(servers, target{name: name, argv: []string{node, entry},
			env: []string{"MEMORY_FILE_PATH=" + filepath.Join(b.dir, name+".jsonl")}})
	}
	return servers, nil
}

// environment is a list of NAME=VALUE as a map.
func environment(list []string) map[string]string {
	byName := map[string]string{}
	for _, variable := range list {
		name, value, _ := strings.Cut(variable, "=")
		byName[name] = value
	}
	return byName
}
