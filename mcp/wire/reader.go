package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// DefaultMaxFrame is the largest message that is read, in bytes.
const DefaultMaxFrame = 64 << 20

// shownGarbage is how much of a garbage line is handed on, in bytes.
const shownGarbage = 4 << 10

// Garbage is input that is no message: a banner, a log line, a broken or too
// large message.
type Garbage struct {
	// Line holds at most 4 KiB of it.
	Line []byte
	// Why says what is wrong with it.
	Why error
	// ID is the raw id of the message it seems to be, if one could be found, so
	// that whoever waits for the answer can be told.
	ID json.RawMessage
	// Response tells whether that message seems to be an answer.
	Response bool
}

// Reader reads newline-delimited JSON-RPC from a byte stream and forgives what
// real programs write: byte order marks, CRLF, white space, several messages
// in a line, one message over several lines, text before a message, invalid
// UTF-8 (replaced by U+FFFD). All else is given to the garbage function and
// reading goes on. A Reader is used by one goroutine.
type Reader struct {
	lines   lineReader
	max     int
	garbage func(Garbage)
	queue   []Message
	partial []byte
	open    int
}

// NewReader returns a Reader for messages of up to maxFrame bytes
// (DefaultMaxFrame if 0). garbage may be nil; it is called by Next.
func NewReader(r io.Reader, maxFrame int, garbage func(Garbage)) *Reader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	if garbage == nil {
		garbage = func(Garbage) {}
	}
	return &Reader{lines: lineReader{in: r, max: maxFrame}, max: maxFrame, garbage: garbage}
}

// Next returns the next message, or the error of the stream; at its end that
// is io.EOF. Raw data of a message belongs to the caller.
func (r *Reader) Next() (Message, error) {
	for len(r.queue) == 0 {
		line, err := r.lines.next()
		if tooLong := new(longLineError); errors.As(err, &tooLong) {
			r.dropLong(tooLong)
			continue
		}
		r.accept(line)
		if err != nil {
			if len(r.queue) > 0 {
				break
			}
			if len(r.partial) > 0 {
				r.drop(r.partial, errIncomplete)
				r.partial = nil
			}
			return Message{}, err
		}
	}
	m := r.queue[0]
	r.queue = r.queue[1:]
	return m, nil
}

// dropLong reports a line over the limit.
func (r *Reader) dropLong(line *longLineError) {
	g := Garbage{Line: line.head, Why: fmt.Errorf("message is larger than %d bytes", r.max)}
	if m, _, _ := parseObject(bytes.TrimSpace(line.head), 0); m.ID != nil {
		g.ID, g.Response = m.ID, !m.method
	} else if hit := trailingID.FindSubmatch(line.tail); hit != nil {
		g.ID, g.Response = hit[1], true
	}
	r.garbage(g)
}

// trailingID finds the id of a message that has it as its last member.
var trailingID = regexp.MustCompile(`"id"\s*:\s*(-?\d+|"[^"\\]*")\s*\}\s*$`)

// accept takes one line and queues the messages that it completes.
func (r *Reader) accept(line []byte) {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	line = bytes.Trim(line, " \t\r\n")
	if len(line) == 0 {
		return
	}
	if bytes.IndexByte(line, '\r') >= 0 {
		// White space too, since a string cannot hold one.
		line = bytes.ReplaceAll(line, []byte{'\r'}, []byte{' '})
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if r.partial == nil {
		r.parse(line)
		return
	}
	if m, err := Parse(line); err == nil && m.version {
		// A whole message in one line: what was open before it is no beginning
		// of a message that spans lines.
		r.drop(r.partial, errIncomplete)
		r.partial = nil
		r.queue = append(r.queue, m)
		return
	}
	// A space instead of the line end: what is relayed must be one line.
	r.partial = append(append(r.partial, ' '), line...)
	r.open += depth(line)
	if r.open > 0 && len(r.partial) <= r.max {
		return
	}
	whole := r.partial
	r.partial = nil
	if _, err := skipValue(whole, 0); errors.Is(err, errSyntax) || len(whole) > r.max {
		r.drop(whole[:len(whole)-len(line)-1], errSyntax)
		r.parse(line)
		return
	}
	r.parse(whole)
}

// depth counts the brackets that a piece of JSON leaves open (closes, if
// negative). No string goes over a line end, so lines can be counted alone and
// each only once.
func depth(line []byte) int {
	n := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{', '[':
			n++
		case '}', ']':
			n--
		case '"':
			end, err := skipString(line, i)
			if err != nil {
				return n
			}
			i = end - 1
		}
	}
	return n
}

// parse queues all messages in text; what is left open at its end becomes
// partial.
func (r *Reader) parse(text []byte) {
	for i := skipSpace(text, 0); i < len(text); i = skipSpace(text, i) {
		var err error
		end := i
		switch text[i] {
		case '{':
			var m Message
			if m, end, err = parseObject(text, i); err == nil {
				r.object(m)
			}
		case '[':
			if end, err = skipValue(text, i); err == nil {
				r.array(text[i:end:end])
			}
		default:
			err = errSyntax
		}
		switch {
		case err == nil:
			i = end
		case errors.Is(err, errIncomplete):
			r.partial = text[i:]
			r.open = depth(r.partial)
			return
		default:
			next := nextMessage(text, i)
			r.drop(text[i:next], err)
			i = next
		}
	}
}

// nextMessage returns the offset at which a message seems to begin behind i.
func nextMessage(text []byte, i int) int {
	if k := bytes.Index(text[i+1:], []byte(`{"jsonrpc"`)); k >= 0 {
		return i + 1 + k
	}
	return len(text)
}

func (r *Reader) object(m Message) {
	if m.known() {
		r.queue = append(r.queue, m)
		return
	}
	r.drop(m.Raw, errors.New("JSON, but no JSON-RPC message"))
}

// array takes a JSON-RPC batch, or garbage.
func (r *Reader) array(text []byte) {
	b := &batch{}
	var messages []Message
	for raw := range Elements(text) {
		m, err := Parse(raw)
		if err != nil || !m.known() {
			messages = nil
			break
		}
		if m.IsRequest() {
			b.open++
			m.batch = b
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		r.drop(text, errors.New("a JSON array, but no batch of messages"))
		return
	}
	r.queue = append(r.queue, messages...)
}

func (r *Reader) drop(text []byte, why error) {
	g := Garbage{Line: text[:min(len(text), shownGarbage)], Why: why}
	if text[0] == '{' {
		if m, _, err := parseObject(text, 0); err != nil && (m.version || m.method) {
			g.ID, g.Response = m.ID, m.ID != nil && !m.method
		}
	}
	r.garbage(g)
}
