package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mcpproxy/mcp/wire"
)

const (
	maxResumes = 5               // tries in a row that bring nothing new
	maxPause   = 5 * time.Minute // between two tries
	minPause   = 20 * time.Millisecond
	// linger is how long the end of a stream is waited for after the answer, so
	// that the connection can be used again.
	linger = time.Second
)

var (
	errTooLarge    = errors.New("message is larger than the limit")
	errStreamEnded = errors.New("stream ended before the answer")
)

// consume reads the response to a POST to its end and, while the answer is
// missing and the server numbers its events, those that continue it.
func (l *httpLink) consume(x *httpExchange, resp *http.Response) {
	defer l.finish(x)
	if x.id == 0 {
		// Whatever there is to read, the caller does not wait for it.
		x.detach()
		defer time.AfterFunc(linger, func() { x.cancel(nil) }).Stop()
	}
	err := l.read(x, resp)
	for tries := 1; !x.answered && x.id != 0; tries++ {
		if x.heard {
			tries = 1
		}
		x.heard = false
		switch {
		case x.ctx.Err() != nil:
			err = context.Cause(x.ctx)
		case errors.Is(err, errTooLarge), x.lastID == "":
		case tries > maxResumes:
			err = fmt.Errorf("stream broke %d times in a row: %w", tries, err)
		case l.pause(x, tries):
			if err = l.resume(x); x.answered || transientHTTP(err) {
				continue
			}
		default:
			continue // the pause was cut short
		}
		l.refuse(x, err.Error())
	}
}

// resume asks for what follows the last event.
func (l *httpLink) resume(x *httpExchange) error {
	resp, err := l.get(x)
	if err != nil {
		return fmt.Errorf("resume stream: %w", err)
	}
	return l.read(x, resp)
}

// get opens the listening stream, or the one that x.lastID belongs to.
func (l *httpLink) get(x *httpExchange) (*http.Response, error) {
	header, _, err := l.head(false)
	if err != nil {
		return nil, err
	}
	header.Set("Accept", "text/event-stream")
	if x.lastID != "" {
		header.Set("Last-Event-ID", x.lastID)
	}
	return l.do(x.ctx, httpCall{method: http.MethodGet, header: header})
}

