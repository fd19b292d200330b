//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"mcpproxy/mcp/config"
)

// spawnHub starts the hub, which outlives this process: in a session of its own,
// without a terminal, its output in a file of the data folder. ended is closed
// when it has ended.
func (a *app) spawnHub(cfg *config.Config, id string) (ended <-chan struct{}, err error) {
	self := a.self()
	path, err := self.again()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(cfg.DataDir, logFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the hub's log: %w", err)
	}
	log, err := openHubLog(filepath.Join(folder, hubLog))
	if err != nil {
		return nil, fmt.Errorf("open the hub's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(path, hubRunName, "--config", cfg.Path, "--data-dir", cfg.DataDir, "--id", id, "--build", self.build)
	cmd.Args[0] = a.Executable // the name by which people know it
	cmd.Env, cmd.Dir = a.environWithoutToken(), cfg.DataDir
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the hub: %w", err)
	}
	// It ends when nobody needs it, perhaps long after this process; until then
	// somebody has to ask for its status.
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait()
	}()
	return reaped, nil
}

// openHubLog opens the hub's log to write at its end, also after it was trimmed.
func openHubLog(path string) (*os.File, error) {
	if err := trimHubLog(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
