// Forward is about the fastest proxy there can be for one upstream over stdio:
// it swaps request ids and the prefix of tool names, and forwards the bytes of
// everything else.
//
//	forward [-prefix up__] COMMAND [ARG...]
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// message is a JSON-RPC message with its members unread.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// pending is a request that was forwarded.
type pending struct {
	id     json.RawMessage
	method string
}

// forwarder holds the requests under way, by their id towards the upstream.
type forwarder struct {
	prefix string

	mu    sync.Mutex
	last  int64
	calls map[int64]pending
}

func main() {
	prefix := flag.String("prefix", "up__", "what tool names start with on this side")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: forward [-prefix up__] COMMAND [ARG...]")
		os.Exit(2)
	}
	f := &forwarder{prefix: *prefix, calls: map[int64]pending{}}
	if err := f.run(exec.Command(flag.Arg(0), flag.Args()[1:]...)); err != nil {
		fmt.Fprintln(os.Stderr, "forward:", err)
		os.Exit(1)
	}
}

// run forwards until the client's stream ends, then ends the upstream.
func (f *forwarder) run(upstream *exec.Cmd) error {
	upstream.Stderr = os.Stderr
	in, err := upstream.StdinPipe()
	if err != nil {
		return err
	}
	out, err := upstream.StdoutPipe()
	if err != nil {
		return err
	}
	if err := upstream.Start(); err != nil {
		return err
	}
	back := make(chan error, 1)
	go func() { back <- copyLines(os.Stdout, out, f.toClient) }()
	forth := copyLines(in, os.Stdin, f.toUpstream)
	in.Close()
	if err := <-back; err != nil {
		return err
	}
	if err := upstream.Wait(); err != nil {
		return err
	}
	return forth
}

// copyLines writes what change makes of each line of from.
func copyLines(to io.Writer, from io.Reader, change func([]byte) ([]byte, error)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if line, err = change(line); err != nil {
			return err
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
}

// toUpstream gives a request an id of ours and takes the prefix off a tool name.
func (f *forwarder) toUpstream(line []byte) ([]byte, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	if m.ID == nil || m.Method == "" {
		return line, nil // a notification, or an answer to the upstream
	}
	f.mu.Lock()
	f.last++
	id := f.last
	f.calls[id] = pending{m.ID, m.Method}
	f.mu.Unlock()
	if m.Method == "tools/call" {
		m.Params = bytes.Replace(m.Params, []byte(`"name":"`+f.prefix), []byte(`"name":"`), 1)
	}
	line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q`, id, m.Method)
	if m.Params != nil {
		line = append(append(line, `,"params":`...), m.Params...)
	}
	return append(line, "}\n"...), nil
}

// toClient gives an answer the id of its request and puts the prefix in front
// of the tool names of a list.
func (f *forwarder) toClient(line []byte) ([]byte, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	if m.ID == nil || m.Method != "" {
		return line, nil // a notification, or a request to the client
	}
	var id int64
	if err := json.Unmarshal(m.ID, &id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	call := f.calls[id]
	delete(f.calls, id)
	f.mu.Unlock()
	key, value := `,"result":`, m.Result
	if m.Error != nil {
		key, value = `,"error":`, m.Error
	} else if call.method == "tools/list" {
		var err error
		if value, err = f.named(value); err != nil {
			return nil, err
		}
	}
	line = append(make([]byte, 0, len(value)+64), `{"jsonrpc":"2.0","id":`...)
	line = append(append(line, call.id...), key...)
	return append(append(line, value...), "}\n"...), nil
}

// named puts the prefix in front of each tool's name, which is taken to be the
// first string member called so in the tool.
func (f *forwarder) named(result json.RawMessage) (json.RawMessage, error) {
	var list struct {
		Tools      []json.RawMessage `json:"tools"`
		NextCursor string            `json:"nextCursor,omitempty"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		return nil, err
	}
	for i, tool := range list.Tools {
		list.Tools[i] = bytes.Replace(tool, []byte(`"name":"`), []byte(`"name":"`+f.prefix), 1)
	}
	return json.Marshal(list)
}
