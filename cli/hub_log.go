package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// hubLog is the name of the hub's log in the folder of logs.
const hubLog = "hub.log"

// hubLogSize is how large in bytes the hub's log may become.
const hubLogSize = 5 << 20

// hubLogger says what a hub does: in its log, which is where its stderr goes.
type hubLogger struct {
	a *app

	mu   sync.Mutex // held while the log is trimmed too: two at once would keep nothing
	path string     // "" once it cannot be trimmed
}

// line says one thing.
func (l *hubLogger) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path != "" {
		if err := trimHubLog(l.path); err != nil {
			l.path = ""
			l.say(err.Error())
		}
	}
	l.say(text)
}

func (l *hubLogger) say(text string) {
	l.a.say("", l.a.Now().UTC().Format(time.RFC3339)+" "+text)
}

// trimHubLog empties a log that has become large, and keeps what it held beside
// it, in place of what was kept before. It is not renamed: the stderr of every hub
// stays open on it, and a panic goes there too.
func trimHubLog(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("trim the hub's log: %w", err)
	case info.Size() < hubLogSize:
		return nil
	}
	// A disk that has no room for the old lines is no reason to write more.
	_ = copyFile(path, path+".1")
	if err := os.Truncate(path, 0); err != nil {
		return fmt.Errorf("trim the hub's log: %w", err)
	}
	return nil
}

// copyFile makes a file with the bytes of another.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