// pause waits before the n-th try in a row, from 1, and reports whether the
// exchange still stands. It starts from what the server asked for, doubles up
// to a limit and is spread by a quarter.
func (l *httpLink) pause(x *httpExchange, n int) bool {
	d := l.retry
	if x.retry >= 0 {
		d = max(x.retry, minPause)
	}
	d = min(d<<min(n-1, 16), maxPause)
	t := time.NewTimer(d + rand.N(d/4+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}

// read delivers all messages of one response and closes it. It returns why it
// ended, and never nil.
func (l *httpLink) read(x *httpExchange, resp *http.Response) error {
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		return l.readEvents(x, resp.Body)
	}
	var all bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= int64(l.max) {
		all.Grow(int(n) + bytes.MinRead)
	}
	_, err := all.ReadFrom(io.LimitReader(resp.Body, int64(l.max)+1))
	data := all.Bytes()
	switch {
	case len(data) > l.max:
		return fmt.Errorf("%w of %d bytes", errTooLarge, l.max)
	case err != nil && x.ctx.Err() != nil:
		return context.Cause(x.ctx)
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	l.deliver(x, data)
	switch {
	case x.odd != "":
		return fmt.Errorf("server sent no answer but %q", x.odd)
	case len(data) == 0:
		return fmt.Errorf("server answered %d without content", resp.StatusCode)
	}
	return errStreamEnded
}

func (l *httpLink) readEvents(x *httpExchange, body io.Reader) error {
	stream := newSSEReader(body, l.max)
	var late *time.Timer
	for event, err := range stream.events() {
		if stream.retry >= 0 {
			x.retry = stream.retry
		}
		switch {
		case x.ctx.Err() != nil:
			return context.Cause(x.ctx)
		case err != nil:
			return fmt.Errorf("read stream: %w", err)
		}
		if event.LastEventID != "" && event.LastEventID != x.lastID {
			x.lastID = event.LastEventID
			x.heard = true
		}
		if event.Data == "" || event.Type != "" && event.Type != "message" {
			continue
		}
		x.heard = true
		l.deliver(x, []byte(event.Data))
		if x.answered && late == nil {
			late = time.AfterFunc(linger, func() { x.cancel(nil) })
			defer late.Stop()
		}
	}
	if x.odd != "" {
		return fmt.Errorf("%w; it held %q", errStreamEnded, x.odd)
	}
	return errStreamEnded
}

// deliver hands on the message, or messages, in data, which it owns.
func (l *httpLink) deliver(x *httpExchange, data []byte) {
	ignored := func(g wire.Garbage) {
		if x.odd == "" {
			x.odd = l.ignore(g)
		}
		if id, ok := wire.NumberID(g.ID); ok && id == x.id && g.Response && !x.answered {
			l.refuse(x, fmt.Sprintf("answer cannot be read: %v", g.Why))
		}
	}
	decode(data, l.max, ignored, func(m wire.Message) { l.hand(x, m) })
}

// parseLine is wire.Parse for a message that may stand on several lines: the
// line ends, which no JSON string holds as they are, become spaces, since what
// is relayed to a client of stdio must be one line. It changes data.
func parseLine(data []byte) (wire.Message, error) {
	m, err := wire.Parse(data)
	if err != nil || !bytes.ContainsAny(m.Raw, "\r\n") {
		return m, err
	}
	for i, c := range m.Raw {
		if c == '\n' || c == '\r' {
			m.Raw[i] = ' '
		}
	}
	return m, nil
}

// decode calls found for each message in data, which it owns.
func decode(data []byte, max int, ignored func(wire.Garbage), found func(wire.Message)) {
	if utf8.Valid(data) {
		m, err := parseLine(data)
		if err == nil && (m.IsRequest() || m.IsNotification() || m.IsResponse()) {
			found(m)
			return
		}
	}
	// Batches, byte order marks, invalid UTF-8 and worse.
	in := wire.NewReader(bytes.NewReader(data), max, ignored)
	for m, err := in.Next(); err == nil; m, err = in.Next() {
		found(m)
	}
}

// hand gives one message to the receiver. What comes as a response on a
// request's own stream is that request's answer also if its id was lost.
func (l *httpLink) hand(x *httpExchange, m wire.Message) {
	if x.id != 0 && !m.IsRequest() && !m.IsNotification() {
		id, ok := wire.NumberID(m.ID)
		if ok && id == x.id || wire.IsNull(m.ID) && m.Error != nil {
			m = withID(m, x.id)
			x.settle()
		}
	}
	l.recv(m, x.id)
}

// settle notes that the answer is there, before it is handed on: the caller may
// end its context as soon as it has it, and the rest of the stream is still to
// be read.
func (x *httpExchange) settle() {
	x.answered = true
	x.detach()
}

// withID returns m with the number as its id.
func withID(m wire.Message, id int64) wire.Message {
	number := strconv.AppendInt(nil, id, 10)
	if bytes.Equal(m.ID, number) {
		return m
	}
	if again, err := wire.Parse(wire.SetMember(m.Raw, number, "id")); err == nil {
		return again
	}
	return m
}

// answeredBy hands on the body of a failure if it is a JSON-RPC error for the
// request, and reports whether it was.
func (l *httpLink) answeredBy(x *httpExchange, body []byte) bool {
	m, err := parseLine(bytes.Clone(body))
	if err != nil || x.id == 0 || m.Error == nil {
		return false
	}
	if id, ok := wire.NumberID(m.ID); !ok || id != x.id {
		return false
	}
	l.hand(x, m)
	return true
}

// refuse answers the exchange's request in place of the server.
func (l *httpLink) refuse(x *httpExchange, text string) {
	x.settle()
	l.recv(unanswered(x.id, l.mask.Replace(text)), x.id)
}

// unanswered is our own answer to a request that the server will not answer.
// Its Raw is nil, by which it can be told from a server's.
func unanswered(id int64, text string) wire.Message {
	return wire.Message{
		ID:    strconv.AppendInt(nil, id, 10),
		Error: wire.Errorf(wire.CodeUnavailable, "%s", strings.ToValidUTF8(text, "\uFFFD")).JSON(),
	}
}
