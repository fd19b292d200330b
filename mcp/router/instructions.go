package router

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/mcp/catalog"
)

// Limits of the instructions: clients cut them at 2,048 bytes.
const (
	maxInstructions = 1500
	maxNamed        = 30
)

// Briefing is what a client is told of its situation.
type Briefing struct {
	Mode     string       // "retrieve_tools"; every other is direct mode
	Operator string       // the operator's own text
	Servers  []string     // those within reach; none are named where this is nil
	Profile  string       // the profile in effect, "" for none
	Tier     catalog.Tier // the highest that may be used
	Off      []string     // tools of the mode that are switched off
}

// Instructions is what a client is told in initialize: what this is, how tools
// are reached in its mode, the operator's own text, and what is within reach. It
// has at most 1,500 bytes; a longer operator's text is cut.
func Instructions(b Briefing) string {
	text := "mcpproxy gives you the tools, prompts and resources of several MCP servers in one place. "
	if b.Mode == retrieveName {
		text += "Find tools with retrieve_tools (product or domain, verb and object, one need per search), then call them by their name \"server:tool\" " +
			"with the tool that call_with names: call_tool_read, call_tool_write or call_tool_destructive. " +
			"Never guess a tool's name. describe_tool gives the schema of a compact entry, read_cache the rest of a result that was cut."
	} else {
		text += "Tools and prompts are named server__name; call them by these names as they are listed."
	}
	reach := b.reach()
	if b.Operator != "" {
		room := maxInstructions - len(text) - len(reach) - 2
		text += "\n" + strings.ToValidUTF8(b.Operator[:min(len(b.Operator), max(room, 0))], "")
	}
	if reach != "" {
		text += "\n" + reach
	}
	return text
}

// reach tells of profile, servers and tiers, as far as they are limited.
func (b Briefing) reach() string {
	var lines []string
	if b.Profile != "" {
		lines = append(lines, "Profile: "+b.Profile)
	}
	if len(b.Servers) > 0 {
		lines = append(lines, namesOf(b.Servers))
	}
	switch b.Tier {
	case catalog.Read:
		lines = append(lines, "Only tools that read can be called.")
	case catalog.Write:
		lines = append(lines, "Only tools that read or write can be called, none that may destroy something.")
	}
	if len(b.Off) > 0 {
		lines = append(lines, "Switched off: "+strings.Join(b.Off, ", "))
	}
	return strings.Join(lines, "\n")
}

func namesOf(servers []string) string {
	// Thirty names of 64 characters would not fit beside the rest.
	return "Servers: " + within(slices.Sorted(slices.Values(servers)), maxInstructions/2)
}

// within is names in a sentence: the first thirty, fewer where these have more than
// so many bytes, and how many more there are.
func within(names []string, most int) string {
	const andMore = ", +%d more"
	n := min(len(names), maxNamed)
	for ; n > 0; n-- {
		text := strings.Join(names[:n], ", ")
		if n < len(names) {
			text += fmt.Sprintf(andMore, len(names)-n)
		}
		if len(text) <= most {
			return text
		}
	}
	return fmt.Sprintf("%d", len(names))
}
