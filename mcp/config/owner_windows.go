package config

import "io/fs"

// refusal finds nothing: access is a matter of access control lists here.
func refusal(fs.FileInfo, int) string { return "" }
