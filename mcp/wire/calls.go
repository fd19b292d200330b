package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
)

// answer is what came back for a request of ours.
type answer struct {
	result  json.RawMessage
	failure *Error
}

// calls holds the requests that wait for an answer of the peer. The zero value
// is ready.
type calls struct {
	mu      sync.Mutex
	last    int64
	waiting map[int64]chan answer
	failure *Error
}

// open returns a new request id and where its answer will come.
func (c *calls) open() (int64, <-chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	ch := make(chan answer, 1)
	if c.failure != nil {
		ch <- answer{failure: c.failure}
		return c.last, ch
	}
	if c.waiting == nil {
		c.waiting = map[int64]chan answer{}
	}
	c.waiting[c.last] = ch
	return c.last, ch
}

func (c *calls) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// answer hands a response to its waiter; one that nobody waits for is dropped.
func (c *calls) answer(m Message) {
	id, ok := NumberID(m.ID)
	if !ok {
		return
	}
	c.mu.Lock()
	ch := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if ch == nil {
		return
	}
	if m.Error != nil {
		ch <- answer{failure: ParseError(m.Error)}
		return
	}
	ch <- answer{result: m.Result}
}

// fail answers all, now and later, with an error.
func (c *calls) fail(e *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = e
	for id, ch := range c.waiting {
		ch <- answer{failure: e}
		delete(c.waiting, id)
	}
}

// NumberID reads an id that was sent as a number; peers that return it as a
// string of the number are forgiven.
func NumberID(raw json.RawMessage) (int64, bool) {
	id, err := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
	return id, err == nil
}
