package upstream

import "os"

// pipeWriter writes to a child's stdin.
type pipeWriter struct{ *os.File }
