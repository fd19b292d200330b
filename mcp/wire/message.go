package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Error codes of JSON-RPC, of MCP, and our own (all negative). They are what a
// client sees in error.code.
const (
	CodeParse          = -32700 // the line was no JSON
	CodeInvalidRequest = -32600 // JSON, but no request that may be made now
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602 // also: unknown tool or prompt
	CodeInternal       = -32603
	CodeUnavailable    = -32000 // the server cannot be reached or has died
	CodeTimeout        = -32001 // the server did not answer within its budget
	CodeNotFound       = -32002 // unknown resource (MCP)
	CodeRefused        = -32003 // policy forbids it
	CodeBusy           = -32004 // a concurrency limit is reached; try again
)

// Error is a JSON-RPC error object. Raw holds the object as the peer sent it;
// it is what is relayed, so that unknown members survive.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage
	Raw     json.RawMessage
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errorf makes an error of ours.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// JSON returns the error object: Raw where there is one.
func (e *Error) JSON() json.RawMessage {
	if e.Raw != nil {
		return e.Raw
	}
	out := append([]byte(`{"code":`), strconv.FormatInt(e.Code, 10)...)
	out = append(out, `,"message":`...)
	out = append(out, Quote(e.Message)...)
	if e.Data != nil {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

// ParseError reads a raw error object, however odd, and keeps it in Raw.
func ParseError(raw json.RawMessage) *Error {
	e := &Error{Code: CodeInternal, Raw: raw, Data: Member(raw, "data")}
	if code, err := strconv.ParseInt(string(Member(raw, "code")), 10, 64); err == nil {
		e.Code = code
	}
	e.Message, _ = String(Member(raw, "message"))
	return e
}

// Message is one JSON-RPC message; the raw members are slices of Raw, verbatim,
// and nil when absent.
type Message struct {
	Raw    json.RawMessage
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage

	version bool
	method  bool
	batch   *batch
}

// Parse reads one JSON object as a message. It accepts any object; the Is
// methods tell whether it is a message at all.
func Parse(raw []byte) (Message, error) {
	start := skipSpace(raw, 0)
	if start < len(raw) && raw[start] != '{' {
		return Message{}, errSyntax
	}
	m, end, err := parseObject(raw, start)
	if err != nil {
		return Message{}, err
	}
	if skipSpace(raw, end) != len(raw) {
		return Message{}, errSyntax
	}
	return m, nil
}

// parseObject reads the object at offset i and returns the offset behind it.
// On an error the message holds the members that were read until then.
func parseObject(b []byte, i int) (Message, int, error) {
	var m Message
	start := i
	if i >= len(b) {
		return m, i, errIncomplete
	}
	i, empty, err := enter(b, i)
	if err != nil || empty {
		m.Raw = b[start:i:i]
		return m, i, err
	}
	// enter has stepped over the first key; walk again from it.
	i = skipSpace(b, start+1)
	for {
		key := i
		value, err := skipKey(b, i)
		if err != nil {
			return m, value, err
		}
		value = skipSpace(b, value)
		end, err := skipValue(b, value)
		if err != nil {
			return m, end, err
		}
		m.set(b[key:value], b[value:end:end])
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return m, i, errIncomplete
		case b[i] == '}':
			m.Raw = b[start : i+1 : i+1]
			if m.Result != nil && isNull(m.Error) {
				// JSON-RPC 1.0 wants both members; null is no error.
				m.Error = nil
			}
			return m, i + 1, nil
		case b[i] != ',':
			return m, i, errSyntax
		}
		i = skipSpace(b, i+1)
	}
}

// set takes one member; key holds the quoted name and what follows it up to
// the value.
func (m *Message) set(key []byte, value json.RawMessage) {
	end, _ := skipString(key, 0)
	name, _ := String(key[:end])
	switch name {
	case "jsonrpc":
		m.version = true
	case "id":
		m.ID = value
	case "method":
		m.Method, m.method = String(value)
	case "params":
		m.Params = value
	case "result":
		m.Result = value
	case "error":
		m.Error = value
	}
}

// IsRequest reports whether the message asks for an answer.
func (m *Message) IsRequest() bool { return m.method && m.ID != nil && !isNull(m.ID) }

// IsNotification reports whether the message asks for none.
func (m *Message) IsNotification() bool { return m.method && m.ID == nil }

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool {
	return !m.method && m.ID != nil && (m.Result != nil || m.Error != nil)
}

// known reports whether the object is a JSON-RPC message rather than, say, a
// log line in JSON: a missing "jsonrpc" is forgiven where an id makes it clear.
func (m *Message) known() bool {
	return m.version || m.IsRequest() || m.IsResponse()
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// IsNull reports whether raw is absent or the JSON null.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || isNull(bytes.TrimSpace(raw)) }

// Request renders a request with a number as its id.
func Request(id int64, method string, params json.RawMessage) []byte {
	return call(strconv.AppendInt(nil, id, 10), method, params)
}

// Notification renders a notification; nil params are left out.
func Notification(method string, params json.RawMessage) []byte {
	return call(nil, method, params)
}

func call(id []byte, method string, params json.RawMessage) []byte {
	out := make([]byte, 0, len(id)+len(method)+len(params)+64)
	out = append(out, `{"jsonrpc":"2.0"`...)
	if id != nil {
		out = append(append(out, `,"id":`...), id...)
	}
	out = append(append(out, `,"method":`...), Quote(method)...)
	if len(params) > 0 {
		out = append(append(out, `,"params":`...), params...)
	}
	return append(out, '}')
}

// Response renders the answer to the request with that raw id.
func Response(id, result json.RawMessage) []byte {
	return reply(id, `,"result":`, result)
}

// ErrorResponse renders an error answer; a nil id is null.
func ErrorResponse(id json.RawMessage, e *Error) []byte {
	return reply(id, `,"error":`, e.JSON())
}

func reply(id json.RawMessage, member string, value json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := make([]byte, 0, len(id)+len(value)+64)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	out = append(append(out, member...), value...)
	return append(out, '}')
}
