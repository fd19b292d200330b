package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"mcpproxy/mcp/wire"
)

// ErrGone is proof that the hub is dead, or at least cannot be reached: no
// process listens on its socket.
var ErrGone = errors.New("nobody listens on the hub's socket")

// Other reasons why a hub cannot be used.
var (
	// errSilent tells that somebody does, but has not answered.
	errSilent = errors.New("the hub does not answer")
	// errEnding is what a hub on its way out answers.
	errEnding = errors.New("the hub is ending")
)

// Connect connects to the hub at a socket and sees that it belongs to this user
// and answers.
func Connect(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	if _, err := call(ctx, conn, "ping"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// connect connects to a socket, at whose other end this user must be. A process
// that is stopped accepts too.
func connect(ctx context.Context, socket string) (*net.UnixConn, error) {
	if !possible {
		return nil, errPlatform
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, ErrGone
	case errors.Is(err, syscall.EAGAIN):
		return nil, errSilent // too many wait to be accepted
	case err != nil:
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	peer := conn.(*net.UnixConn) // which a dialled "unix" always is
	if err := checkPeer(peer, self()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return peer, nil
}

// call makes the one request that is under way on a connection.
func call(ctx context.Context, conn net.Conn, method string) (json.RawMessage, error) {
	q, err := ask(conn, method)
	if err != nil {
		return nil, err
	}
	return q.answer(ctx, 0)
}

// question is a request whose answer is the next message on its connection.
type question struct {
	conn net.Conn
	got  []byte
}

// ask sends a request; it fits into the socket's buffer.
func ask(conn net.Conn, method string) (*question, error) {
	if _, err := conn.Write(append(wire.Request(0, method, nil), '\n')); err != nil {
		return nil, fmt.Errorf("write to the hub: %w", err)
	}
	return &question{conn: conn}, nil
}

// answer waits for the answer, for as long as patience unless that is 0. It
// returns errSilent when there is none by then, and can be called again.
func (q *question) answer(ctx context.Context, patience time.Duration) (json.RawMessage, error) {
	var limit time.Time
	if patience > 0 {
		limit = time.Now().Add(patience)
	}
	if err := q.conn.SetReadDeadline(limit); err != nil {
		return nil, fmt.Errorf("read from the hub: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = q.conn.SetReadDeadline(time.Unix(1, 0)) })
	line, err := q.line()
	ended := !stop()
	switch {
	case err == nil && !ended:
		_ = q.conn.SetReadDeadline(time.Time{}) // fails where the next use fails
		return parseAnswer(line)
	case ended || ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSilent
	}
	return nil, fmt.Errorf("read from the hub: %w", err)
}

// line reads up to the end of a line; what was read is kept for a later try.
func (q *question) line() ([]byte, error) {
	buf := make([]byte, 4<<10)
	for {
		if end := bytes.IndexByte(q.got, '\n'); end >= 0 {
			return q.got[:end], nil
		}
		n, err := q.conn.Read(buf)
		q.got = append(q.got, buf[:n]...)
		if err != nil && n == 0 {
			return nil, err
		}
	}
}

func parseAnswer(line []byte) (json.RawMessage, error) {
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read from the hub: %w", err)
	case m.Error != nil:
		failure := wire.ParseError(m.Error)
		if failure.Code == wire.CodeUnavailable {
			return nil, errEnding
		}
		return nil, failure
	}
	return m.Result, nil
}
