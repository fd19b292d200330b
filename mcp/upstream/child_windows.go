package upstream

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"

	"mcpproxy/mcp/config"
)

// prepare keeps a console window from popping up, and has batch files, as npx is
// one, started by the command interpreter with their arguments quoted for it.
func prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	switch strings.ToLower(filepath.Ext(cmd.Path)) {
	case ".cmd", ".bat":
	default:
		return nil
	}
	folder, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	interpreter := filepath.Join(folder, "cmd.exe")
	line, err := config.BatchCommandLine(interpreter, cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	cmd.Path = interpreter
	cmd.SysProcAttr.CmdLine = line
	return nil
}
