package cli

import (
	"errors"

	"mcpproxy/mcp/config"
)

// spawnHub is never called here: servers are private.
func (*app) spawnHub(*config.Config, string) (<-chan struct{}, error) {
	return nil, errors.ErrUnsupported
}
