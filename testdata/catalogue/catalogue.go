// Package catalogue is what real servers list, recorded once (see README.md), for
// tests and measurements.
package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/mcp/catalog"
)

//go:embed *.json
var files embed.FS

// Server is one entry of manifest.json.
type Server struct {
	Name    string            `json:"name"`
	Package string            `json:"package"` // of the npm registry
	Version string            `json:"version"`
	Args    []string          `json:"args"` // it was started with
	Env     map[string]string `json:"env"`  // likewise; no value is a real one
	Date    string            `json:"recorded"`
	Tools   int               `json:"tools"` // their number

	Title        string `json:"title"`
	Description  string `json:"description"`
	Instructions string `json:"instructions"`
}

// About is what the server says of itself.
func (s Server) About() string {
	return strings.TrimSpace(strings.Join([]string{s.Title, s.Description, s.Instructions}, "\n"))
}

// Manifest lists the recorded servers.
func Manifest() ([]Server, error) {
	text, err := files.ReadFile("manifest.json")
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var manifest struct {
		Servers []Server `json:"servers"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return manifest.Servers, nil
}

// Tools are the tools of a server as it sent them: a JSON array.
func Tools(server string) (json.RawMessage, error) {
	text, err := files.ReadFile(server + ".json")
	if err != nil {
		return nil, fmt.Errorf("read tools of %s: %w", server, err)
	}
	return text, nil
}

// Servers are all servers with their tools, in the order of the manifest.
func Servers() ([]*catalog.Server, error) {
	manifest, err := Manifest()
	if err != nil {
		return nil, err
	}
	var servers []*catalog.Server
	for _, s := range manifest {
		text, err := Tools(s.Name)
		if err != nil {
			return nil, err
		}
		var elements []json.RawMessage
		if err := json.Unmarshal(text, &elements); err != nil {
			return nil, fmt.Errorf("read tools of %s: %w", s.Name, err)
		}
		tools, _ := catalog.Ingest(s.Name, catalog.Tool, elements)
		servers = append(servers, &catalog.Server{Name: s.Name, Prefix: s.Name, Known: true, About: s.About(), Tools: tools})
	}
	return servers, nil
}

// Load is Servers for a test.
func Load(tb testing.TB) []*catalog.Server {
	tb.Helper()
	servers, err := Servers()
	if err != nil {
		tb.Fatal(err)
	}
	return servers
}
