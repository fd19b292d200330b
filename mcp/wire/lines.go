package wire

import (
	"bytes"
	"fmt"
	"io"
)

// readSize is how much is read at once, in bytes; as much as a pipe holds.
const readSize = 64 << 10

// maxKeptRead is the largest buffer that is kept after a large line.
const maxKeptRead = 512 << 10

// lineReader reads lines into memory that belongs to the caller. A long line is
// not copied: its buffer is given away.
type lineReader struct {
	in      io.Reader
	max     int
	buf     []byte // buf[start:end] is read and not yet given out
	start   int
	end     int
	scanned int // no newline before this offset
}

// longLineError holds the two ends of a line that is longer than the limit; it
// has been read to its end.
type longLineError struct{ head, tail []byte }

// Error says what is wrong.
func (e *longLineError) Error() string { return fmt.Sprintf("a line is too long: %.40q...", e.head) }

// next returns the next line with its newline, or what is left at the end of
// the stream together with its error.
func (l *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n'); i >= 0 {
			return l.take(l.scanned + i + 1), nil
		}
		l.scanned = l.end
		if l.end-l.start > l.max {
			return nil, l.skip()
		}
		if err := l.fill(); err != nil {
			return l.take(l.end), err
		}
	}
}

// take gives out what is read up to offset to.
func (l *lineReader) take(to int) []byte {
	line := l.buf[l.start:to:to]
	if len(line) < readSize/2 {
		l.start, l.scanned = to, to
		return bytes.Clone(line)
	}
	rest := l.buf[to:l.end]
	next := make([]byte, max(readSize, len(rest), min(len(l.buf), maxKeptRead)))
	l.end = copy(next, rest)
	l.buf, l.start, l.scanned = next, 0, 0
	return line
}

// fill reads more, into a larger buffer if this one is full.
func (l *lineReader) fill() error {
	if l.start == l.end {
		l.start, l.end, l.scanned = 0, 0, 0
	}
	if l.end == len(l.buf) {
		held := l.end - l.start
		next := l.buf
		if held > len(l.buf)/2 || len(l.buf) == 0 {
			next = make([]byte, max(readSize, 2*len(l.buf)))
		}
		copy(next, l.buf[l.start:l.end])
		l.scanned -= l.start
		l.buf, l.start, l.end = next, 0, held
	}
	n, err := l.in.Read(l.buf[l.end:])
	l.end += n
	if n > 0 {
		return nil
	}
	return err
}

// skip reads to the end of a line that is too long and keeps its two ends.
func (l *lineReader) skip() error {
	e := &longLineError{head: bytes.Clone(l.buf[l.start:min(l.end, l.start+shownGarbage)])}
	for {
		data := l.buf[l.start:l.end]
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			e.keep(data[:i+1])
			l.start += i + 1
			l.scanned = l.start
			return e
		}
		e.keep(data)
		l.start, l.end, l.scanned = 0, 0, 0
		if len(l.buf) > readSize {
			l.buf = make([]byte, readSize)
		}
		if err := l.fill(); err != nil {
			return e // the error comes again with the next read
		}
	}
}

// keep holds on to the last bytes of what went by.
func (e *longLineError) keep(data []byte) {
	all := append(e.tail, data...)
	e.tail = bytes.Clone(all[max(0, len(all)-shownGarbage):])
}
