// Package jsvm runs one script within bounds of time and memory in a process of
// its own, with a call function that it was given. It refuses to know what the
// function calls. It holds no code yet.
package jsvm
