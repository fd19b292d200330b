// Upstream is the server behind everything that is measured: on the go-sdk, over
// stdio, with as many tools as wanted, each with about 45 words of description
// and five parameters. A call returns 100 bytes of text, or as many kB as its
// argument kb says.
//
//	upstream [-n 50] [-mood FILE]
//
// FILE says how this start behaves: empty or missing, well; "hang", never a word;
// a duration such as "5s", so late. A file, so that the same command can be well
// at one start and not at the next.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// schema is the input schema of every tool.
const schema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"what to look for, in plain words or as an exact phrase in quotes"},` +
	`"limit":{"type":"integer","description":"the largest number of entries to return","minimum":1,"maximum":100,"default":20},` +
	`"format":{"type":"string","enum":["text","json","table"],"description":"how the entries are written"},` +
	`"recursive":{"type":"boolean","description":"whether folders below the first are looked at too"},` +
	`"kb":{"type":"integer","description":"the size of the answer in thousand bytes, 100 bytes if absent","minimum":0}}}`

// about is a tool's description, after its first words.
const about = "of the store and returns the entries that match the query, newest first, with their owner, size and the " +
	"time of the last change; entries that the caller may not see are left out without a word, and an empty " +
	"answer means that nothing matched"

func main() {
	n := flag.Int("n", 50, "number of tools")
	mood := flag.String("mood", "", "file that says how this start behaves")
	flag.Parse()
	if err := serve(*n, *mood); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// serve serves stdin until it ends, in the mood of the file.
func serve(n int, mood string) error {
	if text, err := os.ReadFile(mood); err == nil && len(text) > 0 {
		if string(text) == "hang" {
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		}
		late, err := time.ParseDuration(string(text))
		if err != nil {
			return fmt.Errorf("read mood: %w", err)
		}
		time.Sleep(late)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, nil)
	for i := range n {
		server.AddTool(&mcp.Tool{
			Name:        fmt.Sprintf("tool_%04d", i+1),
			Description: fmt.Sprintf("Searches part %d %s", i+1, about),
			InputSchema: json.RawMessage(schema),
		}, answer)
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// answer returns as much text as asked for.
func answer(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		KB int `json:"kb"`
	}
	if len(req.Params.Arguments) > 0 {
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
	}
	size := 100
	if args.KB > 0 {
		size = args.KB * 1000
	}
	const line = "the quick brown fox jumps over the lazy dog, again "
	text := strings.Repeat(line, size/len(line)+1)[:size]
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}
