package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// print writes to stdout in one piece. What comes from a server must have been
// made harmless before, see clean.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.Stdout, text); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// writeJSON prints a value as indented JSON, the shape of every --json answer.
func (a *app) writeJSON(v any) error { return a.writeJSONWithout(v, harmful) }

// writeJSONWithout is writeJSON that spells out the runes that bad claims.
func (a *app) writeJSONWithout(v any, bad func(rune) bool) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	return a.print(string(escapeJSON(b.Bytes(), bad)))
}

// styled reports whether a stream takes colours: it is a terminal, NO_COLOR is
// empty and TERM names one that can.
func (a *app) styled(s Stream) bool {
	return a.IsTerminal(s) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}
