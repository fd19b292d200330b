package stub

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Grandchild is a process that the stub starts and leaves alone. It never reads
// its stdin, so the end of it means nothing to it, and it ends by itself after
// Scenario.LifetimeMS. Its event log is the stub's.
type Grandchild struct {
	// IgnoreTerm makes it log SIGTERM, SIGINT and SIGHUP and live on.
	IgnoreTerm bool `json:"ignore_term"`
	// Inherit gives it the stub's stdin, stdout and stderr, so that the pipes
	// stay open when the stub has ended.
	Inherit bool `json:"inherit"`
}

// start starts the grandchild, if there is to be one: this executable again.
func (g *Grandchild) start(sc *Scenario) error {
	if g == nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "stub", "hold", sc.Log, sc.lifetime().String(), strconv.FormatBool(g.IgnoreTerm))
	cmd.Env = append(os.Environ(), "MCPSTUB=1")
	if g.Inherit {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start grandchild: %w", err)
	}
	return cmd.Process.Release()
}

// hold is the life of a grandchild. Its arguments are the event log, the
// longest time to live, and whether it ignores signals.
func hold(args []string) int {
	if len(args) != 3 {
		return exitUsage
	}
	log, err := openLog(args[0])
	if err != nil {
		return exitUsage
	}
	defer log.close()
	lifetime, err := time.ParseDuration(args[1])
	if err != nil {
		return exitUsage
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	log.add("hold", args[2])
	end := time.After(lifetime)
	for {
		select {
		case sig := <-signals:
			log.add("signal", sig.String())
			if number, ok := sig.(syscall.Signal); ok && args[2] != "true" {
				return exitSignal + int(number)
			}
		case <-end:
			return exitLifetime
		}
	}
}
