package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// Limits of one list of one upstream.
const (
	maxPages = 1000
	maxItems = 100_000
)

// list reads all pages of a list. A cursor that does not advance, or more than
// the limits, ends it with a warning. A method that the upstream does not know
// is an empty list.
func (c *conn) list(ctx context.Context, kind catalog.Kind) (elements []json.RawMessage, warning string, err error) {
	var params json.RawMessage
	seen := map[string]bool{}
	for range maxPages {
		result, err := c.request(ctx, nil, kind.ListMethod(), params, 0)
		if failure := new(wire.Error); errors.As(err, &failure) && failure.Code == wire.CodeMethodNotFound {
			return elements, "", nil
		}
		if err != nil {
			return nil, "", err
		}
		list := wire.Member(result, kind.ListMember())
		if len(list) == 0 || list[0] != '[' {
			return elements, fmt.Sprintf("%s: the answer has no list %q", kind.ListMethod(), kind.ListMember()), nil
		}
		for element := range wire.Elements(list) {
			elements = append(elements, element)
		}
		cursor := wire.Member(result, "nextCursor")
		switch {
		case wire.IsNull(cursor) || string(cursor) == `""`:
			return elements, "", nil
		case seen[string(cursor)]:
			return elements, fmt.Sprintf("%s: the cursor %s does not advance, the list ends there", kind.ListMethod(), cursor), nil
		case len(elements) > maxItems:
			return elements, fmt.Sprintf("%s: more than %d items, the rest is left out", kind.ListMethod(), maxItems), nil
		}
		seen[string(cursor)] = true
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
	}
	return elements, fmt.Sprintf("%s: more than %d pages, the rest is left out", kind.ListMethod(), maxPages), nil
}
