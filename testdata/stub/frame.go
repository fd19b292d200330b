package stub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Ways to frame a message, for Scenario.Framing and Answer.Framing. Several can
// be combined.
const (
	FrameLog         = "log"          // the line "DEBUG working" goes first
	FrameJSONLog     = "jsonlog"      // a JSON log object in a line goes first
	FrameScalar      = "scalar"       // the line "42" goes first
	FrameBlank       = "blank"        // two blank lines go first
	FrameBOM         = "bom"          // a UTF-8 byte order mark in front
	FrameCRLF        = "crlf"         // ends in CR LF
	FrameTrailing    = "trailing"     // blanks and a tab before the newline
	FramePretty      = "pretty"       // over several lines, indented
	FrameChunks      = "chunks"       // three writes 100 ms apart, the first ending inside a character
	FrameTwo         = "two"          // a log notification follows on the same line
	FrameTwice       = "twice"        // the message is sent two times
	FrameInvalidUTF8 = "invalid-utf8" // the default text of a tool holds the bytes FF FE
	FrameStringID    = "string-id"    // a number as id is sent as a string
	FrameNullID      = "null-id"      // the id is null
	FrameNoVersion   = "no-version"   // the member jsonrpc is missing
)

// chunkPause lies between the writes of FrameChunks.
const chunkPause = 100 * time.Millisecond

// logNotification is what FrameTwo adds to a line.
const logNotification = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"same line"}}`

// output is the only writer to stdout.
type output struct {
	framing []string // of the scenario

	mu sync.Mutex
	w  io.Writer
}

// raw writes bytes that are no message.
func (o *output) raw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Write(b)
}

// send writes a message, framed as the scenario and its answer say.
func (o *output) send(frame []byte, framing []string) {
	has := func(way string) bool { return slices.Contains(o.framing, way) || slices.Contains(framing, way) }
	var front, end string
	if has(FrameBlank) {
		front += "\n\n"
	}
	if has(FrameLog) {
		front += "DEBUG working\n"
	}
	if has(FrameJSONLog) {
		front += `{"level":"debug","msg":"working","time":1}` + "\n"
	}
	if has(FrameScalar) {
		front += "42\n"
	}
	if has(FrameBOM) {
		front += "\uFEFF"
	}
	if has(FramePretty) {
		var indented bytes.Buffer
		if json.Indent(&indented, frame, "", "  ") == nil {
			frame = indented.Bytes()
		}
	}
	if has(FrameTwo) {
		end += logNotification
	}
	if has(FrameTrailing) {
		end += " \t "
	}
	if has(FrameCRLF) {
		end += "\r"
	}
	whole := slices.Concat([]byte(front), frame, []byte(end), []byte("\n"))
	if has(FrameTwice) {
		whole = slices.Concat(whole, whole)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !has(FrameChunks) {
		o.w.Write(whole)
		return
	}
	for i, part := range chunks(whole) {
		if i > 0 {
			time.Sleep(chunkPause)
		}
		o.w.Write(part)
	}
}

// chunks cuts b in three, the first cut behind the first byte of the first
// character that has several, if there is one.
func chunks(b []byte) [][]byte {
	first := bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) + 1
	if first == 0 {
		first = len(b) / 3
	}
	second := first + (len(b)-first)/2
	return [][]byte{b[:first], b[first:second], b[second:]}
}

// replyFrame is the answer to a request; member is "result" or "error".
func replyFrame(id json.RawMessage, member string, value json.RawMessage, framing []string) []byte {
	if slices.Contains(framing, FrameStringID) && id[0] != '"' {
		id = slices.Concat([]byte(`"`), id, []byte(`"`))
	}
	if slices.Contains(framing, FrameNullID) {
		id = json.RawMessage("null")
	}
	version := `"jsonrpc":"2.0",`
	if slices.Contains(framing, FrameNoVersion) {
		version = ""
	}
	return slices.Concat([]byte("{"+version+`"id":`), id, []byte(`,"`+member+`":`), oneLine(value), []byte("}"))
}

// errorFrame is the answer to a request that failed.
func errorFrame(id json.RawMessage, code int, text string) []byte {
	return replyFrame(id, "error", failure(code, text), nil)
}

// failure is a JSON-RPC error object.
func failure(code int, text string) json.RawMessage {
	return fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, quote(text))
}

// notification is a message without an id.
func notification(method string, params json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","method":`), quote(method), []byte(`,"params":`), oneLine(params), []byte("}"))
}

// oneLine takes line ends out of raw JSON; inside strings there can be none.
func oneLine(raw json.RawMessage) []byte {
	if bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), nil), []byte("\r"), nil)
	}
	return raw
}

// quote is s as a JSON string, with <, > and & as they are.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// member is a raw member of a raw object, nil when it is not there.
func member(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members[name]
}

// text is a string member of a raw object, "" when it is not there.
func text(object json.RawMessage, name string) string {
	var s string
	if json.Unmarshal(member(object, name), &s) != nil {
		return ""
	}
	return s
}

// number is an integer member of a raw object, or the default given.
func number(object json.RawMessage, name string, otherwise int) int {
	n := otherwise
	if raw := member(object, name); raw != nil && json.Unmarshal(raw, &n) != nil {
		return otherwise
	}
	return n
}

// noise writes n bytes in lines of at most 80.
func noise(w io.Writer, n int) {
	line := append(bytes.Repeat([]byte("x"), 79), '\n')
	for ; n > len(line); n -= len(line) {
		w.Write(line)
	}
	if n > 0 {
		w.Write(line[len(line)-n:])
	}
}
