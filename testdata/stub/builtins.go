package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// builtin is a tool that every stub has unless its scenario answers for it.
type builtin struct {
	name, about string
	readOnly    bool
	args        string // properties of the input schema
	run         func(*call) Answer
}

// builtins are the built-in tools in the order in which they are listed.
func builtins() []builtin {
	integer, str := `{"type":"integer"}`, `{"type":"string"}`
	return []builtin{
		{"echo", "returns the parameters it received, as text and as structured content", true, ``, echo},
		{"inc", "counts its calls; returns n and pid", false, ``, inc},
		{"pid", "returns the process id", true, ``, pid},
		{"fast", "answers at once", true, ``, fast},
		{"slow", "answers after ms; when cancelled, never, unless ignore_cancel", true,
			`"ms":` + integer + `,"ignore_cancel":{"type":"boolean"}`, slow},
		{"hang", "never answers", true, ``, hang},
		{"exit", "ends the process with code, without an answer", false, `"code":` + integer, exit},
		{"big", "returns so many bytes of text", true, `"bytes":` + integer, big},
		{"stderr", "writes so many bytes to stderr, then answers", true, `"bytes":` + integer, toStderr},
		{"progress", "sends n progress notifications, interval_ms apart", true, `"n":` + integer + `,"interval_ms":` + integer, progress},
		{"log", "sends a log message", true, `"level":` + str + `,"logger":` + str + `,"data":{}`, logMessage},
		{"update", "says that the resource uri was updated", false, `"uri":` + str, update},
		{"notify", "sends any notification", false, `"method":` + str + `,"params":{"type":"object"}`, notify},
		{"addtool", "adds a tool, or brings a dropped one back, and says that the list changed", false, `"name":` + str, addTool},
		{"droptool", "drops a tool and says that the list changed", false, `"name":` + str, dropTool},
		{"env", "returns the environment", true, ``, environment},
		{"sample", "asks the client to sample, and returns what came back", true, `"params":{"type":"object"}`, sample},
		{"elicit", "asks the client's user, and returns what came back", true, `"params":{"type":"object"}`, elicit},
		{"roots", "asks the client for its roots, and returns what came back", true, `"params":{"type":"object"}`, roots},
	}
}

// definition is the tool as tools/list shows it.
func (b builtin) definition() json.RawMessage {
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{%s}},"annotations":{"readOnlyHint":%t,"destructiveHint":false}}`,
		quote(b.name), quote(b.about), b.args, b.readOnly)
}

// call is one call of a built-in tool.
type call struct {
	ctx    context.Context
	server *server
	m      message
	args   json.RawMessage
}

// callTool runs a built-in tool, or answers for a tool of the scenario.
func (s *server) callTool(ctx context.Context, m message, framing []string) Answer {
	name := text(m.Params, "name")
	s.mu.Lock()
	dropped := s.dropped[name]
	s.mu.Unlock()
	if dropped {
		return Answer{Error: failure(-32602, "unknown tool "+name)}
	}
	if slices.Contains(framing, FrameInvalidUTF8) {
		return Answer{Result: json.RawMessage("{\"content\":[{\"type\":\"text\",\"text\":\"bad \xff\xfe bytes\"}]}")}
	}
	for _, b := range builtins() {
		if b.name == name {
			return b.run(&call{ctx: ctx, server: s, m: m, args: member(m.Params, "arguments")})
		}
	}
	return Answer{Result: textResult("answer of "+name+" · 世界", nil)}
}

// listTools is the answer to tools/list, with what was added and dropped while
// running.
func (s *server) listTools(m message) Answer {
	sc := s.lists()
	var front []json.RawMessage
	for _, b := range builtins() {
		if sc.Tools == nil || slices.Contains(s.sc.ListBuiltins, "*") || slices.Contains(s.sc.ListBuiltins, b.name) {
			front = append(front, b.definition())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	front = append(front, s.added...)
	pages := []Page{{Items: json.RawMessage("[]")}}
	if sc.Tools != nil && len(sc.Tools.Pages) > 0 {
		pages = slices.Clone(sc.Tools.Pages)
	}
	if len(front) > 0 {
		pages[0].Items = inFront(front, pages[0].Items)
	}
	for i := range pages {
		if len(s.dropped) > 0 {
			pages[i].Items = without(pages[i].Items, s.dropped)
		}
	}
	return list(&List{Pages: pages}, "tools", m)
}

// inFront puts items in front of those of a raw array.
func inFront(items []json.RawMessage, array json.RawMessage) json.RawMessage {
	front := slices.Concat([]byte("["), joined(items))
	rest := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(array), []byte("[")))
	if len(rest) == 0 {
		rest = []byte("]")
	}
	if rest[0] != ']' {
		front = append(front, ',')
	}
	return append(front, rest...)
}

// without drops tools by name from a raw array.
func without(array json.RawMessage, names map[string]bool) json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(array, &items) != nil {
		return array
	}
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return names[text(item, "name")] })
	return slices.Concat([]byte("["), joined(items), []byte("]"))
}

// joined puts commas between items.
func joined(items []json.RawMessage) []byte {
	var all []byte
	for i, item := range items {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, item...)
	}
	return all
}

func echo(c *call) Answer {
	return Answer{Result: textResult(string(c.m.Params), c.m.Params)}
}

func inc(c *call) Answer {
	c.server.mu.Lock()
	c.server.counter++
	n := c.server.counter
	c.server.mu.Unlock()
	both := fmt.Appendf(nil, `{"n":%d,"pid":%d}`, n, os.Getpid())
	return Answer{Result: textResult(string(both), both)}
}

func pid(*call) Answer { return Answer{Result: textResult(fmt.Sprint(os.Getpid()), nil)} }

func fast(*call) Answer { return Answer{Result: textResult("fast", nil)} }

func slow(c *call) Answer {
	wait := ms(number(c.args, "ms", 1000))
	if string(member(c.args, "ignore_cancel")) == "true" {
		time.Sleep(wait)
	} else if !pause(c.ctx, wait) {
		return Answer{Never: true}
	}
	return Answer{Result: textResult("slow", nil)}
}

func hang(*call) Answer { return Answer{Never: true} }

func exit(c *call) Answer {
	code := number(c.args, "code", 1)
	return Answer{Exit: &code}
}

func big(c *call) Answer { return Answer{Bytes: number(c.args, "bytes", 100_000)} }

func toStderr(c *call) Answer {
	noise(c.server.stderr, number(c.args, "bytes", 256<<10))
	return Answer{Result: textResult("written", nil)}
}

func progress(c *call) Answer {
	token := member(member(c.m.Params, "_meta"), "progressToken")
	n := number(c.args, "n", 3)
	for i := 1; i <= n && token != nil; i++ {
		c.server.out.send(notification("notifications/progress",
			fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":%d,"message":"step %d"}`, token, i, n, i)), nil)
		if !pause(c.ctx, ms(number(c.args, "interval_ms", 0))) {
			return Answer{Never: true}
		}
	}
	return Answer{Result: textResult("done", nil)}
}

