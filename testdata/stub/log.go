package stub

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Event is one line of an event log.
//
// Kinds and their texts: "start" (number of the start), "recv" (the line as
// received, without its newline), "eof", "signal" (its name), "cancelled" (raw
// id of the request), "subscribe" and "unsubscribe" (URI), "stray" (raw id of a
// reply nobody waited for), "hold" (a grandchild started), "exit" (status).
type Event struct {
	Time time.Time
	PID  int
	Kind string
	Text string
}

// ReadLog reads an event log in the order in which events were appended, by
// however many processes. A log that does not exist yet is empty.
func ReadLog(path string) ([]Event, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var events []Event
	for line := range strings.Lines(string(data)) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break // still being written
		}
		fields := strings.SplitN(line, " ", 4)
		if len(fields) != 4 {
			return nil, fmt.Errorf("read event log: odd line %q", line)
		}
		at, err := time.Parse(time.RFC3339Nano, fields[0])
		if err != nil {
			return nil, fmt.Errorf("read event log: %w", err)
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("read event log: %w", err)
		}
		events = append(events, Event{Time: at, PID: pid, Kind: fields[2], Text: fields[3]})
	}
	return events, nil
}

// Await reads an event log until it holds an event that matches, and returns
// the first such; the error is ctx's when it ends before.
func Await(ctx context.Context, path string, match func(Event) bool) (Event, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		events, err := ReadLog(path)
		if err != nil {
			return Event{}, err
		}
		for _, e := range events {
			if match(e) {
				return e, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("wait for an event in %s: %w", path, ctx.Err())
		}
	}
}

// Starts is how often a stub with this file as Scenario.Starts was started.
func Starts(path string) (int, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	return bytes.Count(data, []byte("\n")), err
}

// countStart appends this process to the file of starts, if there is to be
// one, and returns which start this is.
func countStart(path string) (int, error) {
	if path == "" {
		return 0, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		return 0, err
	}
	return Starts(path)
}

// eventLog appends events to a file, in one write each, so that several
// processes can share it. A nil file logs nothing.
type eventLog struct {
	mu sync.Mutex
	f  *os.File
}

func openLog(path string) (*eventLog, error) {
	if path == "" {
		return &eventLog{}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &eventLog{f: f}, err
}

func (l *eventLog) add(kind, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		text = strings.ReplaceAll(text, "\n", `\n`)
		fmt.Fprintf(l.f, "%s %d %s %s\n", time.Now().Format(time.RFC3339Nano), os.Getpid(), kind, text)
	}
}

func (l *eventLog) close() {
	if l.f != nil {
		l.f.Close()
	}
}
