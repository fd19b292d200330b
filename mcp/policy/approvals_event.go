package policy

import (
	"fmt"
	"strings"

	"mcpproxy/mcp/catalog"
)

// Event is a change of what may be used, to be recorded and told to a person.
type Event struct {
	// Ref is the item. Kind and Name are "" where it is about all that a server
	// offers, or, with Server "" too, about all servers.
	catalog.Ref
	// Status is how the item stands now, Was how it stood before.
	Status, Was Status
	// Hash names the form in question.
	Hash string
	// Who decided: a person's name, or one of the By constants; "" for what was
	// only found.
	Who string
	// Items is how many items an event about a server is about.
	Items int
}

// String is the event in words. It holds names that servers chose.
func (e Event) String() string {
	switch {
	case e.Server == "":
		return "all that the servers offer is approved by " + e.Who
	case e.Kind == "":
		return fmt.Sprintf("server %s: %d items are approved (%s)", e.Server, e.Items, e.Who)
	}
	what := fmt.Sprintf("%s %s of server %s", e.Kind, e.Name, e.Server)
	switch e.Status {
	case Pending:
		return what + " is new and held until a person approves it: " + ReviewCommand(e.Ref)
	case Changed:
		return what + " is not what was approved and is held until a person approves it: " + ReviewCommand(e.Ref)
	case Blocked:
		return what + " is blocked by " + e.Who
	}
	return fmt.Sprintf("%s is approved (%s)", what, e.Who)
}

// ReviewCommand is what a person types to look at an item, or, with Kind and
// Name "", at a server.
func ReviewCommand(ref catalog.Ref) string {
	if ref.Name == "" {
		return "mcpproxy quarantine show " + ref.Server
	}
	return "mcpproxy quarantine show " + shellWord(ref.Server+":"+ref.Name)
}

// shellWord quotes a word for a shell where it needs that.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
