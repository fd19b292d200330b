package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/tailscale/hujson"
)

// AddServer writes a new entry at the end of mcpServers, in the form the file
// has, and creates the file when there is none. entry is the JSON object of the
// server; its own "name" is replaced by name. It fails with ErrServerExists for
// a taken name and with an *Error for an entry that could not be used; a
// reference that does not resolve here and now is no reason to refuse. Like the
// other edits it keeps every byte that it does not have to change, and leaves a
// file that does not parse as it is.
func AddServer(ctx context.Context, path, name string, entry json.RawMessage) error {
	if !ValidName(name) {
		return &Error{File: path, Key: "mcpServers", Value: name, Rule: "the name " + nameRule}
	}
	v, err := hujson.Parse(entry)
	obj, ok := v.Value.(*hujson.Object)
	if err != nil || !ok {
		return fmt.Errorf("add server %q: the entry is not a JSON object", name)
	}
	return edit(ctx, path, change{
		what:    fmt.Sprintf("add server %q", name),
		creates: true,
		splices: func(doc *document) ([]splice, error) {
			if doc.server(name) != nil {
				return nil, ErrServerExists
			}
			return doc.addServer(name, obj), nil
		},
		check: func(doc *document) error {
			s := doc.server(name)
			if s == nil {
				return errors.New("the entry would not be found again")
			}
			var unresolved *ReferenceError
			if s.Err != nil && !errors.As(s.Err, &unresolved) {
				return s.Err
			}
			return nil
		},
	})
}

// RemoveServer deletes every entry of that name. Comments stay: they may tell of
// more than the entry. It fails with ErrServerNotFound when there is none.
func RemoveServer(ctx context.Context, path, name string) error {
	return edit(ctx, path, change{
		what: fmt.Sprintf("remove server %q", name),
		splices: func(doc *document) ([]splice, error) {
			i := doc.index(name)
			if i < 0 {
				return nil, ErrServerNotFound
			}
			return doc.remove(i), nil
		},
		again: func(doc *document) bool { return doc.index(name) >= 0 },
	})
}

// SetEnabled switches a server on or off. The key that the entry has, enabled or
// disabled, is changed; with neither, switching off adds "enabled": false. It
// fails with ErrServerNotFound when there is no entry of that name; of several
// the first one is changed.
func SetEnabled(ctx context.Context, path, name string, enabled bool) error {
	return set(ctx, path, name,
		func(doc *document, i int) ([]splice, error) { return doc.setEnabled(i, enabled) },
		func(s *Server) bool { return s.Enabled == enabled })
}

// SetQuarantined holds a server or releases it. The key quarantined is changed
// where the entry has it; without it, holding adds "quarantined": true, and a
// server that is to be released is trusted already. Errors are those of
// SetEnabled.
func SetQuarantined(ctx context.Context, path, name string, quarantined bool) error {
	return set(ctx, path, name,
		func(doc *document, i int) ([]splice, error) { return doc.setQuarantined(i, quarantined) },
		func(s *Server) bool { return s.Quarantined == quarantined })
}

// set changes the entry of a server so that it is as wanted.
func set(ctx context.Context, path, name string, splices func(doc *document, i int) ([]splice, error), wanted func(*Server) bool) error {
	return edit(ctx, path, change{
		what: fmt.Sprintf("change server %q", name),
		splices: func(doc *document) ([]splice, error) {
			i := doc.index(name)
			if i < 0 {
				return nil, ErrServerNotFound
			}
			return splices(doc, i)
		},
		check: func(doc *document) error {
			if s := doc.server(name); s == nil || !wanted(s) {
				return errors.New("the change would have no effect")
			}
			return nil
		},
	})
}

// change is one edit of the file.
type change struct {
	what    string
	creates bool                              // a missing file is made
	splices func(*document) ([]splice, error) // none: there is nothing to do
	again   func(*document) bool              // whether to go on after a round; nil: no
	check   func(*document) error             // judges the result before it is written; may be nil
}

// edit makes a change under the lock of the file.
func edit(ctx context.Context, path string, ch change) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !ch.creates {
		return fmt.Errorf("%s: %w", ch.what, ErrServerNotFound)
	}
	err := withFile(ctx, path, func(target string, src []byte) ([]byte, error) {
		if src == nil {
			src = []byte("{}\n")
		}
		doc, err := parseDocument(target, src)
		if err != nil {
			return nil, err
		}
		for first := true; first || ch.again != nil && ch.again(doc); first = false {
			splices, err := ch.splices(doc)
			if err != nil || len(splices) == 0 {
				return nil, err
			}
			if doc, err = parseDocument(target, doc.apply(splices)); err != nil {
				return nil, err
			}
		}
		if ch.check != nil {
			if err := ch.check(doc); err != nil {
				return nil, err
			}
		}
		return doc.bytes(), nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", ch.what, err)
	}
	return nil
}

// document is a parsed file with what an edit needs to know of it.
type document struct {
	src     []byte // without the byte order mark
	mark    bool   // the file starts with a byte order mark
	root    hujson.Value
	list    *hujson.Value // mcpServers; nil when absent
	servers []Server      // one per item of list
	newline string
	unit    string // one step of indentation
}

func parseDocument(path string, src []byte) (*document, error) {
	d := &decoder{file: path, src: src}
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	obj := root.Value.(*hujson.Object)
	c := defaults()
	c.inheritLimits()
	if err := d.servers(c, obj, newEnviron(nil, "")); err != nil {
		return nil, err
	}
	doc := &document{src: d.src, mark: len(d.src) < len(src), root: root, servers: c.Servers, newline: "\n", unit: "  "}
	if bytes.Contains(d.src, []byte("\r\n")) {
		doc.newline = "\r\n"
	}
	if len(obj.Members) > 0 {
		if indent, ok := doc.indent(obj.Members[0].Name.StartOffset); ok && indent != "" {
			doc.unit = indent
		}
	}
	for i := range obj.Members {
		m := &obj.Members[i]
		if memberName(m) != "mcpServers" {
			continue
		}
		if doc.list != nil {
			return nil, d.fault(m.Name.StartOffset, "mcpServers", nil, "stands twice; remove one")
		}
		doc.list = &m.Value
	}
	return doc, nil
}

func (doc *document) bytes() []byte {
	if doc.mark {
		return append([]byte(byteOrderMark), doc.src...)
	}
	return doc.src
}

// index is the place of the first server of that name, or -1.
func (doc *document) index(name string) int {
	return slices.IndexFunc(doc.servers, func(s Server) bool { return s.Name == name })
}

func (doc *document) server(name string) *Server {
	if i := doc.index(name); i >= 0 {
		return &doc.servers[i]
	}
	return nil
}
