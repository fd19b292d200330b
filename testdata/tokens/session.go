package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// stopTime is how long the program may take to end after its stdin did.
const stopTime = 10 * time.Second

// session is the program as a client has started it.
type session struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	lastID int
	// hello is the result of initialize.
	hello struct {
		Instructions string `json:"instructions"`
	}
}

// open starts the program and shakes hands.
func open(ctx context.Context, dir string, argv ...string) (*session, error) {
	s := &session{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	s.cmd.Dir, s.cmd.Env = dir, append(s.cmd.Environ(), "HOME="+dir)
	s.cmd.WaitDelay = stopTime
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	result, err := s.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tokens","version":"1"}}`)
	if err == nil {
		err = json.Unmarshal(result, &s.hello)
	}
	if err == nil {
		_, err = io.WriteString(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// request returns the result of one request; notifications are passed over.
func (s *session) request(method, params string) (json.RawMessage, error) {
	s.lastID++
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", s.lastID, method, params); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var message struct {
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &message); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case string(message.ID) != fmt.Sprint(s.lastID):
		case message.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, message.Error)
		default:
			return message.Result, nil
		}
	}
}

// call returns the text of the result of a tool.
func (s *session) call(tool string, arguments any) (string, error) {
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return "", err
	}
	raw, err := s.request("tools/call", string(params))
	if err != nil {
		return "", err
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	if result.IsError || len(result.Content) != 1 {
		return "", fmt.Errorf("%s: %.300s", tool, raw)
	}
	return result.Content[0].Text, nil
}

// close ends the program as a client does.
func (s *session) close() error {
	_ = s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("end mcpproxy: %w", err)
	}
	return nil
}
