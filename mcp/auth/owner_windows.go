package auth

import "io/fs"

// shared finds nothing: access is a matter of access control lists here.
func shared(string, fs.FileInfo, int) error { return nil }
