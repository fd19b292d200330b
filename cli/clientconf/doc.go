// Package clientconf knows where MCP clients keep their configuration, and
// edits it without losing comments. It refuses to know our own configuration.
// It holds no code yet.
package clientconf
