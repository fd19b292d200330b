package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/mcp/config"
)

// logEnd is how much of the end of a log a client is shown lines of, in bytes.
const logEnd = 256 << 10

// Log implements router.Admin.
func (m *admin) Log(_ context.Context, name string, lines int) ([]string, error) {
	cfg, _, err := m.server(name)
	if err != nil {
		return nil, err
	}
	// An entry may be wrong, and its name lead elsewhere.
	if !config.ValidName(name) {
		return nil, fmt.Errorf("server %q has no log", name)
	}
	f, err := os.Open(filepath.Join(cfg.DataDir, logFolder, name+".log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer f.Close()
	text, whole, err := endOf(f)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", name, err)
	}
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if !whole {
		all = all[1:]
	}
	if text == "" {
		all = nil
	}
	return all[max(0, len(all)-lines):], nil
}

// endOf reads at most the last logEnd bytes of a file; whole tells that these are
// all.
func endOf(f *os.File) (text string, whole bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	start := max(0, info.Size()-logEnd)
	end, err := io.ReadAll(io.NewSectionReader(f, start, logEnd))
	return string(end), start == 0, err
}
