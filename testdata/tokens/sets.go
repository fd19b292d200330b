package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mcpproxy/testdata/catalogue"
)

// toolSet is a number of real tools and their servers.
type toolSet struct {
	name    string
	tools   int
	servers []toolServer
}

// toolServer is a server of a set.
type toolServer struct {
	name         string
	instructions string
	tools        []json.RawMessage
}

// toolSets are fifty recorded tools, the 527 of livemcp, and a thousand of both.
func toolSets(retrieval string) ([]toolSet, error) {
	recorded, err := readCatalogue()
	if err != nil {
		return nil, err
	}
	live, err := readLive(filepath.Join(retrieval, "livemcp", "tools.jsonl"))
	if err != nil {
		return nil, err
	}
	return []toolSet{
		firstTools(50, recorded),
		firstTools(527, live),
		firstTools(1000, append(slices.Clone(live), recorded...)),
	}, nil
}

// firstTools are the first n tools of servers.
func firstTools(n int, servers []toolServer) toolSet {
	set := toolSet{name: fmt.Sprintf("%d tools", n)}
	for _, server := range servers {
		server.tools = server.tools[:min(len(server.tools), n-set.tools)]
		set.tools += len(server.tools)
		if len(server.tools) > 0 {
			set.servers = append(set.servers, server)
		}
	}
	return set
}

func readCatalogue() ([]toolServer, error) {
	manifest, err := catalogue.Manifest()
	if err != nil {
		return nil, err
	}
	var servers []toolServer
	for _, entry := range manifest {
		text, err := catalogue.Tools(entry.Name)
		if err != nil {
			return nil, err
		}
		// A name that livemcp has too must not meet it.
		server := toolServer{name: entry.Name + "-recorded", instructions: entry.About()}
		if err := json.Unmarshal(text, &server.tools); err != nil {
			return nil, fmt.Errorf("read tools of %s: %w", entry.Name, err)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func readLive(file string) ([]toolServer, error) {
	var servers []toolServer
	at := map[string]int{}
	err := eachLine(file, func(line []byte) error {
		var tool struct {
			Server      string          `json:"server"`
			About       string          `json:"serverDescription"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(line, &tool); err != nil {
			return err
		}
		i, known := at[tool.Server]
		if !known {
			i = len(servers)
			at[tool.Server] = i
			servers = append(servers, toolServer{name: configName(tool.Server), instructions: tool.About})
		}
		raw, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
		servers[i].tools = append(servers[i].tools, raw)
		return err
	})
	return servers, err
}

// configName is a name as the configuration takes it.
func configName(name string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' {
			return '-'
		}
		return r
	}, name)
}

// readQueries are the queries of livemcp that are searches as they are typed.
func readQueries(retrieval string) ([]string, error) {
	var queries []string
	err := eachLine(filepath.Join(retrieval, "livemcp", "queries.dev.jsonl"), func(line []byte) error {
		var query struct{ Kind, Text string }
		if err := json.Unmarshal(line, &query); err != nil {
			return err
		}
		if slices.Contains([]string{"agent", "kw", "nl", "para"}, query.Kind) {
			queries = append(queries, query.Text)
		}
		return nil
	})
	return queries, err
}

func eachLine(file string, do func(line []byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := do(lines.Bytes()); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	return lines.Err()
}
