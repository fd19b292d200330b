package router

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the instructions: clients cut them at 2,048 bytes.
const (
	maxInstructions = 1500
	maxNamed        = 30
)

// DirectInstructions is what a client of direct mode is told in initialize:
// what this is, the operator's own text, and the servers within reach. It has
// at most 1,500 bytes; a longer operator's text is cut.
func DirectInstructions(operator string, servers []string) string {
	text := "mcpproxy gives you the tools, prompts and resources of several MCP servers in one place. " +
		"Tools and prompts are named server__name; call them by these names as they are listed."
	reach := reachable(servers)
	if operator != "" {
		room := maxInstructions - len(text) - len(reach) - 2
		text += "\n" + strings.ToValidUTF8(operator[:min(len(operator), max(room, 0))], "")
	}
	if reach != "" {
		text += "\n" + reach
	}
	return text
}

func reachable(servers []string) string {
	if len(servers) == 0 {
		return ""
	}
	names := slices.Sorted(slices.Values(servers))
	more := ""
	if extra := len(names) - maxNamed; extra > 0 {
		names, more = names[:maxNamed], fmt.Sprintf(", +%d more", extra)
	}
	line := "Servers: " + strings.Join(names, ", ") + more
	// Thirty names of 64 characters would not fit beside the rest.
	return line[:min(len(line), maxInstructions/2)]
}
