package stub

import (
	"encoding/json"
	"fmt"
	"slices"
)

func sample(c *call) Answer {
	return c.ask("sampling/createMessage",
		`{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":16}`)
}

func elicit(c *call) Answer {
	return c.ask("elicitation/create",
		`{"message":"your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`)
}

func roots(c *call) Answer { return c.ask("roots/list", `{}`) }

// ask sends a request to the client and returns the outcome, {"result": …} or
// {"error": …} with the raw value, as text and as structured content.
// The argument params replaces the default parameters.
func (c *call) ask(method, defaults string) Answer {
	params := member(c.args, "params")
	if params == nil {
		params = json.RawMessage(defaults)
	}
	s := c.server
	reply := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.asked++
	id := fmt.Sprint(s.asked)
	if s.sc.StringIDs {
		id = `"s` + id + `"`
	}
	s.waiting[id] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
	}()
	s.out.send(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":`), quote(method),
		[]byte(`,"params":`), oneLine(params), []byte("}")), nil)
	select {
	case outcome := <-reply:
		return Answer{Result: textResult(string(outcome), outcome)}
	case <-c.ctx.Done():
		return Answer{Never: true}
	}
}

// deliverReply gives the client's answer to whoever asked; one that nobody
// waits for is logged.
func (s *server) deliverReply(m message) {
	outcome := slices.Concat([]byte(`{"result":`), m.Result, []byte("}"))
	if m.Error != nil {
		outcome = slices.Concat([]byte(`{"error":`), m.Error, []byte("}"))
	}
	s.mu.Lock()
	waiting := s.waiting[string(m.ID)]
	delete(s.waiting, string(m.ID))
	s.mu.Unlock()
	if waiting == nil {
		s.log.add("stray", string(m.ID))
		return
	}
	waiting <- outcome
}
