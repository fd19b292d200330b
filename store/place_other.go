//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package store

// writable leaves it to SQLite to find out.
func writable(string) error { return nil }

// lockFolder needs no lock where a file that somebody has open cannot be
// removed.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }
