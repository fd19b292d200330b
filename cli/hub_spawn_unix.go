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
// without a terminal, its output in a file of the data folder.
func (a *app) spawnHub(cfg *config.Config, id string) error {
	folder := filepath.Join(cfg.DataDir, logFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of the hub's log: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(folder, hubLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the hub's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(a.Executable, hubRunName, "--config", cfg.Path, "--data-dir", cfg.DataDir, "--id", id)
	cmd.Env, cmd.Dir = a.Environ, cfg.DataDir
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the hub: %w", err)
	}
	// It ends when nobody needs it, perhaps long after this process; until then
	// somebody has to ask for its status.
	go func() { _ = cmd.Wait() }()
	return nil
}
