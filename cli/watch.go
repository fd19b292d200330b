package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"mcpproxy/mcp/wire"
)

// progressDelay is how long a call takes before its progress is worth a line.
const progressDelay = 300 * time.Millisecond

// watcher is the client that a server sees behind a command: it can nothing of
// what a client can, and it shows a person at stderr how far the server is and
// what it logs. It implements wire.Peer.
type watcher struct {
	a      *app
	server string
	since  time.Time

	mu    sync.Mutex
	line  bool // the line under the cursor is ours
	ended bool
}

// newWatcher returns the watcher of one call to a server.
func newWatcher(a *app, server string) *watcher {
	return &watcher{a: a, server: server, since: a.Now()}
}

// watched reports whether there is a person to show something to.
func (w *watcher) watched() bool { return w.a.IsTerminal(Stderr) && !w.a.Quiet }

// Notify implements wire.Peer.
func (w *watcher) Notify(method string, params json.RawMessage) {
	if !w.watched() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
	case method == "notifications/progress" && w.a.Now().Sub(w.since) >= progressDelay && w.a.getenv("TERM") != "dumb":
		// A line that is too long would wrap, and only its end be replaced.
		w.show("\r\x1b[K" + cut(w.server+" "+progressText(params), w.a.columns()-1))
		w.line = true
	case method == "notifications/message":
		w.clear()
		level, _ := wire.String(wire.Member(params, "level"))
		w.a.say("", w.server+" "+level+": "+logText(wire.Member(params, "data")))
	}
}

// Call implements wire.Peer: nobody is asked in the middle of a command.
func (w *watcher) Call(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, *wire.Error) {
	return nil, wire.Errorf(wire.CodeMethodNotFound, "%s: a command cannot be asked", method)
}

// end takes the progress away; nothing is shown after it.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clear()
	w.ended = true
}

// clear empties the line of the progress; it is called with the lock held.
func (w *watcher) clear() {
	if w.line {
		w.show("\r\x1b[K")
		w.line = false
	}
}

// show writes to the person; what cannot be written is not missed.
func (w *watcher) show(text string) { _, _ = io.WriteString(w.a.Stderr, text) }

// progressText is a progress notification in words: "3/10 reading".
func progressText(params json.RawMessage) string {
	text := string(wire.Member(params, "progress"))
	if total := wire.Member(params, "total"); !wire.IsNull(total) {
		text = fmt.Sprintf("%s/%s", text, total)
	}
	if message, _ := wire.String(wire.Member(params, "message")); message != "" {
		text += " " + message
	}
	return clean(text)
}

// logText is the data of a log message: a text as it is, all else as JSON.
func logText(data json.RawMessage) string {
	if text, ok := wire.String(data); ok {
		return text
	}
	return string(data)
}
