package cli

// hubPossible reports whether package hub can have a hub on such a system.
// Elsewhere every server is private from the start.
func hubPossible(goos string) bool { return goos == "linux" || goos == "darwin" }