func logMessage(c *call) Answer {
	level, logger, data := text(c.args, "level"), text(c.args, "logger"), member(c.args, "data")
	if level == "" {
		level = "info"
	}
	if data == nil {
		data = json.RawMessage(`"hello"`)
	}
	params := fmt.Appendf(nil, `{"level":%s,"logger":%s,"data":%s}`, quote(level), quote(logger), data)
	c.server.out.send(notification("notifications/message", params), nil)
	return Answer{Result: textResult("logged", nil)}
}

func update(c *call) Answer {
	params := fmt.Appendf(nil, `{"uri":%s}`, quote(text(c.args, "uri")))
	c.server.out.send(notification("notifications/resources/updated", params), nil)
	return Answer{Result: textResult("updated", nil)}
}

func notify(c *call) Answer {
	params := member(c.args, "params")
	if params == nil {
		params = json.RawMessage("{}")
	}
	c.server.out.send(notification(text(c.args, "method"), params), nil)
	return Answer{Result: textResult("sent", nil)}
}

func addTool(c *call) Answer {
	name := text(c.args, "name")
	c.server.mu.Lock()
	if !c.server.dropped[name] {
		c.server.added = append(c.server.added,
			fmt.Appendf(nil, `{"name":%s,"description":"added while running","inputSchema":{"type":"object"}}`, quote(name)))
	}
	delete(c.server.dropped, name)
	c.server.mu.Unlock()
	return c.changed()
}

func dropTool(c *call) Answer {
	c.server.mu.Lock()
	if c.server.dropped == nil {
		c.server.dropped = map[string]bool{}
	}
	c.server.dropped[text(c.args, "name")] = true
	c.server.mu.Unlock()
	return c.changed()
}

func (c *call) changed() Answer {
	c.server.out.send(notification("notifications/tools/list_changed", json.RawMessage("{}")), nil)
	return Answer{Result: textResult("changed", nil)}
}

func environment(*call) Answer {
	vars := os.Environ()
	slices.Sort(vars)
	var members []json.RawMessage
	for _, v := range vars {
		key, value, _ := strings.Cut(v, "=")
		members = append(members, slices.Concat(quote(key), []byte(":"), quote(value)))
	}
	object := slices.Concat([]byte("{"), joined(members), []byte("}"))
	return Answer{Result: textResult(string(object), object)}
}
