package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/mcp/config"
)

// logsCmd prints the log of one server.
type logsCmd struct {
	Name   string `arg:"" help:"the server"`
	Follow bool   `short:"f" help:"go on printing what is added, until interrupted"`
}

// Help implements kong.HelpProvider.
func (*logsCmd) Help() string {
	return `The log is what the server wrote to its stderr, kept as logs/NAME.log in the data folder.

    mcpproxy logs github
    mcpproxy logs github -f`
}

// serverLog is the answer of logs --json.
type serverLog struct {
	Server string   `json:"server"`
	Path   string   `json:"path"`
	Lines  []string `json:"lines"`
}

// run prints the log. On a terminal what could steer it is spelled out; a pipe
// gets the bytes as the server wrote them.
func (c *logsCmd) run(ctx context.Context, a *app) error {
	if c.Follow && a.JSON {
		return misuse("mcpproxy logs "+c.Name+" -f", "-f and --json exclude each other: a log that goes on is no object")
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	known := cfg.Server(c.Name) != nil
	if !known && !config.ValidName(c.Name) {
		return noServer(cfg, c.Name)
	}
	path := filepath.Join(cfg.DataDir, logFolder, c.Name+".log")
	f, err := os.Open(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && !known:
		return noServer(cfg, c.Name)
	case missing && !c.Follow:
		a.note("%s has no log yet: it was never started, or wrote nothing to its stderr", c.Name)
	case err != nil && !missing:
		return fmt.Errorf("open the log of %s: %w", c.Name, err)
	}
	log := &logFile{path: path, file: f}
	a.opened = append(a.opened, log)
	if a.JSON {
		return c.printJSON(a, log)
	}
	out := &logWriter{out: a.Stdout, raw: !a.IsTerminal(Stdout)}
	if err := log.copyTo(out); err != nil {
		return err
	}
	if c.Follow {
		return log.follow(ctx, out)
	}
	return out.flush()
}

// printJSON prints the log as an object with its lines.
func (c *logsCmd) printJSON(a *app, log *logFile) error {
	var text bytes.Buffer
	if err := log.copyTo(&text); err != nil {
		return err
	}
	lines := []string{}
	for line := range strings.Lines(strings.ToValidUTF8(text.String(), "\ufffd")) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return a.writeJSON(serverLog{Server: c.Name, Path: log.path, Lines: lines})
}

// logFile is a log that may not exist yet, grow, be cut short or be replaced.
type logFile struct {
	path string
	file *os.File // nil while there is none
}

// Close closes the file that is open.
func (l *logFile) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// copyTo writes what was added since the last call.
func (l *logFile) copyTo(out io.Writer) error {
	if l.file == nil {
		return nil
	}
	if _, err := io.Copy(out, l.file); err != nil {
		return fmt.Errorf("print the log: %w", err)
	}
	return nil
}

// follow writes what is added until ctx ends. Files are looked at on a tick:
// a log changes from another process, and rarely.
func (l *logFile) follow(ctx context.Context, out io.Writer) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := l.copyTo(out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := l.reopen(out); err != nil {
			return err
		}
	}
}

// reopen goes on with the file that the path names now, from its beginning
// where that is another one or shorter than what was read.
func (l *logFile) reopen(out io.Writer) error {
	now, err := os.Stat(l.path)
	if err != nil {
		return nil // between two files there is none; the next tick finds it
	}
	if l.file != nil {
		open, err := l.file.Stat()
		if err != nil {
			return fmt.Errorf("follow the log: %w", err)
		}
		if os.SameFile(now, open) {
			at, err := l.file.Seek(0, io.SeekCurrent)
			if err == nil && at > open.Size() {
				_, err = l.file.Seek(0, io.SeekStart)
			}
			return err
		}
		if err := l.copyTo(out); err != nil {
			return err
		}
		_ = l.file.Close()
	}
	l.file, err = os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		l.file = nil
		return nil
	}
	return err
}

// logWriter passes a log on: as it is, or line by line and harmless.
type logWriter struct {
	out  io.Writer
	raw  bool
	rest []byte // the beginning of a line whose end has not come
}

// Write implements io.Writer.
func (w *logWriter) Write(p []byte) (int, error) {
	if w.raw {
		return w.out.Write(p)
	}
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 && len(w.rest) < 1<<16 {
		return len(p), nil
	}
	if end == 0 {
		end = len(w.rest)
	}
	text := strings.ReplaceAll(string(w.rest[:end]), "\r\n", "\n")
	w.rest = append(w.rest[:0], w.rest[end:]...)
	if _, err := io.WriteString(w.out, cleanText(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes the line that has no end.
func (w *logWriter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(w.out, cleanText(string(w.rest))+"\n")
	w.rest = nil
	return err
}
