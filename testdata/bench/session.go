package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// target is a program to measure, as a stdio MCP server.
type target struct {
	name   string
	argv   []string
	env    []string // beside the usual
	prefix string   // in front of the upstream's tool names
	hub    bool     // what it starts ends later than itself
	silent bool     // a word on stderr is a failure
}

// session is a running target and the measuring client's end of it. The client
// does as little as it can, so that ratios show the targets and not itself: one
// goroutine writes and reads, and answers are not decoded.
type session struct {
	target target
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	long   []byte // a line that does not fit the buffer of out
	stderr string // file
	began  time.Time
	lastID int64
	cancel context.CancelFunc
}

// stopTime is how long a target may take to end after its stdin did.
const stopTime = 8 * time.Second

// open starts a target in its own process group. When ctx ends the group is
// killed, and whatever is being read ends with an error.
func (b *bench) open(ctx context.Context, t target) (*session, error) {
	ctx, cancel := context.WithCancel(ctx)
	stderr, err := os.CreateTemp(b.dir, "stderr-")
	if err != nil {
		cancel()
		return nil, err
	}
	defer stderr.Close()
	s := &session{target: t, stderr: stderr.Name(), cancel: cancel}
	s.cmd = exec.CommandContext(ctx, t.argv[0], t.argv[1:]...)
	s.cmd.Stderr = stderr
	s.cmd.Dir, s.cmd.Env = b.dir, append(b.environ(), t.env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = func() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }
	s.cmd.WaitDelay = 2 * time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	s.in, s.out = in, bufio.NewReaderSize(out, 256<<10)
	s.began = time.Now()
	if err := s.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	return s, nil
}

// environ is the environment of all that is started. The home folder is this
// run's own, and by it everything is found again.
func (b *bench) environ() []string {
	return append(os.Environ(), "HOME="+b.dir, "XDG_CONFIG_HOME="+filepath.Join(b.dir, "xdg"))
}

// close ends the target by the end of its stdin, and kills its group when that
// takes too long.
func (s *session) close() error {
	defer s.cancel()
	s.in.Close()
	late := time.AfterFunc(stopTime, s.cancel)
	defer late.Stop()
	for { // what is still on its way must not keep the target from ending
		if _, err := s.read(); err != nil {
			break
		}
	}
	if err := s.cmd.Wait(); err != nil {
		return s.failed("end", err)
	}
	said, err := os.Stat(s.stderr)
	if err != nil {
		return err
	}
	if s.target.silent && said.Size() > 0 {
		return s.failed("listen to", errors.New("it is not silent"))
	}
	return os.Remove(s.stderr)
}

// kill ends the target and its group at once, after an error.
func (s *session) kill() {
	s.cancel()
	s.cmd.Wait()
}

// failed wraps an error with what the target said on stderr.
func (s *session) failed(doing string, err error) error {
	said, _ := os.ReadFile(s.stderr)
	if len(said) > 1000 {
		said = said[len(said)-1000:]
	}
	if said = bytes.TrimSpace(said); len(said) > 0 {
		return fmt.Errorf("%s %s: %w; stderr: %s", doing, s.target.name, err, said)
	}
	return fmt.Errorf("%s %s: %w", doing, s.target.name, err)
}

// read returns the next line; it is valid until the next read.
func (s *session) read() ([]byte, error) {
	line, err := s.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	s.long = append(s.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = s.out.ReadSlice('\n')
		s.long = append(s.long, line...)
	}
	return s.long, err
}

// send writes a request and returns its id; params may be empty.
func (s *session) send(method, params string) (int64, error) {
	s.lastID++
	frame := make([]byte, 0, 256)
	frame = append(frame, `{"jsonrpc":"2.0","id":`...)
	frame = strconv.AppendInt(frame, s.lastID, 10)
	frame = append(append(append(frame, `,"method":"`...), method...), '"')
	if params != "" {
		frame = append(append(frame, `,"params":`...), params...)
	}
	_, err := s.in.Write(append(frame, "}\n"...))
	return s.lastID, err
}

// next returns the id of the next answer and its line; an answer that is an
// error is one. Notifications are passed over, requests answered with {}.
func (s *session) next() (int64, []byte, error) {
	for {
		line, err := s.read()
		if err != nil {
			return 0, nil, err
		}
		if id, ok := plainResult(line); ok {
			return id, line, nil
		}
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return 0, nil, fmt.Errorf("read %.200q: %w", line, err)
		}
		switch {
		case m.Method != "" && m.ID != nil:
			if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID); err != nil {
				return 0, nil, err
			}
		case m.Method != "":
		case m.Error != nil:
			return 0, nil, fmt.Errorf("answered with error %s", m.Error)
		default:
			id, err := strconv.ParseInt(string(m.ID), 10, 64)
			return id, line, err
		}
	}
}

// plainResult reads the id of a result whose members stand in the usual order.
func plainResult(line []byte) (id int64, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return 0, false
	}
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		id, rest = id*10+int64(rest[0]-'0'), rest[1:]
	}
	return id, bytes.HasPrefix(rest, []byte(`,"result":`))
}

// request sends one request and waits for its answer, which is valid until the
// next read.
func (s *session) request(method, params string) ([]byte, error) {
	want, err := s.send(method, params)
	if err != nil {
		return nil, s.failed(method+" to", err)
	}
	for {
		id, line, err := s.next()
		if err != nil {
			return nil, s.failed(method+" to", err)
		}
		if id == want {
			return line, nil
		}
	}
}

// handshake initializes the session and returns the time from the start of the
// process to the answer.
func (s *session) handshake() (time.Duration, error) {
	_, err := s.request("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	took := time.Since(s.began)
	if err != nil {
		return 0, err
	}
	_, err = io.WriteString(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return took, err
}
