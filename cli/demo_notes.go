package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// maxNote is the largest note in bytes that is read or written.
const maxNote = 1 << 20

// errNoNote tells that there is no note of the name asked for.
var errNoNote = errors.New("no such note")

// noteFolder keeps notes as files "<name>.md" in one folder. Nothing outside
// the folder can be named: paths go through an os.Root, links included. The
// caller owns the root.
type noteFolder struct{ root *os.Root }

// note describes one note.
type note struct {
	Name     string `json:"name" jsonschema:"the note's name"`
	Size     int64  `json:"size" jsonschema:"its length in bytes"`
	Modified string `json:"modified" jsonschema:"when it was last written, RFC 3339"`
}

// noteMatch is one line of a note that holds the text searched for.
type noteMatch struct {
	Name string `json:"name" jsonschema:"the note's name"`
	Line int    `json:"line" jsonschema:"the line's number, from 1"`
	Text string `json:"text" jsonschema:"the line"`
}

// file returns the file of a note, or an error for a name no note can have.
func (f noteFolder) file(name string) (string, error) {
	harmless := func(r rune) bool { return !harmful(r) && !strings.ContainsRune(`/\:*?"<>|`, r) }
	switch {
	case name == "" || len(name) > 100:
		return "", errors.New("a note's name has 1 to 100 bytes")
	case strings.HasPrefix(name, ".") || strings.TrimSpace(name) != name:
		return "", fmt.Errorf("note name %q begins with a dot or is framed by blanks", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !harmless(r) }):
		return "", fmt.Errorf("note name %q holds a character that file names cannot have everywhere", name)
	}
	return name + ".md", nil
}

// list returns all notes by name.
func (f noteFolder) list() ([]note, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	notes := []note{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".md")
		info, err := entry.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		notes = append(notes, note{Name: name, Size: info.Size(), Modified: info.ModTime().UTC().Format(time.RFC3339)})
	}
	return notes, nil
}

// read returns the text of a note.
func (f noteFolder) read(name string) (string, error) {
	file, err := f.file(name)
	if err != nil {
		return "", err
	}
	info, err := f.root.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("read %q: %w", name, errNoNote)
	case err != nil:
		return "", fmt.Errorf("read %q: %w", name, err)
	case info.Size() > maxNote:
		return "", fmt.Errorf("read %q: %d bytes are more than the %d that are read", name, info.Size(), maxNote)
	}
	text, err := f.root.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", name, err)
	}
	return string(text), nil
}

// write replaces a note or, with add, adds to its end.
func (f noteFolder) write(name, text string, add bool) error {
	file, err := f.file(name)
	if err != nil {
		return err
	}
	if len(text) > maxNote {
		return fmt.Errorf("write %q: %d bytes are more than the %d a note may have", name, len(text), maxNote)
	}
	// Opening a pipe would wait for its reader.
	if info, err := f.root.Stat(file); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("write %q: not a regular file", name)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if add {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	out, err := f.root.OpenFile(file, flags, 0o600)
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	_, err = io.WriteString(out, text)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}

// remove deletes a note for good.
func (f noteFolder) remove(name string) error {
	file, err := f.file(name)
	if err != nil {
		return err
	}
	err = f.root.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = errNoNote
	}
	if err != nil {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	return nil
}

// search returns up to limit lines that hold text, whatever their case.
func (f noteFolder) search(text string, limit int) ([]noteMatch, error) {
	notes, err := f.list()
	if err != nil {
		return nil, err
	}
	wanted := strings.ToLower(text)
	matches := []noteMatch{}
	for _, n := range notes {
		content, err := f.read(n.Name)
		if err != nil {
			continue // deleted since it was listed, or too large to search
		}
		number := 0
		for line := range strings.Lines(content) {
			number++
			if !strings.Contains(strings.ToLower(line), wanted) {
				continue
			}
			matches = append(matches, noteMatch{Name: n.Name, Line: number, Text: strings.TrimRight(line, "\r\n")})
			if len(matches) == limit {
				return matches, nil
			}
		}
	}
	return matches, nil
}

// names returns the names of the notes that begin with prefix.
func (f noteFolder) names(prefix string) ([]string, error) {
	notes, err := f.list()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, n := range notes {
		if strings.HasPrefix(n.Name, prefix) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
