package catalog

import "strings"

// clientLimit is how long our names may be for a client that puts its own
// prefix in front, if our entry there is called mcpproxy.
type clientLimit struct {
	name string // how its clientInfo.name begins, in lower case
	max  int    // bytes
}

// clientLimits is the one table of clients. Sources: the clients' own
// documentation and code; the API behind Claude Code allows 128 characters in
// all, the others 60 to 64.
func clientLimits() []clientLimit {
	return []clientLimit{
		{"claude-code", 113},
		{"codex", 49},
		{"visual studio code", 46},
		{"vscode", 46},
		{"cursor", 51},
		{"gemini", 50},
		{"opencode", 55},
	}
}

// MaxName returns how long public names may be for the client of that
// clientInfo.name. configured wins if it is not 0.
func MaxName(client string, configured int) int {
	if configured > 0 {
		return max(configured, MinMaxName)
	}
	client = strings.ToLower(client)
	for _, limit := range clientLimits() {
		if strings.HasPrefix(client, limit.name) {
			return limit.max
		}
	}
	return DefaultMaxName
}
