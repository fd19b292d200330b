// Responder is the least a stdio MCP server can do: it answers initialize and
// tools/list, the latter with the bytes of a file, and has no dependencies. What
// any other program takes to start is compared with it.
//
//	responder FILE
//
// FILE holds the raw result of tools/list.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: responder FILE")
		os.Exit(2)
	}
	if err := respond(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "responder:", err)
		os.Exit(1)
	}
}

// respond serves stdin until it ends.
func respond(file string) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return fmt.Errorf("read message: %w", err)
		}
		switch {
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"responder","version":"1"}}}`+"\n",
				m.ID, m.Params.ProtocolVersion)
		case m.Method == "tools/list":
			stored, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, stored)
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", m.ID)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
