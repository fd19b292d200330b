package stub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// answer answers one request as its scripted answer says.
func (s *server) answer(ctx context.Context, m message) {
	a := s.scripted(m)
	io.WriteString(s.stderr, a.StderrText)
	noise(s.stderr, a.StderrBytes)
	for _, raw := range a.Before {
		s.out.send(oneLine(raw), nil)
	}
	if !pause(ctx, ms(a.DelayMS)) {
		return
	}
	if a.Result == nil && a.Error == nil && a.Bytes == 0 && !a.Never && a.Exit == nil {
		std := s.standard(ctx, m, a.Framing)
		a.Result, a.Error, a.Bytes, a.Never, a.Exit = std.Result, std.Error, std.Bytes, std.Never, std.Exit
	}
	switch {
	case a.Never:
		<-ctx.Done()
		return
	case a.Exit != nil:
		s.end(*a.Exit)
		return
	case a.Error != nil:
		s.out.send(replyFrame(m.ID, "error", a.Error, a.Framing), a.Framing)
	case a.Bytes > 0:
		s.out.send(replyFrame(m.ID, "result", textResult(strings.Repeat("x", a.Bytes), nil), a.Framing), a.Framing)
	default:
		s.out.send(replyFrame(m.ID, "result", a.Result, a.Framing), a.Framing)
	}
	for _, raw := range a.After {
		s.out.send(oneLine(raw), nil)
	}
	if a.ThenExit != nil {
		s.end(*a.ThenExit)
	}
}

// end asks for the end of the process; the first status wins.
func (s *server) end(code int) {
	select {
	case s.quit <- code:
	default:
	}
}

// scripted is a copy of the scenario's answer to a request, the zero value
// when it has none.
func (s *server) scripted(m message) Answer {
	var special *Answer
	switch m.Method {
	case "tools/call":
		special = s.sc.Calls[text(m.Params, "name")]
	case "resources/read":
		special = s.sc.Reads[text(m.Params, "uri")]
	case "prompts/get":
		special = s.sc.Gets[text(m.Params, "name")]
	}
	for _, a := range []*Answer{special, s.sc.Methods[m.Method]} {
		if a != nil && s.take(a) {
			return *a
		}
	}
	return Answer{}
}

// take counts one use of an answer, and reports whether it still applies.
func (s *server) take(a *Answer) bool {
	if a.UntilStart > 0 && s.start > a.UntilStart {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[a]++
	return a.Times == 0 || s.used[a] <= a.Times
}

// standard is what the stub answers when nothing is scripted.
func (s *server) standard(ctx context.Context, m message, framing []string) Answer {
	if needs := capabilityFor(m.Method); needs != "" && s.sc.Capabilities != nil && member(s.sc.Capabilities, needs) == nil {
		return Answer{Error: failure(-32601, "method not found: "+m.Method)}
	}
	switch m.Method {
	case "initialize":
		return Answer{Result: s.initialize(m)}
	case "tools/list":
		return s.listTools(m)
	case "resources/list":
		return list(s.lists().Resources, "resources", m)
	case "resources/templates/list":
		return list(s.lists().Templates, "resourceTemplates", m)
	case "prompts/list":
		return list(s.lists().Prompts, "prompts", m)
	case "tools/call":
		return s.callTool(ctx, m, framing)
	case "resources/read":
		uri := text(m.Params, "uri")
		return Answer{Result: fmt.Appendf(nil, `{"contents":[{"uri":%s,"mimeType":"text/plain","text":%s}]}`,
			quote(uri), quote(s.sc.name()+": "+uri))}
	case "resources/subscribe", "resources/unsubscribe":
		s.log.add(strings.TrimPrefix(m.Method, "resources/"), text(m.Params, "uri"))
	case "prompts/get":
		return Answer{Result: fmt.Appendf(nil, `{"description":%s,"messages":[{"role":"user","content":{"type":"text","text":%s}}]}`,
			quote(text(m.Params, "name")), quote(string(m.Params)))}
	case "completion/complete":
		return Answer{Result: fmt.Appendf(nil, `{"completion":{"values":[%s],"total":1,"hasMore":false}}`, quote(string(m.Params)))}
	case "logging/setLevel", "ping":
	default:
		return Answer{Error: failure(-32601, "method not found: "+m.Method)}
	}
	return Answer{Result: json.RawMessage("{}")}
}

// capabilityFor is the capability a server must announce for a method, "" for
// methods that need none.
func capabilityFor(method string) string {
	switch kind, _, _ := strings.Cut(method, "/"); kind {
	case "tools", "resources", "prompts", "logging":
		return kind
	case "completion":
		return "completions"
	}
	return ""
}

// initialize is the result of initialize.
func (s *server) initialize(m message) json.RawMessage {
	version := s.sc.Protocol
	if version == "" {
		version = text(m.Params, "protocolVersion")
	}
	capabilities := oneLine(s.sc.Capabilities)
	if capabilities == nil {
		capabilities = []byte(`{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},` +
			`"prompts":{"listChanged":true},"completions":{},"logging":{}}`)
	}
	result := fmt.Appendf(nil, `{"protocolVersion":%s,"capabilities":%s,"serverInfo":{"name":%s,"version":"1.0.0"}`,
		quote(version), capabilities, quote(s.sc.name()))
	if s.sc.Instructions != "" {
		result = fmt.Appendf(result, `,"instructions":%s`, quote(s.sc.Instructions))
	}
	return append(result, '}')
}

// list is the page of a list that a request asks for.
func list(l *List, key string, m message) Answer {
	if l == nil {
		l = &List{Pages: []Page{{}}}
	}
	cursor := string(member(m.Params, "cursor"))
	at := slices.IndexFunc(l.Pages, func(p Page) bool { return string(p.Cursor) == cursor })
	if at < 0 {
		return Answer{Error: failure(-32602, "unknown cursor "+cursor)}
	}
	page := l.Pages[at]
	items := oneLine(page.Items)
	if items == nil {
		items = []byte("[]")
	}
	result := slices.Concat([]byte(`{"`+key+`":`), items)
	if page.Next != nil {
		result = slices.Concat(result, []byte(`,"nextCursor":`), oneLine(page.Next))
	}
	return Answer{Result: append(result, '}')}
}

// pause waits, and reports whether it was not interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// textResult is a tool result of one text block, and structured content if
// there is any.
func textResult(text string, structured json.RawMessage) json.RawMessage {
	result := slices.Concat([]byte(`{"content":[{"type":"text","text":`), quote(text), []byte(`}]`))
	if structured != nil {
		result = slices.Concat(result, []byte(`,"structuredContent":`), structured)
	}
	return append(result, '}')
}
