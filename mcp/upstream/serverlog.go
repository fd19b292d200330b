package upstream

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mcpproxy/mcp/wire"
)

// Limits of what is kept of a server's output, in bytes.
const (
	tailSize   = 4 << 10 // in error messages
	logSize    = 5 << 20 // of a log file; one older file is kept beside it
	lineLength = 8 << 10 // of one line; the rest of a longer one is a line of its own
)

// shortestLine is the shortest line of a secret of several lines that is masked;
// shorter ones would garble ordinary text.
const shortestLine = 8

// serverLog keeps what a server writes outside the protocol: the end of it in
// memory, all of it in a file that is bounded in size. Secrets are masked.
type serverLog struct {
	path  string // "" = no file
	now   func() time.Time
	forms func(string) string // masks what is a secret by its form; nil masks nothing

	mu      sync.Mutex
	secrets *strings.Replacer
	hidden  []string // what secrets replaces
	file    *os.File
	size    int64
	pid     int
	last    []byte // the end of stderr of the present process, tailSize or more
}

// newServerLog returns the log of a server in folder; "" keeps no file. forms may
// be nil.
func newServerLog(folder, server string, forms func(string) string, now func() time.Time) *serverLog {
	l := &serverLog{forms: forms, now: now}
	if folder != "" {
		l.path = filepath.Join(folder, server+".log")
	}
	return l
}

// mask replaces secrets from now on.
func (l *serverLog) mask(secrets []string) {
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "***")
		if strings.ContainsRune(s, '\n') {
			// A server prints it line by line, or as JSON.
			quoted := string(wire.Quote(s))
			pairs = append(pairs, quoted[1:len(quoted)-1], "***")
			for line := range strings.Lines(s) {
				if line = strings.TrimSpace(line); len(line) >= shortestLine {
					pairs = append(pairs, line, "***")
				}
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets, l.hidden = strings.NewReplacer(pairs...), secrets
}

// clean returns text without secrets.
func (l *serverLog) clean(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secrets != nil {
		text = l.secrets.Replace(text)
	}
	if l.forms != nil {
		text = l.forms(text)
	}
	return text
}

func (l *serverLog) started(pid int) {
	l.mu.Lock()
	l.pid = pid
	l.last = nil
	l.mu.Unlock()
	l.line("proxy", []byte("started"))
}

func (l *serverLog) ended(status string) { l.line("proxy", []byte("ended: "+status)) }

// readFrom takes a server's stderr until its end.
func (l *serverLog) readFrom(r io.Reader) {
	in := bufio.NewReaderSize(r, lineLength)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			l.line("stderr", line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// line takes one line of a stream.
func (l *serverLog) line(stream string, text []byte) {
	line := l.clean(strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), "\uFFFD"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if stream == "stderr" {
		l.last = append(append(l.last, line...), '\n')
		if len(l.last) > 4*tailSize { // not for every line
			l.last = append([]byte(nil), l.last[len(l.last)-tailSize:]...)
		}
	}
	if l.path == "" || !l.open() {
		return
	}
	n, err := fmt.Fprintf(l.file, "%s [%d] %s: %s\n", l.now().Format(time.RFC3339), l.pid, stream, line)
	l.size += int64(n)
	if err != nil {
		l.path = "" // a full disk must not stop the server
	}
}

// open sees to a file that has room; it is called with the lock held.
func (l *serverLog) open() bool {
	if l.file != nil && l.size < logSize {
		return true
	}
	if l.file != nil {
		l.file.Close()
		l.file = nil
		_ = os.Rename(l.path, l.path+".1")
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		l.path = ""
		return false
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.path = ""
		return false
	}
	if info, err := file.Stat(); err == nil {
		l.size = info.Size()
	}
	l.file = file
	return true
}

// tail is the end of stderr of the present process.
func (l *serverLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(l.last[max(0, len(l.last)-tailSize):]), ""))
}

func (l *serverLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
