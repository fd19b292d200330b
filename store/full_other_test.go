//go:build !unix

package store

// systemRoles are those that not every system can play.
func systemRoles() map[string]func(args []string) error { return nil }
