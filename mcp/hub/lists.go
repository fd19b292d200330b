package hub

import (
	"encoding/json"
	"slices"

	"mcpproxy/mcp/catalog"
)

// listed returns the kind of items that a method lists.
func listed(method string) (catalog.Kind, bool) {
	for _, kind := range catalog.Kinds() {
		if kind.ListMethod() == method {
			return kind, true
		}
	}
	return "", false
}

// page is a list result of one page, with the elements as they are.
func page(kind catalog.Kind, elements []json.RawMessage) json.RawMessage {
	size := len(kind.ListMember()) + len(`{"":[]}`)
	for _, element := range elements {
		size += len(element) + 1
	}
	out := append(make(json.RawMessage, 0, size), `{"`+kind.ListMember()+`":[`...)
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	return append(out, `]}`...)
}

// logLevels are in rising order of severity (RFC 5424).
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// severity is the place of a level among logLevels; none is that of "info".
func severity(level string) int {
	if level == "" {
		level = "info"
	}
	return slices.Index(logLevels(), level)
}
