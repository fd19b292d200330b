// Package stub is a stdio MCP server for tests that does exactly what a
// scenario tells it, misbehaviour included. It works on raw messages with
// encoding/json alone, so that every byte it sends is chosen by the test.
//
// A test binary runs itself again as the server:
//
//	func TestMain(m *testing.M) {
//		if len(os.Args) > 1 && os.Args[1] == "stub" || os.Getenv("MCPSTUB") != "" {
//			os.Exit(stub.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//		}
//		os.Exit(m.Run())
//	}
//
// and names its own executable as the command of a server, with the arguments
// "stub" and a scenario. [Scenario] says what can be told; without one the stub
// is a well-behaved server with the tools of builtins.go.
//
// To put the stub behind a shell that does not pass signals on, mind that a
// shell gives a background command an empty stdin:
//
//	sh -c 'exec 3<&0; "$0" stub scenario.json <&3 & wait'
package stub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Exit statuses of Main that no scenario asks for.
const (
	exitUsage    = 2   // the scenario cannot be read
	exitLifetime = 3   // the stub lived longer than Scenario.LifetimeMS
	exitSignal   = 128 // plus the number of the signal
)

// grace is how long requests in flight may still be answered after EOF, and
// how long they may take to end after they were told to.
const grace = 100 * time.Millisecond

// Main runs the stub until its stdin ends, a signal arrives or its scenario
// ends it, and returns the exit status.
//
// args is an optional "stub", then the scenario: the path of a JSON file, or
// the JSON text itself when it starts with a brace. Without arguments the value
// of MCPSTUB is used if it is such a path or text.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "stub" {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "hold" {
		return hold(args[1:])
	}
	sc, err := load(args)
	if err != nil {
		fmt.Fprintln(stderr, "stub:", err)
		return exitUsage
	}
	log, err := openLog(sc.Log)
	if err != nil {
		fmt.Fprintln(stderr, "stub:", err)
		return exitUsage
	}
	defer log.close()
	start, err := countStart(sc.Starts)
	if err != nil {
		fmt.Fprintln(stderr, "stub:", err)
		return exitUsage
	}
	log.add("start", fmt.Sprint(start))
	if err := sc.Grandchild.start(sc); err != nil {
		fmt.Fprintln(stderr, "stub:", err)
		return exitUsage
	}
	s := &server{
		sc: sc, log: log, start: start, stderr: stderr,
		out:     &output{w: stdout, framing: sc.Framing},
		quit:    make(chan int, 1),
		calls:   map[string]context.CancelFunc{},
		waiting: map[string]chan json.RawMessage{},
		used:    map[*Answer]int{},
	}
	code := s.run(stdin)
	log.add("exit", fmt.Sprint(code))
	return code
}

// server is one run of the stub.
type server struct {
	sc     *Scenario
	log    *eventLog
	start  int // which start this is, from 1; 0 when starts are not counted
	stderr io.Writer
	out    *output
	quit   chan int // an exit status: end at once
	work   sync.WaitGroup

	mu          sync.Mutex
	initialized bool                            // notifications/initialized was seen
	calls       map[string]context.CancelFunc   // requests in flight by raw id
	waiting     map[string]chan json.RawMessage // our own requests by raw id
	asked       int                             // our own requests so far
	counter     int                             // value of the tool inc
	added       []json.RawMessage               // tools added while running
	dropped     map[string]bool                 // tools dropped while running
	used        map[*Answer]int                 // how often each answer was taken
}

// message is one received JSON-RPC message; the raw members are as received.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// run serves until there is an exit status. The goroutine that reads stdin may
// outlive it when stdin is silent; the process ends with it.
func (s *server) run(stdin io.Reader) int {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	defer s.settle()
	defer cancel()

	if code, ended := s.prologue(); ended {
		return code
	}
	lifetime := time.NewTimer(s.sc.lifetime())
	defer lifetime.Stop()
	lines := readLines(ctx, stdin)
	for {
		select {
		case line, ok := <-lines:
			if ok {
				s.receive(ctx, line)
				continue
			}
			lines = nil
			s.log.add("eof", "")
			if !s.sc.IgnoreEOF {
				return s.ending()
			}
		case sig := <-signals:
			s.log.add("signal", sig.String())
			if number, ok := sig.(syscall.Signal); ok && !s.sc.IgnoreTerm {
				return exitSignal + int(number)
			}
		case code := <-s.quit:
			return code
		case <-lifetime.C:
			return exitLifetime
		}
	}
}

// prologue does what the scenario wants before the first message.
func (s *server) prologue() (code int, ended bool) {
	time.Sleep(ms(s.sc.StartDelayMS))
	io.WriteString(s.stderr, s.sc.StderrText)
	noise(s.stderr, s.sc.StderrBytes)
	for _, line := range s.sc.Banner {
		s.out.raw([]byte(line + "\n"))
	}
	if s.sc.ExitAtStart != nil {
		return *s.sc.ExitAtStart, true
	}
	return 0, false
}

// ending gives requests in flight a moment after EOF, then waits as long as
// the scenario says; an exit asked for meanwhile wins.
func (s *server) ending() int {
	s.settle()
	select {
	case code := <-s.quit:
		return code
	case <-time.After(ms(s.sc.EOFDelayMS)):
		return 0
	}
}

// settle waits for the goroutines of requests, at most the grace period: one
// may be stuck in a write that nobody reads.
func (s *server) settle() {
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(grace):
	}
}

// readLines sends every line of r, without its newline, and closes the channel
// at the end of r.
func readLines(ctx context.Context, r io.Reader) <-chan []byte {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 {
				select {
				case lines <- bytes.TrimSuffix(line, []byte("\n")):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// receive takes one line from the client.
func (s *server) receive(ctx context.Context, line []byte) {
	s.log.add("recv", string(line))
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		s.out.send(errorFrame(json.RawMessage("null"), -32700, "parse error: "+err.Error()), nil)
		return
	}
	switch {
	case m.Method == "" && m.ID != nil:
		s.deliverReply(m)
	case m.ID == nil:
		s.notified(ctx, m)
	case s.refuses(m):
		s.out.send(errorFrame(m.ID, -32002, "server not initialized"), nil)
	default:
		s.serve(ctx, m)
	}
}

// refuses reports whether a strict server turns the request away.
func (s *server) refuses(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sc.Strict && !s.initialized && m.Method != "initialize" && m.Method != "ping"
}

// notified takes a notification.
func (s *server) notified(ctx context.Context, m message) {
	switch m.Method {
	case "notifications/initialized":
		s.mu.Lock()
		s.initialized = true
		s.mu.Unlock()
		for _, raw := range s.sc.OnInitialized {
			s.out.send(oneLine(raw), nil)
		}
	case "notifications/cancelled":
		id := member(m.Params, "requestId")
		s.log.add("cancelled", string(id))
		s.mu.Lock()
		cancel := s.calls[string(id)]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
}

// serve answers a request in a goroutine of its own.
func (s *server) serve(ctx context.Context, m message) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.calls[string(m.ID)] = cancel
	s.mu.Unlock()
	s.work.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.calls, string(m.ID))
			s.mu.Unlock()
		}()
		s.answer(ctx, m)
	})
}
