//go:build !linux

package activity

// inBackground does nothing: priorities are those of whole processes here.
func inBackground() {}
