package cli

import (
	"errors"

	"mcpproxy/mcp/config"
)

// spawnHub is never called here: servers are private.
func (*app) spawnHub(*config.Config, string) error {
	return errors.ErrUnsupported
}
