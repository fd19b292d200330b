package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/tmaxmax/go-sse"
)

// sseReader reads the events of one stream. It lets the parser see only whole
// events: the parser starts an event from its beginning whenever more of it
// comes in, which is quadratic in its size, and it does not tell what the
// server asks for with "retry:".
type sseReader struct {
	src   io.Reader
	max   int
	retry time.Duration // the last that was asked for; negative if none was

	buf   []byte
	off   int  // up to here it was handed on
	ready int  // up to here it holds whole events
	line  int  // where the current line starts
	scan  int  // up to here it was searched for line ends
	cr    bool // the last line ended with CR, so that LF may belong to it
	err   error
}

const (
	sseReadSize  = 256 << 10 // bytes asked for at once
	sseKeptSpace = 1 << 20   // bytes of buffer kept between events
)

// newSSEReader reads events of up to max bytes each from src.
func newSSEReader(src io.Reader, max int) *sseReader {
	return &sseReader{src: src, max: max, retry: -1}
}

// events yields all events and at most one error, at the end; none if the
// stream just ended.
func (r *sseReader) events() iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		// What Read lets through may exceed the limit by what came with its end.
		for event, err := range sse.Read(r, &sse.ReadConfig{MaxEventSize: r.max + 2*sseReadSize}) {
			if errors.Is(err, bufio.ErrTooLong) || len(event.Data) > r.max {
				yield(sse.Event{}, r.tooLarge())
				return
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func (r *sseReader) tooLarge() error {
	return fmt.Errorf("%w of %d bytes", errTooLarge, r.max)
}

// Read hands on whole events.
func (r *sseReader) Read(p []byte) (int, error) {
	for r.off == r.ready {
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.buf[r.off:r.ready])
	r.off += n
	return n, nil
}

// fill reads once and looks for the ends of events in what came.
func (r *sseReader) fill() {
	if r.off > 0 {
		r.buf = append(r.buf[:0], r.buf[r.off:]...)
		r.line -= r.off
		r.scan -= r.off
		r.off, r.ready = 0, 0
	}
	if len(r.buf) > r.max {
		r.err = r.tooLarge()
		return
	}
	if len(r.buf) == 0 && cap(r.buf) > sseKeptSpace {
		r.buf = nil
	}
	if cap(r.buf)-len(r.buf) < 4<<10 {
		r.buf = append(make([]byte, 0, 2*cap(r.buf)+8<<10), r.buf...)
	}
	n, err := r.src.Read(r.buf[len(r.buf):min(cap(r.buf), len(r.buf)+sseReadSize)])
	r.buf = r.buf[:len(r.buf)+n]
	r.err = err
	for r.scan < len(r.buf) {
		r.next()
	}
}

// next takes the line that ends first behind scan; lines end with LF, CR or
// both. An empty line ends an event.
func (r *sseReader) next() {
	rest := r.buf[r.scan:]
	if r.cr && rest[0] == '\n' {
		r.cr = false
		r.scan++
		r.line = r.scan
		return
	}
	r.cr = false
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest)
	}
	if cr := bytes.IndexByte(rest[:end], '\r'); cr >= 0 {
		end = cr
		r.cr = true
	}
	if end == len(rest) {
		r.scan = len(r.buf)
		return
	}
	line := r.buf[r.line : r.scan+end]
	r.scan += end + 1
	r.line = r.scan
	if len(line) == 0 {
		r.ready = r.scan
		return
	}
	if value, ok := bytes.CutPrefix(line, []byte("retry:")); ok {
		ms, err := strconv.ParseInt(string(bytes.TrimPrefix(value, []byte(" "))), 10, 32)
		if err == nil && ms >= 0 {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
}
